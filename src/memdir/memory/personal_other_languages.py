"""What people say of themselves, and of somebody they name, in other languages than English: German, French and Spanish, and a
few forms of others."""

from __future__ import annotations

import re
from typing import Final

from memdir.memory.claims_other_languages import NAME

_BARE: Final = re.compile(
    r"(?:bin|arbeite|wohne|lebe|trinke|esse|habe|hab|mag|liebe|hasse|bevorzuge|spreche|benutze|verwende|nutze|fahre|singe|"
    r"spiele|lerne|gehe|schreibe|lese|laufe|koche|schwimme|rauche|schlafe|studiere|leite|ziehe) (?!ich\b|wir\b|er\b|sie\b|"
    r"es\b)",
    re.IGNORECASE,
)
_TURNED: Final = re.compile(r"[A-ZÄÖÜ]\w+(?: \w+){0,4}? (?P<verb>bin|habe|\w{2,}e) ich (?P<rest>.+)$", re.DOTALL)
_ICH: Final = (
    r"(?!(?:denke|glaube|finde|meine|hoffe|sage|frage|würde|hätte|könnte|wäre|dachte|hatte|wollte|konnte|musste|sollte|"
    r"machte|sagte|ging|kam|verstehe|vermute|melde|träumte|wünschte)\b)(?:bin|habe?|mag|will|möchte|arbeite|leite|heirate|"
    r"warte|\w{2,}(?<!t)e)"
)
_JE: Final = (
    r"(?!(?:pense|crois|sais|dis|vois|trouve|suppose|espère|imagine|doute|comprends|regrette|veux dire|me demande|sens|peux|"
    r"voudrais|pourrais|devrais|serais|viendrai|mérite)\b)(?:suis|vis|bois|viens|lis|apprends|cours|fais|vais|dors|écris|"
    r"conduis|(?:ne |n['’]|m['’]|me )?\w{3,}e|(?:ne )?mange plus)"
)
_YO: Final = (
    r"(?:[Pp]refiero|[Vv]ivo|[Tt]rabajo (?:en|como|para|de)|[Ss]oy|[Tt]engo|[Ee]stoy (?:aprendiendo|trabajando|estudiando|"
    r"casad[oa])|[Nn]ací|[Cc]recí|^(?:[Nn]o |[Yy]a no |[Ss]iempre |[Aa]hora |[Tt]ambién |[Nn]unca )?(?:[Mm]e )?(?!(?:[Pp]ero|"
    r"[Cc]omo (?!carne)|[Cc]uando|[Tt]odo|[Ll]uego|[Ss]olo|[Nn]uevo|[Oo]tro|[Bb]ueno|[Cc]laro|[Ee]nero|[Mm]arzo|[Mm]ucho|"
    r"[Pp]oco|[Cc]reo|[Pp]ienso|[Ss]upongo|[Ee]spero|[Dd]igo|[Ss]iento|[Ss]ueño|[Vv]eo|[Mm]ismo|[Tt]anto|[Cc]ierto|"
    r"[Pp]rimero|[Ss]egundo|[Tt]ercero|[Qq]uiero|"
    r"[Pp]iano|[Mm]édico|[Cc]urso|[Tt]urno|[Tt]eléfono|[Cc]orreo|[Pp]erro|[Gg]ato|[Nn]iño|[Hh]ijo|[Bb]anco|[Bb]año|[Cc]uarto|"
    r"[Rr]egalo|[Ll]ibro|[Vv]uelo|[Gg]rupo|[Ee]quipo|[Tt]eatro|[Cc]oro|[Jj]udo|\w+(?:ient|ci|gi|ri|tr|fon)o)\b)"
    r"[A-Za-zñáéíóú]{3,}o (?=.*\b(?:el|la|los|las|un|una|de|en|con|por|al|del|que|mi|todos|desde|muy|carne|siempre|mucho)\b))"
)
ABOUT_SPEAKER: Final = re.compile(
    rf"\b[Ii]ch {_ICH}\b|\b{_ICH} ich\b|\bund ich (?:wohnen|leben|arbeiten|haben|sind|gehen|spielen)\b"
    r"|\b[Mm]eine?[nmrs]? (?:\w+e[rsn]? )?[A-ZÄÖÜ]\w+ (?:ist|sind|hat|haben|heißt|heißen|wohnt|arbeitet|lebt|kommt|reicht|"
    r"will|liegt)\b"
    r"|\b[Mm]eine?[nmrs]? (?:Frau|Mann|Name|Hund|Katze|Geburtstag|Sohn|Tochter|Mutter|Vater|Chefin?|Lieblings\w+|Adresse|"
    r"Wohnung|Freund(?:in)?|Kolleg(?:e|in)|Nachbar(?:in)?|Vermieter(?:in)?|Stelle|Arbeit|Job)\b"
    rf"|\b[Jj]e {_JE}\b|\b[Jj]['’](?:aime|habite|adore|apprends|étudie|utilise|écris|essaie|évite)\b"
    r"|\b[Jj]['’]ai (?:\d|une? |deux |trois |trop |toujours |accepté|décidé|commencé|arrêté|quitté|déménagé|emménagé|repris|"
    r"adopté|rejoint|changé|grandi)"
    r"|\b[Mm](?:on|a|es) (?:femme|mari|chien|chat|fils|fille|anniversaire|nom|adresse|travail|équipe|famille|enfants|métier|"
    r"père|mère|frère|sœur|parents|compagne|compagnon|amie?|voisine?|cheffe?|médecin|maison|appartement)\b"
    rf"|\b(?:[Mm]e llamo|[Mm]e gustan?|[Mm]e encantan?)\b|{_YO}\b|\b[Mm]e he (?:mudado|apuntado|casado|comprado|jubilado|"
    rf"hecho)\b"
    r"|\b[Hh]e (?:dejado|empezado|decidido|cambiado|comprado|conocido|aceptado|abandonado|vendido|adoptado)\b"
    r"|\b[Mm]is? (?:nuev[oa] |mejor )?(?:espos[oa]|marido|mujer|perr[oa]|gat[oa]|hij[oa]s?|cumpleaños|nombre|equipo|jef[ea]|"
    r"trabajo|familia|madre|padre|herman[oa]|prim[oa]|tí[oa]|abuel[oa]|novi[oa]|ayudante|vecin[oa]|amig[oa]|médic[oa]|casa|"
    r"piso|coche)\b"
    r"|\b(?:[Mm]oro em|[Pp]refiro|[Mm]eu nome|[Ee]u (?:não|sou|moro|tenho|gosto)|[Nn]ão (?:como|bebo|fumo)|"
    r"[Mm]inha (?:mulher|filha|mãe|irmã)|[Mm]eu (?:marido|filho|pai|irmão)|[Vv]ivo a|[Pp]referisco|[Mm]i chiamo|"
    r"[Nn]on (?:mangio|bevo|fumo)|[Ss]ono (?:allergic[oa]|vegan[oa]|vegetarian[oa])|[Hh]o (?:smesso|iniziato|cambiato)|"
    r"[Mm]i[oa] (?:marito|moglie|figli[oa]|fratello|sorella|madre)|[Ii]k (?:woon|werk|heet|hou|drink|ben|heb|eet)|"
    r"[Mm]ijn (?:man|vrouw|vriendin|vriend|zoon|dochter))\b"
    r"|\b[Яя] (?:живу|работаю|люблю|предпочитаю|ем|пью|не)\b|\b[Мм](?:ой|оя|еня|не) (?:зовут|нравится|муж|жена|сын|дочь|"
    r"собака|кот)"
    r"|(?:私|僕|俺)(?:は|の)|我(?:是|喜欢|住|在|叫|的|不|有)|(?:나는|저는|제 )"
)
"""What somebody says of themselves; a few forms of Portuguese, Italian, Dutch, Russian, Japanese, Chinese and Korean, too."""
_KIN: Final = (
    r"Mann|Frau|Sohn|Tochter|Mutter|Vater|Bruder|Schwester|Freundin|Freund|Kinder|Eltern|mari|femme|fils|fille|mère|père|frère|"
    r"sœur|copine|copain|enfants|parents|marido|mujer|hij[oa]s?|madre|padre|herman[oa]|novi[oa]|padres"
)
_OF_ONES_KIN: Final = (
    rf"(?:[A-ZÄÖÜ][a-zß-ÿ]+(?:s|’) (?:{_KIN}) (?:ist|hat|sind|haben|arbeitet|wohnt|studiert|zieht|kommt)|"
    rf"(?:Le|La|Les|L’|El|Los|Las) ?(?:{_KIN}) de [\w’' -]{{2,30}}? (?:est|a|ont|sont|travaille|habite|attend|está|es|ha|tiene|"
    r"trabaja|vive|viven|tienen|están|son))\b"
)
_FAMILY: Final = (
    r"(?:(?:Oma|Opa|Mama|Papa|Mutti|Vati|[Mm]eine? (?:Mutter|Vater|Schwester|Bruder|Frau|Mann|Tochter|Sohn)) "
    r"(?:ist (?:\w+ ){0,3}(?:gestürzt|gestorben|krank|operiert|ausgezogen|eingezogen|umgezogen|im Krankenhaus|im Heim|"
    r"wieder zu Hause)|hat sich|"
    r"wurde (?:\w+ ){0,3}operiert|hat (?:\w+ ){0,5}(?:gekündigt|geheiratet|verkauft|gekauft|bekommen))"
    r"|A (?:papá|mamá|mi \w+) l[oae] (?:operaron|ingresaron|despidieron|han \w+))\b"
)
_NEW: Final = (
    r"(?:Neue[rs]?|Nouve(?:au|lle)|Nuev[oa]) (?:Chefin?|(?:(?:Haus|Zahn)?[Aa]rzt|(?:Zahn)?[Ää]rztin)|Wohnung|Adresse|"
    r"(?:Handy)?[Nn]ummer|Auto|Rad|Laptop|Vermieter(?:in)?|Nachbar(?:in)?|Job|Stelle|chef(?:fe)?|médecin|dentiste|adresse|"
    r"numéro|voiture|voisine?|jef[ea]|médic[oa]|dentista|dirección|número|coche|vecin[oa])(?: ist| est| es)?:? \w"
    r"|(?:La nueva|El nuevo|La nouvelle|Le nouveau|Notre nouve(?:au|lle)|Nuestr[oa] nuev[oa]) \w+ (?:se llama|s['’]appelle|es|"
    r"est)\b"
)
OF_SOMEBODY: Final = re.compile(
    rf"^(?:(?P<name>{NAME}) "
    r"(?:(?:geht (?:\w+ ){0,3}in (?:Elternzeit|Mutterschutz|Rente|Pension|Karenz)|"
    r"leitet|studiert|arbeitet|wohnt|lebt|zieht|heiratet|kommt aus|ist (?:\w+ ){0,4}(?:gestorben|geboren|gezogen|"
    r"schwanger|krank|im Krankenhaus|im Heim)|hat (?:\w+ ){0,5}(?:verlassen|gekündigt|geheiratet|angefangen|aufgehört))"
    r"|(?:ya no |ya |ahora |no )?(?:vive|trabaja|estudia|tiene|soporta|se jubila|se casa|se muda|viene de|ha (?:terminado|"
    r"dejado|empezado|encontrado|muerto|nacido))"
    r"|(?:vit|habite|travaille|étudie|écrit|vend|rentre|déménage|se marie|marche|quitte|attend un(?:e fille| bébé| garçon)|"
    r"a (?:quitté|déménagé|commencé|arrêté|trouvé un|accepté|eu|été)|est (?:mort|morte|né|née|enceinte|parti|partie)))\b"
    rf"|{_OF_ONES_KIN}|{_FAMILY}|{_NEW}"
    r"|On (?:a|va) (?:signé|acheté|vendu|adopté|déménagé|emménagé|acheter|déménager|vendre|se marier)\b"
    r"|Je me suis (?:inscrite?|mariée?|fiancée?|installée?|mise? à|séparée?)\b"
    r"|¡(?:Hemos|Nos hemos|He) \w+|Desde [\w ]{2,20} (?:trabajo|voy|vivo|estudio)\b)"
)
"""Somebody, by name, and what only a person does."""


def is_bare_german(statement: str) -> bool:
    """Whether it leaves "ich" out: "Bin nach Graz gezogen"."""
    return _BARE.match(statement) is not None


def with_ich(statement: str) -> str:
    """A German sentence with "Ich" in front that leaves it out, or has it behind its verb ("Seit Mai wohne ich in Graz");
    others as they are."""
    if is_bare_german(statement):
        return f"Ich {statement[:1].lower()}{statement[1:]}"
    turned = _TURNED.match(statement)
    return statement if turned is None else f"Ich {turned['verb']} {turned['rest']}"
