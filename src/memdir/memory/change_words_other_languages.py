"""How German, Spanish and French say that something is over, done, mended, gained, paid or otherwise now: for each language
patterns whose group is what it is said of, and what a fact must tell of to be ended by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from memdir.memory.change_words import listed, root
from memdir.store.text.stopwords import STOP_WORDS

_NP: Final = r"([^.,;:!?()–—]{2,60}?)"
_END: Final = r"(?=\s*[.,;:!?()–—]|\s*$| (?:und|y|et|pour|para)\b)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeWords:
    """`rules`: a pattern, and what facts tell that it ends, None: anything that is about it. `changed`: words of a statement
    that says how something is after it changed. `negated`: of a fact, that something is not so."""

    marks: re.Pattern[str]
    """What a statement of the language holds; others are not looked at."""
    ignored: frozenset[str]
    """Roots of words that tell nothing."""
    rules: Callable[[], tuple[tuple[re.Pattern[str], re.Pattern[str] | None], ...]]
    changed: re.Pattern[str]
    negated: re.Pattern[str]
    not_meant: re.Pattern[str]
    """What is only planned, wished or supposed."""


def _rules(*rules: tuple[str, str]) -> Callable[[], tuple[tuple[re.Pattern[str], re.Pattern[str] | None], ...]]:
    """Compiled for the first statement of the language."""
    return cache(
        lambda: tuple((re.compile(rule), re.compile(tells, re.IGNORECASE) if tells else None) for rule, tells in rules)
    )


def _ignored(language: str, more: str) -> frozenset[str]:
    return frozenset(map(root, STOP_WORDS[language])) | listed(more)


_DE: Final = (
    r"(?:(?:[Dd](?:en|ie|as|em|er)|[Ee]ine?[nmr]?|[Mm]eine?[nmr]?|[Uu]nsere?[nmr]?|[Ss]eine?[nmr]?|[Ii]hre?[nmr]?|[Aa]lle) )?"
)
_DE_HAVE: Final = r"(?:^|[.,;:–] |\bund )(?:(?:[Ii]ch|[Ww]ir|[A-ZÄÖÜ]\w+) (?:habe?n?|hat|bin|ist|sind) |[Hh]ab |[Hh]aben )?"
_DE_HOW: Final = r"(?:(?:endlich|heute|gestern|gerade|jetzt|schon|letzte Woche|wieder|leider) )*"
_DE_IT: Final = rf"(?:^|[.,;:–] |\bund ){_DE}{_NP} (?:ist|sind|wurden?|war|waren) {_DE_HOW}"
_ES: Final = r"(?:(?:el|la|los|las|un|una|mi|mis|nuestr[oa]s?|su|sus|al|del) )?"
_ES_IT: Final = rf"(?:^|[.,;:¡–] |\by )(?:(?:El|La|Los|Las|el|la|los|las|[Mm]is?|[Nn]uestr[oa]s?) )?{_NP} "
_FR: Final = r"(?:(?:le|la|les|un|une|mon|ma|mes|notre|nos|son|sa|ses|du|des|au|aux|de la) |l['’]|d['’]|de )?"
_FR_HAVE: Final = r"(?:\b[Jj]['’]ai|\b[Oo]n a|\b[Nn]ous avons|\b[A-ZÀ-Þ]\w+ a|^)(?: enfin| déjà| aussi)* ?"
_FR_IT: Final = rf"(?:^|[.,;:–] |\bet )(?:(?:[Ll]e|[Ll]a|[Ll]es|[Mm]on|[Mm]a|[Mm]es|[Nn]otre|[Nn]os) |[Ll]['’])?{_NP} "

GERMAN: Final = ChangeWords(
    marks=re.compile(
        r"[äöüß]|\b(?:ich|wir|den|dem|der|die|das|bin|sind|aus|und|nicht|mehr|ist|wieder|jetzt|nun|meine?|unsere?|hat|hab|ab|mit)\b",
        re.IGNORECASE,
    ),
    ignored=_ignored(
        "german",
        "fahre fahrt nehme nimmt gehe geht mache macht habe haben hat bin sind ist esse trinke lese gerade jetzt nun heute "
        "gestern namens wurde wieder mehr neu neue neuer neuen montags dienstags mittwochs donnerstags freitags samstags "
        "sonntags euro",
    ),
    rules=_rules(
        (
            (
                rf"{_DE_HAVE}{_DE_HOW}{_DE}(?!\w+ hat \w+{_END}){_NP} {_DE_HOW}"
                rf"(?:verkauft|verschenkt|weggegeben|zurückgegeben|entsorgt|gekündigt|"
                rf"abbestellt|abgemeldet|aufgegeben|abgebrochen|beendet|aufgelöst|abgeschaltet|stillgelegt|"
                rf"gelöscht|deinstalliert|abgesetzt|abgeschafft|ersetzt|abgesagt|verlassen|abgegeben|gestoppt|storniert|"
                rf"geschenkt){_END}"
            ),
            "",
        ),
        (rf"{_DE_HAVE}{_DE_HOW}(?:[Mm]eine?[nmrs]?|[Uu]nsere?[nmrs]?|das) {_NP} geschlossen{_END}", ""),
        (rf"\b[Mm]it {_DE}{_NP} (?:aufgehört|Schluss gemacht){_END}|\b[Aa]ufgehört mit {_DE}{_NP}{_END}", ""),
        (
            (
                rf"{_DE_IT}(?:gestorben|tot|verkauft|vorbei|zu Ende|abgeschaltet|geschlossen|abgesagt|aufgelöst|"
                rf"eingestellt|verschwunden|ausgelaufen|abgelaufen|Geschichte|gekündigt|gestohlen){_END}"
            ),
            "",
        ),
        (rf"{_DE_IT}weg{_END}", r"\A(?!.*\b(?:arbeitet|wohnt|lebt|spielt|mag|Geburtstag|ist (?:mein|unser)\w*|hat eine?)\b)"),
        (
            rf"{_DE_IT}(?:umgezogen|weggezogen|ausgezogen){_END}",
            r"\b(?:wohn|leb|mitbewohner|nachbar|teil|wg\b|büro|sitz|laden|praxis)\w*",
        ),
        (
            (
                rf"^{_DE}{_NP} (?:habe ich|haben wir|hat [A-ZÄÖÜ]\w+) [^.;]{{0,40}}?(?:verkauft|verschenkt|geschenkt|gekündigt|"
                rf"abgegeben){_END}"
            ),
            "",
        ),
        (rf"\baus (?:dem|der) {_NP} (?:ausgetreten|ausgestiegen|ausgezogen){_END}", ""),
        (rf"(?:^|[.,;:–] |\bund ){_DE}{_NP} hat (?:zugemacht|geschlossen){_END}", ""),
        (
            rf"(?:^|[.,;:–] |\bund ){_DE}{_NP} hat (?:gekündigt|aufgehört|(?:uns|die Firma|das Team) verlassen){_END}",
            r"\b(?:arbeit|leite|verantwort|zuständig|betreu|chef|kolleg|team|unser|führt|gehör|kümmer|komm|macht|putz)\w*",
        ),
        (rf"^{_NP} \w+ (?:ich|wir) nicht mehr{_END}", ""),
        (rf"\bvon {_NP} (?:zu|auf|nach) [^.;]{{2,40}}? (?:umgezogen|gewechselt|umgestiegen|migriert){_END}", ""),
        (rf"{_DE}{_NP} hat (?:ihr|ein|das|einen|eine) (?:Baby|Kind|Sohn|Tochter|Jungen|Mädchen) bekommen", r"\bschwanger\b"),
        (rf"\b(?:[Ii]ch habe|[Ww]ir haben) (?:jetzt )?{_DE}{_NP}{_END}", r"\b(?:such|wart|bewerb)\w*"),
        (rf"\b[Kk]eine?[nmrs]? {_NP} mehr\b(?! (?:da|übrig|im Haus)\b)", ""),
        (rf"\bnicht mehr (?:(?:zum|zur|ins?|im|beim?|mit|nach|auf|an|am|für) )?{_DE}{_NP}{_END}", ""),
        (rf"\bdoch (?:nicht|keine?[nmrs]?) {_NP}{_END}", ""),
        (
            (
                rf"{_DE_HAVE}{_DE_HOW}{_DE}{_NP} (?:gelaufen|ausgelesen|durchgelesen|zu Ende gelesen|fertig ?(?:gelesen|"
                rf"gestellt)?|abgeschlossen|bestanden|abgegeben|eingereicht|geschafft|veröffentlicht|erledigt){_END}"
            ),
            (
                r"\b(?:trainier|les|lern|schreib|bau|arbeit(?!e?t? (?:bei|als|für)\b)|bereit|vorbereit|plan|muss|offen|todo|"
                r"frist|studier|mach)\w*"
            ),
        ),
        (
            rf"{_DE_HAVE}{_DE_HOW}{_NP} (?:zurückgezahlt|zurückgegeben|bezahlt|beglichen){_END}",
            r"\b(?:schuld|geliehen|rechnung|kredit|darlehen)\w*",
        ),
        (
            (
                rf"(?:^|[.,;:–] |\bund ){_DE}{_NP} (?:(?:geht|läuft|funktioniert|tut) wieder|(?:ist|"
                rf"sind) (?:wieder )?(?:repariert|heil|ganz|behoben|gelöst|gesund|in Ordnung|okay|ok|da|dicht|sauber|warm|"
                rf"online|erreichbar)){_END}"
            ),
            (
                r"\b(?:kaputt|defekt|problem|fehler|leck|undicht|krank|verletzt|weh|schmerz|gebrochen|störung|ausfall|aus\b|"
                r"tropf|werkstatt|reparatur)\w*"
            ),
        ),
        (
            (
                rf"\b(?:esse|trinke|rauche|spiele|mache|gehe|nehme|fahre|isst|trinkt|raucht|spielt) wieder (?:(?:zum|zur|"
                rf"ins?|mit) )?{_DE}{_NP}{_END}"
            ),
            r"\b(?:keine?[nmrs]?|nicht|nie|aufgehört|pause)\b",
        ),
        (
            (
                rf"{_DE_HAVE}{_DE_HOW}{_DE}{_NP} (?:gefunden|bekommen|gekauft|erhalten|ergattert){_END}|{_DE_IT}(?:da|"
                rf"angekommen|gekommen){_END}"
            ),
            r"\b(?:such|spar|möchte|will|wart|brauch|plan|bestell|bewerb)\w*",
        ),
        (
            (
                rf"(?:^|[.,;:–] |\bund ){_DE}{_NP} (?:wurde|ist|wird|sind) (?:[^.;]|(?<=\d)[.]){{0,40}}?(?:verschoben|"
                rf"verlegt|vertagt|vorgezogen)\b"
            ),
            r"\d|\b(?:\w+tags?|geplant|termin|januar|februar|märz|april|mai|juni|juli|august|\w+ember|oktober)\b",
        ),
        (rf"(?:^|, )[UuMm](?:nser|ein)e? neue[rs]? {_NP} (?:ist|heißt)\b", r"\b(?:ist|heißt)\b"),
    ),
    changed=re.compile(r"\b(?:jetzt|nun|inzwischen|mittlerweile|neuerdings|ab (?:sofort|heute|morgen|jetzt))\b"),
    negated=re.compile(r"\b(?:keine?[nmrs]?|nicht|nie)\b", re.IGNORECASE),
    not_meant=re.compile(
        r"\b(?:wird|werden|würden?|will|wollen?|möchten?|soll(?:te|ten)?|muss|müssen|könnten?|falls|wenn|"
        r"vielleicht)\b(?! (?:auf|am|um)\b)"
    ),
)
SPANISH: Final = ChangeWords(
    marks=re.compile(
        r"[áéíóúñ¡¿]|\b(?:he|ha|hemos) \w+[ai]do\b|\b(?:el|la|los|las|del?|mis?|no|ya|vuelvo|ten(?:go|emos)|una?|se|es)\b",
        re.IGNORECASE,
    ),
    ignored=_ignored(
        "spanish",
        "tengo tenemos tiene voy vamos va estoy esta uso hago tomo como bebo soy ahora ya ayer hoy llamado llamada martes "
        "lunes miércoles jueves viernes sábado domingo euros les nos me te",
    ),
    rules=_rules(
        (
            (
                rf"\b(?:[Vv]end(?:í|imos|ió)|[Hh]e vendido|[Hh]emos vendido|[Rr]egal(?:é|ó|amos)|[Cc]ancel(?:é|ó|amos)|"
                rf"[Dd]ej(?:é|ó|amos)|[Hh]e dejado|[Aa]bandon(?:é|ó)|[Cc]err(?:é|amos)|[Ee]limin(?:é|amos)|[Bb]orr(?:é|amos)|"
                rf"[Dd]esinstal(?:é|amos)|[Dd]i de baja|[Aa]nul(?:é|amos)|[Rr]eemplac(?:é|amos))(?: de)? {_ES}{_NP}{_END}"
            ),
            "",
        ),
        (rf"\b[Yy]a no \w+ (?:(?:a|al|en|con|de|del) )?{_ES}{_NP}{_END}", ""),
        (
            (
                rf"{_ES_IT}(?:murió|ha muerto|falleció|cerró|se acabó|terminó|fue cancelad[oa]|se canceló|está cancelad[oa]|"
                rf"ya no existe)(?=\s*[.,;:!?]|\s*$| (?:ayer|anoche|para siempre|definitivamente|la semana|el mes|el año))"
            ),
            "",
        ),
        (rf"\b(?:[Aa]l final|[Rr]esulta que) no (?:soy|es|tengo|tiene) {_NP}{_END}", ""),
        (
            (
                rf"\b(?:[Tt]ermin(?:é|amos)|[Aa]cab(?:é|amos)|[Hh]e terminado|[Aa]prob(?:é|amos)|[Cc]orrí|[Ll]eí|"
                rf"[Ee]ntregu(?:é|amos)|[Pp]ubliqu(?:é|amos))(?: de \w+)? {_ES}{_NP}{_END}"
            ),
            r"\b(?:leyendo|entren|estudi|prepar|escrib|aprend|haciendo|plazo|pendiente)\w*",
        ),
        (
            rf"\b(?:[Dd]evolv(?:í|imos)|[Pp]agu(?:é|amos)|[Dd]evuelto)(?: a)? {_NP}{_END}",
            r"\b(?:deb(?:o|e|emos)|préstamo|factura|deuda)\b",
        ),
        (
            (
                rf"{_ES_IT}ya (?:funciona|está arreglad[oa]|va)\b|\b(?:[Aa]rregl(?:é|aron|amos)|[Rr]epar(?:é|"
                rf"aron)) {_ES}{_NP}{_END}"
            ),
            r"\b(?:rot[oa]|averiad[oa]|no funciona|problema|fallo|estropead[oa]|enferm[oa]|duele|gotea)",
        ),
        (rf"\b[Rr]ecog(?:í|imos) {_ES}{_NP}{_END}", r"\b(?:taller|reparación|tintorería)\b"),
        (rf"\b(?:[Tt]engo|[Tt]enemos) (?:una? )?(?:nuev[oa] )?{_NP} nuev[oa]\b", r"\b(?:es|se llama)\b"),
        (rf"{_ES_IT}(?:salió|volvió|regresó) del?\b", r"\b(?:hospital|viaje|fuera|vacaciones|baja)\b"),
        (
            rf"{_ES_IT}(?:se (?:aplazó|retrasó|movió|adelantó)|fue aplazad[oa]|pasa) (?:al?|para)\b",
            r"\d|\b(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo|fecha|plazo)\b",
        ),
        (rf"\b(?:[Vv]uel(?:vo|ve|vemos)|[Hh]e vuelto|[Hh]a vuelto) a \w+ {_ES}{_NP}{_END}", r"\b(?:no|nunca|dejé)\b"),
        (
            (
                rf"(?:[Ee]ncontr(?:é|amos)|[Cc]onsegu(?:í|imos)|[Cc]ompr(?:é|amos)|[Rr]eserv(?:é|amos)|"
                rf"[Mm]e dieron) {_ES}{_NP}{_END}"
            ),
            r"\b(?:busc|ahorr|quier|esper|neces)\w*",
        ),
    ),
    changed=re.compile(r"\b(?:ahora|desde (?:hoy|ayer|este|esta)|a partir de|últimamente)\b"),
    negated=re.compile(r"\b(?:no|nunca|jamás)\b", re.IGNORECASE),
    not_meant=re.compile(r"\b(?:si|quizás?|tal vez|quiero|quisiera|voy a|vamos a|debería|podría)\b"),
)
FRENCH: Final = ChangeWords(
    marks=re.compile(
        r"[àâçéèêëîïôûù]|\b[jld]['’]|\bn['’](?!t\b)|\b(?:le|la|les|de|je|plus|mon|ma|nous|on|est)\b", re.IGNORECASE
    ),
    ignored=_ignored(
        "french",
        "j ai as a avons suis vais va prends prend lis mange bois fais fait maintenant hier aujourd hui lundi mardi mercredi "
        "jeudi vendredi samedi dimanche euros plus nouveau nouvelle",
    ),
    rules=_rules(
        (
            (
                rf"{_FR_HAVE}(?:[Vv]endu|[Rr]endu|[Dd]onné|[Rr]ésilié|[Aa]nnulé|[Aa]rrêté|[Qq]uitté|[Aa]bandonné|[Ss]upprimé|"
                rf"[Dd]ésinstallé|[Ff]ermé|[Jj]eté|[Rr]emplacé) {_FR}{_NP}{_END}"
            ),
            "",
        ),
        (
            (
                rf"\b(?:[Nn]e |[Nn]['’])\w+(?: \w+)? plus (?:(?:à|chez|en|dans|avec) )?{_FR}{_NP}{_END}|"
                rf"^[Pp]lus de {_NP}{_END}"
            ),
            "",
        ),
        (
            (
                rf"{_FR_IT}(?:est (?:morte?|décédée?|fermée?|vendue?|annulée?|terminée?|finie?|volée?)|a fermé|"
                rf"n['’]existe plus)(?=\s*[.,;:!?]|\s*$| (?:hier|ce matin|cette nuit|définitivement|la semaine|le mois|"
                rf"l['’]année))"
            ),
            "",
        ),
        (rf"\b[Ff]inalement,? (?:je ne suis|il n['’]est|elle n['’]est|ce n['’]est|je n['’]ai) pas {_NP}{_END}", ""),
        (
            rf"{_FR_HAVE}(?:[Ff]ini|[Tt]erminé|[Rr]éussi|[Cc]ouru|[Pp]ublié)(?: de \w+)? {_FR}{_NP}{_END}",
            r"\b(?:lis\b|entraîn|apprend|prépar|écri|étudi|en cours|échéance|à faire)\w*",
        ),
        (rf"{_FR_IT}est (?:enfin )?(?:arrivée?|là)\b", r"\battend\w*"),
        (rf"\b(?:désinscrite?|désabonnée?)s? (?:de |du |des |d['’]){_FR}{_NP}{_END}", ""),
        (rf"{_FR_HAVE}(?:[Rr]emboursé|[Pp]ayé) {_FR}{_NP}{_END}", r"\b(?:dois|doit|devons|dette|prêt|facture|emprunt)\w*"),
        (
            rf"{_FR_IT}(?:remarche|refonctionne|est réparée?|marche (?:à|de) nouveau)\b",
            r"\b(?:panne|cassée?|problème|ne marche pas|malade|mal\b|fuit|bug)",
        ),
        (
            rf"\b(?:mange|bois|fume|vais|joue|fais) (?:de|à) nouveau (?:(?:à|au) )?{_FR}{_NP}{_END}",
            r"\b(?:pas|plus|jamais|arrêté)\b",
        ),
        (
            rf"{_FR_HAVE}(?:[Tt]rouvé|[Aa]cheté|[Oo]btenu|[Rr]eçu) {_FR}{_NP}{_END}",
            r"\b(?:cherch|économis|veux|voud|attend|besoin|location|loue|louons)\w*",
        ),
    ),
    changed=re.compile(r"\b(?:maintenant|désormais|dorénavant|à partir d)"),
    negated=re.compile(r"\b(?:pas|jamais)\b", re.IGNORECASE),
    not_meant=re.compile(r"\b(?:si|peut-être|voudrais|aimerais|vais|allons|devrais|pourrais)\b(?! (?:de|à) nouveau| plus)"),
)
OTHER_LANGUAGES: Final = (GERMAN, SPANISH, FRENCH)
