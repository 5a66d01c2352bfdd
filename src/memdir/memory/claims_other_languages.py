"""Claims in German, Spanish and French, by the same attributes as the English ones: what is said in one language replaces what
was said in another. Fewer forms than in English: home, work, birthdays, people, tastes, tools, deadlines, decisions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from memdir.memory.aspects import HOW

NAME: Final = r"[A-ZÀ-ÞА-Я](?=[\w'’-]*[a-zà-ÿа-я\d])[\w'’-]+(?: (?!I['’])[A-ZÀ-ÞА-Я][\w'’-]+){0,2}"
"""Of a person or a thing, in any language with capitals: one to three words."""
_V: Final = r"(?P<value>[^.,;!?()]{2,60}?)"
_OLD: Final = r"[^.,;!?()]{2,40}?"
_STOP: Final = r"\s*[.,;!?(]|\s*$"
_YEARS: Final = r"(?P<value>\w[\w-]*(?: (?:y|et) \w+)?)"
"""A number in figures or in words, of Spanish and French."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """`marks`: what a sentence of the language holds, so that others are not looked at. `rules`: attribute, whether it has one
    value, pattern with `value`, and `who` for others than the user; a name said besides has `aside`. `what` names the attribute
    by `attributes`, of which `aspects` are told apart as in `memory.aspects`: `how:` and `colour` or the word itself;
    and of what somebody drinks the `occasion`."""

    marks: re.Pattern[str]
    rules: Callable[[], tuple[tuple[str, bool, re.Pattern[str]], ...]]
    attributes: dict[str, str]
    aspects: tuple[tuple[str, re.Pattern[str]], ...]
    colours: frozenset[str]
    occasion: re.Pattern[str]
    former: re.Pattern[str]
    not_meant: re.Pattern[str]
    no_who: frozenset[str]

    def aspect_of(self, value: str, attribute: str, statement: str) -> str:
        """As `memory.aspects.aspect_of`."""
        if attribute == "drinks":
            occasion = self.occasion.search(statement)
            return "" if occasion is None else occasion[0]
        for aspect, pattern in self.aspects:
            found = pattern.match(value)
            if found is not None:
                word = found.groupdict().get("word")
                return aspect if word is None else f"{HOW}{'colour' if word in self.colours else word}"
        return ""


def _aspects(*, when: str, where: str, how_many: str, kind: str, how: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    told = {"when": when, "where": where, "how many": how_many, "kind": kind, "how": how}
    return tuple((aspect, re.compile(pattern)) for aspect, pattern in told.items())


def _rules(*rules: tuple[str, bool, str]) -> Callable[[], tuple[tuple[str, bool, re.Pattern[str]], ...]]:
    """Compiled for the first statement of the language."""
    return cache(lambda: tuple((attribute, single, re.compile(pattern)) for attribute, single, pattern in rules))


_DE_END: Final = (
    r"(?= (?:und|aber|weil|seit|wo|mit|für|statt|anstatt|denn|da|jetzt|nun|wieder|heute|dort|in einer|im (?:Januar|Februar|"
    rf"März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember))\b|{_STOP})"
)
_DE_PERSON: Final = (
    r"Frau|Mann|Partnerin|Partner|Freundin|Freund|Sohn|Tochter|Mutter|Vater|Bruder|Schwester|Hund|Hündin|Katze|Kater|Chefin|"
    r"Chef|Zahnärztin|Zahnarzt|Ärztin|Arzt|Vermieterin|Vermieter|Nachbarin|Nachbar"
)
_DE_KIN: Final = (
    rf"{_DE_PERSON}|Kollegin|Kollege|Onkel|Tante|Oma|Opa|Großmutter|Großvater|Cousine|Cousin|Nichte|Neffe|Kind|Kinder|Eltern|"
    r"Enkelin|Enkel|Mitbewohnerin|Mitbewohner"
)
_DE_NUMBER: Final = (
    r"\d{1,3}|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|(?:drei|vier|fünf|sech|sieb|acht|neun)zehn|"
    r"(?:\w+und)?(?:zwan|drei|vier|fünf|sech|sieb|acht|neun)[zß]ig"
)
_DE_WHO: Final = (
    rf"(?:(?:[Mm]ein|[Uu]nser)e? (?:\w+e[rsn]? )?(?:{_DE_KIN}) )?(?P<who>[Ii]ch|[Ww]ir|{NAME})"
    r"(?:, (?:mein|unser)e?[nmrs]? [^,.;]{2,40},)?"
)
_TITLE: Final = r"(?:(?:Frau |Herr )?(?:(?:Dr|Prof)\. )*|(?:el|la) (?:doctora?|señora?) |(?:le|la) docteure? )"
_DE_OWN: Final = r"[Mm]eine? (?:neue[rsn]? |alte[rsn]? |beste[rsn]? |jetzige[rsn]? )?"
_DE_AS: Final = r"(?: als [\w-]+(?: [\w-]+)?)?"
_DE_HOW: Final = (
    r"(?: (?:jetzt|nun|derzeit|wieder|immer noch|noch|auch|inzwischen|heute|momentan|zurzeit|seit (?:(?:\S+ ){1,3}(?:Jahren?|"
    r"Monate?n?|Wochen)|\S+(?: \d{4})?)))*"
)
GERMAN: Final = Language(
    marks=re.compile(
        r"\b(?:[Ii]ch|[Ww]ir|[Mm]eine?[nmrs]?|[Uu]nsere?[nmrs]?|wohnt|lebt|arbeitet|heißt|nutzt|verwendet|benutzt|läuft|"
        r"trinkt|bevorzugt|gezogen|umgestiegen|gewechselt|allergisch|spricht|Frist|Abgabe)\b"
    ),
    rules=_rules(
        ("lives in", True, rf"{_DE_WHO} (?:wohn(?:e|t|en)|leb(?:e|t|en)){_DE_HOW}(?: mit [^.;:]{{3,80}}?)? in {_V}{_DE_END}"),
        (
            "lives in", True,
            rf"{_DE_WHO} (?:bin|ist|sind)(?: \w+){{0,3}}? (?:von {_OLD} )?nach {_V} (?:gezogen|umgezogen|übergesiedelt)\b",
        ),
        ("lives in", True, rf"{_DE_WHO} zog(?:en)?(?: \w+){{0,2}}? (?:von {_OLD} )?nach {_V}{_DE_END}"),
        (
            "works at", True,
            rf"{_DE_WHO} arbeite(?:t|n)?{_DE_HOW}{_DE_AS} (?:bei|beim|für|im|am|an|in) (?:der |dem |einem? )?{_V}{_DE_END}",
        ),
        ("works at", True, rf"{_DE_WHO} (?:habe|hat)(?: \w+){{0,3}}? bei {_V} (?:angefangen|begonnen)\b"),
        ("birthday", True, r"[Mm]ein Geburtstag ist (?:am |der )?(?P<value>\d[^,;!?()]{2,30}?)(?=\.?\s*$|[,;])"),
        ("birthday", True, rf"(?P<who>{NAME}) hat am (?P<value>\d[^,;!?()]{{2,30}}?) Geburtstag"),
        ("", True, rf"{_DE_OWN}(?P<what>{_DE_PERSON}) (?:heißt|ist) (?P<value>{_TITLE}{NAME})"),
        ("", True, rf"[Mm]eine? (?P<what>{_DE_PERSON}) (?P<value>{NAME})\b(?P<aside>)"),
        (
            "", True,
            (
                rf"\b(?:[Mm]ein|[Uu]nser)e? (?:\w+e[rsn]? )?(?P<what>(?!(?:{_DE_KIN})\b)[A-ZÄÖÜ][\w-]+) (?:ist|lautet|heißt|"
                rf"steht|liegt|beginnt)(?: jetzt| nun| inzwischen| noch| wieder)* {_V}{_DE_END}"
            ),
        ),
        (
            "age", True,
            rf"{_DE_WHO} (?:bin|ist)(?: jetzt| schon| erst| nun)* (?P<value>{_DE_NUMBER})(?: Jahre(?: alt)?)?(?={_STOP})",
        ),
        ("editor", True, rf"{_DE_WHO} schreib(?:e|t)(?: \w+){{0,3}} (?:in|mit) (?P<value>[A-Z][\w.+-]+){_DE_END}"),
        ("editor", True, rf"{_DE_WHO} (?:benutze|benutzt|verwende|verwendet|nutze|nutzt){_DE_HOW} {_V} als Editor\b"),
        ("drinks", True, rf"{_DE_WHO} trink(?:e|t)(?: jetzt| nun| nur noch| meistens| morgens| am liebsten)* {_V}{_DE_END}"),
        (
            "due", True,
            (
                r"(?:Frist|Abgabe|Deadline|Abgabetermin) (?:von|für) (?:das |die |den )?(?:Projekt )?(?P<who>[\w-]+) (?:ist|"
                r"wurde auf)"
                r"(?: jetzt| nun)?(?: der| am| den)? (?P<value>\d[^,;!?()]{2,30}?)(?: verschoben)?(?=\.?\s*$|[,;])"
            ),
        ),
        ("uses", False, rf"Projekt (?P<who>{NAME}) (?:nutzt|verwendet|benutzt|läuft auf|setzt auf){_DE_HOW} {_V}{_DE_END}"),
        (
            "uses", False,
            (
                rf"(?:Projekt )?(?P<who>{NAME}) ist(?: \w+){{0,2}}? von {_OLD} (?:auf|zu) {_V} "
                r"(?:umgestiegen|gewechselt|umgezogen)\b"
            ),
        ),
        ("due", True, r"Projekt (?P<who>[\w-]+) (?:soll|muss) bis (?:zum )?(?P<value>\d[^,;!?()]{2,30}?) fertig\b"),
        ("allergy", False, rf"{_DE_WHO} (?:bin|ist) allergisch (?:gegen|auf) {_V}{_DE_END}"),
        ("allergy", False, rf"{_DE_WHO} (?:bin|ist) (?:gegen|auf) {_V} allergisch\b"),
        ("dislikes", False, rf"{_DE_WHO} (?:hass(?:e|t)|mag keine?n?|mag nicht) {_V}{_DE_END}"),
        ("prefers", False, rf"{_DE_WHO} (?:mag|liebe|liebt|bevorzug(?:e|t)) {_V}{_DE_END}"),
        ("speaks", False, rf"{_DE_WHO} (?:spreche|spricht) {_V}{_DE_END}"),
        ("habit", False, rf"{_DE_WHO} (?P<value>\w+ (?:immer|nie|jeden \w+) [^.,;!?()]{{2,50}}?){_DE_END}"),
        (
            "decision", False,
            rf"(?P<who>[Ww]ir|[Ii]ch) (?:haben|habe)(?: \w+){{0,4}} (?:beschlossen|entschieden),? {_V}{_DE_END}",
        ),
    ),
    attributes={
        "frau": "partner", "mann": "partner", "partnerin": "partner", "freundin": "partner", "freund": "partner", "sohn": "son",
        "tochter": "daughter", "mutter": "mother", "vater": "father", "bruder": "brother", "schwester": "sister", "hund": "dog",
        "hündin": "dog", "katze": "cat", "kater": "cat", "chef": "boss", "chefin": "boss", "zahnarzt": "dentist",
        "zahnärztin": "dentist", "arzt": "doctor", "ärztin": "doctor", "vermieter": "landlord", "vermieterin": "landlord",
        "nachbar": "neighbour", "nachbarin": "neighbour", "lieblingseditor": "editor", "lieblingsgetränk": "drinks",
    },
    aspects=_aspects(
        when=(
            r"(?:(?:am|um|ab|bis|seit|im|jeden|jede) )?(?:\d{1,2}(?::\d\d| Uhr|\.)|(?:Mon|Diens|Donners|Frei|Sams|Sonn)tags?\b|"
            r"Mittwochs?\b|morgens|abends|mittags|nachts|Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|"
            r"November|Dezember)"
        ),
        where=r"(?:in|im|auf|an|am|bei|beim|neben|hinter|unter|über|vor|gegenüber|zwischen|nahe)\b",
        how_many=rf"(?:etwa |ungefähr |nur )?(?:[€$]?\d|(?:{_DE_NUMBER})\b)",
        kind=r"eine?n?\b",
        how=r"(?:(?:sehr|zu|ziemlich|noch|nicht|immer|ganz|recht|wirklich|mehr) )*(?P<word>[a-zäöüß]+)$",
    ),
    colours=frozenset("blau rot grün gelb schwarz weiß grau braun rosa lila orange hell dunkel".split()),  # noqa: SIM905
    occasion=re.compile(r"\b(?:morgens|mittags|nachmittags|abends|(?:am|zum) (?:Morgen|Mittag|Abend|Frühstück|Essen))\b"),
    former=re.compile(
        r"\b(?:von|statt|anstatt|nicht mehr (?:in|bei|mit|für)) (?P<former>[^.,;!?()]{2,40}?)"
        r"(?= (?:nach|auf|zu|und|gezogen|umgestiegen|gewechselt)\b|\s*[.,;!?(]|\s*$)"
    ),
    not_meant=re.compile(
        r"^(?:wenn|falls|ob|vielleicht|soll(?:te|en)?|würde|könnte|kann|wer|was|warum|wie|wann|wo)\b|"
        r"\b(?:vielleicht|würde|wäre|hätte|möchte|überlege|frage mich|angeblich|laut|früher|will nach)\b",
        re.IGNORECASE,
    ),
    no_who=frozenset(
        (
            *("der", "die", "das", "ein", "eine", "es", "er", "sie", "man", "im", "in", "am", "heute", "gestern", "morgen"),
            *("dort", "hier", "dann", "danach", "seitdem", "jetzt", "niemand", "jemand", "wer", "was", "projekt", "niemals"),
        )
    ),
)  # fmt: skip

_ES_END: Final = (
    r"(?= (?:y|pero|porque|desde|con|para|donde|ahora|en (?:lugar|vez) de|otra vez|en (?:enero|febrero|marzo|abril|mayo|"
    rf"junio|julio|agosto|septiembre|octubre|noviembre|diciembre)|la semana|el mes|el año|hace)\b|{_STOP})"
)
_ES_PERSON: Final = (
    r"esposa|mujer|marido|esposo|pareja|novia|novio|hijo|hija|madre|padre|hermano|hermana|perro|perra|gato|gata|jefe|jefa|"
    r"dentista|médico|médica|vecino|vecina"
)
_ES_KIN: Final = rf"{_ES_PERSON}|amig[oa]|tí[oa]|abuel[oa]|prim[oa]|sobrin[oa]|compañer[oa]|niet[oa]"
SPANISH: Final = Language(
    marks=re.compile(
        r"\b(?:[Vv]iv(?:o|e|imos)|[Mm]ud(?:é|ó|amos|ado)|[Tt]rabaj(?:o|a|amos|ar)|"
        r"(?:[Mm]i|[Nn]uestr[oa]) \w+ (?:\w+ )?(?:es|está|se)|años|"
        r"[Mm]e (?:he|gust\w*|enc\w*)|cumpleaños|[Bb]eb(?:o|e)|[Pp]refier(?:o|e)|alérgic[oa]|proyecto|plazo|límite|"
        r"usa|utiliza|decid\w+|gustan?|encantan?|[Oo]dio|habl(?:o|a)|[Uu]so|cambió|pasó|migró)\b"
    ),
    rules=_rules(
        (
            "lives in", True,
            (rf"(?:\b[Vv]iv(?:o|imos)|(?P<who>{NAME})(?:, mi [^,.;]{{2,40}},)?(?: ya| ahora)? vive)(?: ahora|"
            rf" todavía)? en {_V}{_ES_END}"),
        ),
        (
            "lives in", True,
            (
                r"(?:\b[Mm]e (?:mudé|he mudado)|\b[Nn]os (?:mudamos|hemos mudado)|"
                rf"(?P<who>{NAME}) se (?:mudó|ha mudado))(?: \w+){{0,2}}?(?: de {_OLD})? a {_V}{_ES_END}"
            ),
        ),
        (
            "works at", True,
            (
                rf"(?:\b[Tt]rabaj(?:o|amos)|(?P<who>{NAME})(?:, mi [^,.;]{{2,40}},)?(?: ahora)? trabaja)(?: ahora|"
                rf" actualmente)?(?: (?:como|de) [\w-]+(?: [\w-]+)?)? "
                rf"(?:en|para|con) {_V}{_ES_END}"
            ),
        ),
        (
            "works at", True,
            rf"(?:\b[Ee]mpecé|\b[Hh]e empezado|(?P<who>{NAME}) (?:empezó|ha empezado)) a trabajar (?:en|para) {_V}{_ES_END}",
        ),
        ("birthday", True, rf"\b[Mm]i cumpleaños es (?:el )?{_V}{_ES_END}"),
        ("birthday", True, rf"\b[Ee]l cumpleaños de (?P<who>{NAME}) es (?:el )?{_V}{_ES_END}"),
        ("", True, rf"\b[Mm]i (?:nuev[oa] |mejor )?(?P<what>{_ES_PERSON}) (?:se llama|es) (?P<value>{_TITLE}{NAME})"),
        (
            "", True,
            (
                rf"\b(?:[Mm]i|[Nn]uestr[oa]) (?:nuev[oa] )?(?P<what>(?!(?:{_ES_KIN})\b)[a-záéíóúñ]+(?: favorit[oa])?)"
                rf"(?: ahora)? (?:es|está|empieza)(?: ahora| todavía)? {_V}{_ES_END}"
            ),
        ),
        ("age", True, rf"(?:\b[Tt]engo|(?P<who>{NAME})(?: ya| ahora)? tiene)(?: ya| ahora)? {_YEARS} años(?! de)"),
        ("editor", True, rf"\b[Uu]so {_V} como editor\b"),
        ("drinks", True, rf"(?:\b[Bb]ebo|(?P<who>{NAME}) bebe)(?: ahora| siempre| solo| solamente)? {_V}{_ES_END}"),
        (
            "due", True,
            (
                r"(?:[Pp]lazo|[Ff]echa límite|[Ee]ntrega) de(?:l proyecto)? (?P<who>[\w-]+) "
                r"(?:es|se movió al)(?: ahora)? (?:el )?"
                rf"{_V}{_ES_END}"
            ),
        ),
        ("uses", False, rf"[Pp]royecto (?P<who>{NAME})(?: ahora)? (?:usa|utiliza|funciona con) {_V}{_ES_END}"),
        ("uses", False, rf"(?:[Pp]royecto )?(?P<who>{NAME}) (?:cambió|pasó|migró) de {_OLD} a {_V}{_ES_END}"),
        ("allergy", False, rf"(?:\b[Ss]oy|(?P<who>{NAME}) es) alérgic[oa] a(?:l| la| los| las)? {_V}{_ES_END}"),
        ("dislikes", False, rf"(?:\b[Nn]o me gustan?|\b[Oo]dio|\b[Dd]etesto) {_V}{_ES_END}"),
        ("prefers", False, rf"[Aa] (?P<who>{NAME}) le (?:gustan?|encantan?) {_V}{_ES_END}"),
        ("prefers", False, rf"(?:\b[Pp]refiero|\b[Mm]e (?:gustan?|encantan?)|(?P<who>{NAME}) prefiere) {_V}{_ES_END}"),
        ("speaks", False, rf"(?:\b[Hh]ablo|(?P<who>{NAME}) habla) {_V}{_ES_END}"),
        ("habit", False, rf"\b(?P<value>(?:[Ss]iempre|[Nn]unca|[Cc]ada \w+) \w+o [^.,;!?()]{{2,50}}?){_ES_END}"),
        ("decision", False, rf"\b(?:[Hh]emos decidido|[Dd]ecidimos|[Hh]e decidido|[Dd]ecidí) {_V}{_ES_END}"),
    ),
    attributes={
        "esposa": "partner", "mujer": "partner", "marido": "partner", "esposo": "partner", "pareja": "partner",
        "novia": "partner", "novio": "partner", "hijo": "son", "hija": "daughter", "madre": "mother", "padre": "father",
        "hermano": "brother", "hermana": "sister", "perro": "dog", "perra": "dog", "gato": "cat", "gata": "cat", "jefe": "boss",
        "jefa": "boss", "dentista": "dentist", "médico": "doctor", "médica": "doctor", "vecino": "neighbour",
        "vecina": "neighbour", "bebida favorita": "drinks", "editor favorito": "editor",
    },
    aspects=_aspects(
        when=(
            r"(?:(?:el|los|a las?|en|cada) )?(?:\d{1,2}(?::\d\d| de \w+)|(?:lunes|martes|miércoles|jueves|viernes|sábados?|"
            r"domingos?|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)\b)|"
            r"a las? \w+|por la (?:mañana|tarde|noche)"
        ),
        where=r"(?:en|al lado|detrás|cerca|junto|encima|debajo|enfrente|frente|entre)\b",
        how_many=r"(?:unos |unas |solo )?(?:[€$]?\d|(?:dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez)\b)",
        kind=r"una?\b",
        how=r"(?:(?:muy|bastante|demasiado|un poco|todavía|no|más) )*(?P<word>[a-záéíóúñ]+)$",
    ),
    colours=frozenset(
        "azul rojo roja verde amarillo amarilla negro negra blanco blanca gris marrón rosa naranja morado morada".split()  # noqa: SIM905
    ),
    occasion=re.compile(r"\b(?:por la (?:mañana|tarde|noche)|en el (?:desayuno|almuerzo)|con la (?:comida|cena))\b"),
    former=re.compile(
        r"\b(?:mud|cambi|pas|migr)\w+ (?:\w+ )?de (?P<former>[^.,;!?()]{2,40}?)(?= a\b)|\b(?:ya no (?:en|con)|en (?:lugar|"
        r"vez) de) (?P<instead>[^.,;!?()]{2,40}?)(?=\s*[.,;!?(]|\s*$)"
    ),
    not_meant=re.compile(
        r"^¿|^(?:si|quizás?|tal vez|ojalá)\b|\b(?:quizás?|tal vez|me gustaría|sería|podría|según|dicen que|antes vivía)\b",
        re.IGNORECASE,
    ),
    no_who=frozenset(("el", "la", "los", "las", "un", "una", "ella", "él", "yo", "nadie", "alguien", "ayer", "hoy", "ahora")),
)  # fmt: skip

_FR_END: Final = (
    r"(?= (?:et|mais|parce|depuis|avec|pour|où|au lieu|maintenant|désormais|en (?:janvier|février|mars|avril|mai|juin|juillet|"
    rf"août|septembre|octobre|novembre|décembre)|la semaine|le mois|l['’]année|il y a)\b|{_STOP})"
)
_FR_PERSON: Final = (
    r"femme|mari|compagne|compagnon|copine|copain|fils|fille|mère|père|frère|sœur|chien|chienne|chat|chatte|chef|cheffe|"
    r"patron|patronne|dentiste|médecin|voisin|voisine"
)
_FR_KIN: Final = rf"{_FR_PERSON}|amie?|oncle|tante|grand-mère|grand-père|cousine?|neveu|nièce|collègue|petite?-fil(?:s|le)"
FRENCH: Final = Language(
    marks=re.compile(
        r"\b(?:[Jj]e \w+|[Nn]ous \w+|(?:[Mm](?:on|a)|[Nn]otre) \w+ (?:\w+ )?(?:s['’]|est|se trouve)|ans|"
        r"habite|vit|travaille|ouvre|quitté|déménagé|préfère|aime|boit|utilise|projet|allergique|anniversaire|limite|parle|passé|migré)\b|\b[Jj]['’]"
    ),
    rules=_rules(
        (
            "lives in", True,
            (
                rf"(?:\b[Jj]['’]habite|\b[Jj]e vis|\b[Nn]ous (?:habitons|vivons)|(?P<who>{NAME})(?:, (?:mon|"
                rf"ma) [^,.;]{{2,40}},)? (?:habite|vit))"
                rf"(?: maintenant| toujours| désormais)? (?:à|en|au|aux) {_V}{_FR_END}"
            ),
        ),
        (
            "lives in", True,
            (
                r"(?:\b[Jj]['’]ai (?:dé|em)ménagé|\b[Nn]ous avons (?:dé|em)ménagé|"
                rf"(?P<who>{NAME}) a (?:dé|em)ménagé)(?: \w+){{0,2}}?(?: de {_OLD})?"
                rf" (?:à|en|au) {_V}{_FR_END}"
            ),
        ),
        (
            "works at", True,
            (
                rf"(?:\b[Jj]e travaille|(?P<who>{NAME})(?:, (?:mon|ma) [^,.;]{{2,40}},)? travaille)(?: maintenant| désormais|"
                rf" actuellement)?(?: comme [\w-]+(?: [\w-]+)?)? "
                rf"(?:chez|pour|à la|à l['’]|au|aux|dans) ?{_V}{_FR_END}"
            ),
        ),
        (
            "works at", True,
            (
                rf"(?:\b[Jj](?:e |['’]ai )|(?P<who>{NAME}) )(?:(?:a )?quitté? {_OLD} et )?(?:ouvre|(?:a )?ouvert|fonde|"
                rf"(?:a )?fondé|monte|(?:a )?monté|lance|(?:a )?lancé) (?:son|sa|mon|ma) (?:propre )?"
                rf"(?P<value>(?:cabinet|boutique|entreprise|société|agence|studio|restaurant|boîte)[^.,;!?()]{{0,40}}?){_FR_END}"
            ),
        ),
        ("works at", True, rf"(?:\b[Jj]['’]ai commencé|(?P<who>{NAME}) a commencé)(?: \w+)? chez {_V}{_FR_END}"),
        ("birthday", True, rf"\b[Mm]on anniversaire est (?:le )?{_V}{_FR_END}"),
        ("birthday", True, rf"\b[Ll]['’]anniversaire (?:de |d['’])(?P<who>{NAME}) est (?:le )?{_V}{_FR_END}"),
        (
            "", True,
            (rf"\b[Mm](?:on|a) (?:nouve(?:au|lle) |meilleure? )?(?P<what>{_FR_PERSON}) (?:s['’]appelle|"
            rf"est) (?P<value>{_TITLE}{NAME})"),
        ),
        (
            "", True,
            (
                rf"\b(?:[Mm](?:on|a)|[Nn]otre) (?:nouve(?:au|lle) )?(?P<what>(?!(?:{_FR_KIN})\b)[a-zà-ÿœ]+"
                rf"(?: préférée?| favorite?)?) (?:est|se trouve|commence)(?: maintenant| désormais| toujours)? {_V}{_FR_END}"
            ),
        ),
        ("age", True, rf"(?:\b[Jj]['’]ai|(?P<who>{NAME}) a)(?: déjà| maintenant)? {_YEARS} ans(?! d)"),
        ("editor", True, rf"\b[Jj]['’]utilise {_V} comme éditeur\b"),
        (
            "drinks", True,
            rf"(?:\b[Jj]e bois|(?P<who>{NAME}) boit)(?: maintenant| toujours)?(?: du| de la| de l['’])? {_V}{_FR_END}",
        ),
        (
            "due", True,
            (
                r"(?:[Dd]ate limite|[Éé]chéance) (?:de |d['’]|du projet )(?P<who>[\w-]+) est(?: maintenant)? "
                rf"(?:le )?{_V}{_FR_END}"
            ),
        ),
        ("uses", False, rf"[Pp]rojet (?P<who>{NAME})(?: maintenant)? (?:utilise|tourne sur) {_V}{_FR_END}"),
        ("uses", False, rf"(?:[Pp]rojet )?(?P<who>{NAME}) (?:est passé|a migré) de {_OLD} à {_V}{_FR_END}"),
        ("allergy", False, rf"(?:\b[Jj]e suis|(?P<who>{NAME}) est) allergique (?:à la|à l['’]|à|aux|au) ?{_V}{_FR_END}"),
        ("dislikes", False, rf"\b[Jj]e (?:déteste|n['’]aime pas) {_V}{_FR_END}"),
        (
            "prefers", False,
            rf"(?:\b[Jj]e préfère|\b[Jj]['’](?:aime|adore)|(?P<who>{NAME}) (?:préfère|aime|adore)) {_V}{_FR_END}",
        ),
        ("speaks", False, rf"(?:\b[Jj]e parle|(?P<who>{NAME}) parle) {_V}{_FR_END}"),
        ("decision", False, rf"\b(?:[Nn]ous avons décidé|[Jj]['’]ai décidé) d(?:e |['’]){_V}{_FR_END}"),
    ),
    attributes={
        "femme": "partner", "mari": "partner", "compagne": "partner", "compagnon": "partner", "copine": "partner",
        "copain": "partner", "fils": "son", "fille": "daughter", "mère": "mother", "père": "father", "frère": "brother",
        "sœur": "sister", "chien": "dog", "chienne": "dog", "chat": "cat", "chatte": "cat", "chef": "boss", "cheffe": "boss",
        "patron": "boss", "patronne": "boss", "dentiste": "dentist", "médecin": "doctor", "voisin": "neighbour",
        "voisine": "neighbour", "éditeur": "editor", "boisson préférée": "drinks",
    },
    aspects=_aspects(
        when=(
            r"(?:(?:le|les|à|en|chaque) )?(?:\d{1,2} ?(?:h(?:\d\d)?\b|heures|:\d\d)|\d{1,2} \w+$|(?:lundis?|mardis?|mercredis?|"
            r"jeudis?|vendredis?|samedis?|dimanches?|janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|"
            r"décembre)\b)|à (?:midi|minuit)"
        ),
        where=r"(?:à|au|aux|en|dans|sur|sous|chez|derrière|devant|près|entre|à côté)\b",
        how_many=r"(?:environ )?(?:[€$]?\d|(?:deux|trois|quatre|cinq|six|sept|huit|neuf|dix)\b)",
        kind=r"une?\b",
        how=r"(?:(?:très|assez|trop|un peu|encore|pas|plus|toujours) )*(?P<word>[a-zà-ÿœ]+)$",
    ),
    colours=frozenset(
        "bleu bleue rouge vert verte jaune noir noire blanc blanche gris grise marron rose orange violet violette".split()  # noqa: SIM905
    ),
    occasion=re.compile(r"\b(?:le (?:matin|midi|soir|week-end)|au (?:petit-déjeuner|déjeuner|dîner))\b"),
    former=re.compile(
        r"\b(?:déménagé|passé|migré)(?: \w+)? de (?P<former>[^.,;!?()]{2,40}?)(?= (?:à|en|au)\b)|\b(?:au lieu de|"
        r"plus (?:chez|à)) (?P<instead>[^.,;!?()]{2,40}?)(?=\s*[.,;!?(]|\s*$)"
    ),
    not_meant=re.compile(
        r"^(?:si|peut-être|est-ce|qui|pourquoi|comment|quand|où)\b|\b(?:peut-être|j['’]aimerais|serait|pourrait|selon|on dit|"
        r"j['’]habitais|autrefois)\b",
        re.IGNORECASE,
    ),
    no_who=frozenset(("le", "la", "les", "un", "une", "il", "elle", "on", "je", "nous", "hier", "personne", "quelqu'un", "ce")),
)  # fmt: skip
LANGUAGES: Final = (GERMAN, SPANISH, FRENCH)


_NAMED_LINE: Final = re.compile(rf"(?P<name>{NAME}) – (?P<said>[^\W\d_]{{3,}} (?!–)[^:]+)$")


def as_sentence(statement: str) -> str:
    """A line in a file about somebody ("Jonas – Wohnt in Halle") as a sentence; others as they are."""
    found = _NAMED_LINE.match(statement)
    return statement if found is None else f"{found['name']} {found['said'][:1].lower()}{found['said'][1:]}"
