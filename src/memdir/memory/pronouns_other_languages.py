"""Who "sie", "elle" and "él" are, as `memory.pronouns` tells it of "she": whom a diary says that the user met, or who the
sentence before is about. German, French and Spanish; where it is not certain, nobody. Pure.
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = r"[A-ZÀ-Þ][a-zß-ÿ][\w’'-]*(?: [A-ZÀ-Þ][\w’'-]+)?"
_KIN: Final = (
    r"Oma|Opa|Mama|Papa|Mutti|Vati|[Mm]eine? (?:Mutter|Vater|Schwester|Bruder|Frau|Mann|Freundin|Freund|Tochter|Sohn|Chefin|"
    r"Chef)|Maman|Mamie|Papi|[Mm](?:on|a) (?:père|mère|sœur|frère|mari|femme|fils|fille|copain|copine|chef|cheffe)|"
    r"[Mm]amá|[Pp]apá|[Mm]i (?:padre|madre|hermana|hermano|marido|mujer|hijo|hija|jefe|jefa|novio|novia|abuela|abuelo)"
)
_SHE: Final = (
    r"(?:sie|er)(?= (?:ist|hat|kann|will|muss|wird|mag|\w+t)\b)|(?:elle|il)(?= (?!y\b|faut\b)[a-zà-ÿ])|(?:ella|él)(?= [a-z])"
)
_OF_OWN_DAY: Final = (
    r"(?:(?:Heute|Gestern|Vorhin|Abends|Mittags|Nachmittags|Am \w+|Ich|Wir|Habe?|War|Bin|Mittagessen|Kaffee|Telefonat|Essen|"
    r"Treffen|Telefoniert|Gesprochen|Geredet)\b|J['’]|(?:Je|On|Nous|Hier|Aujourd['’]hui|Vu|Croisé|Café|Déjeuner|Déjeuné|Dîner|"
    r"Appel)\b|(?:Comí|Quedé|Hablé|He|Vi|Cené|Fui|Hoy|Ayer|Comida|Cena|Me|Estuve|Desayuné|Llamé)\b|"
    r"(?=(?:Mit|Avec|Con) [A-ZÀ-Þ]))"
)
_WHOM_MET: Final = (
    rf"{_OF_OWN_DAY}[^,;]*?(?:\b(?:[Mm]it|bei|von) (?P<german>(?:(?:Frau|Herrn?|Tante|Onkel) )?[A-ZÄÖÜ][a-zß-ÿ][\w’'-]*)|"
    rf"\b(?:[Aa]vec|chez|vu|croisé|appelé|[Cc]on|a) (?P<other>{_NAME}))(?: (?!und\b|et\b|y\b)[^,;.]{{0,40}})?"
)
_REST: Final = rf"(?P<rest>(?:{_SHE}) |(?=(?:se|está|trabaja|vive|tiene|va a|ha) \w))"
_MET: Final = re.compile(rf"{_WHOM_MET}, {_REST}")
"""A diary's "Heute mit Birgit Kaffee getrunken, sie zieht nach Freiburg"."""
_MET_ALONE: Final = re.compile(rf"{_WHOM_MET}\.?")
NEWS_OTHER_LANGUAGES: Final = (
    r"(?:anruf|nachricht|mail|post|brief) von|(?:message|appel|lettre|nouvelles|sms) de|(?:mensaje|llamada|carta|noticias) de"
)
_CALLED: Final = re.compile(
    rf"(?:(?i:{NEWS_OTHER_LANGUAGES}) (?P<german>{_KIN}|{_NAME})|(?:Llamó|Escribió|Vino) (?P<behind>{_KIN}|{_NAME})|"
    rf"(?P<other>{_KIN}|{_NAME}) (?:(?:hat (?:mich )?(?:angerufen|geschrieben|besucht)|rief (?:mich )?an|schrieb|"
    r"war (?:da|hier|zu Besuch)|(?:m['’])?a (?:appelé|téléphoné|écrit)|est (?:passée?|venue?)|"
    rf"(?:me )?(?:ha (?:llamado|escrito|venido)|llamó|escribió))\b))[^,;:.]{{0,40}}[,:;] {_REST}"
)
"""And "Ana hat angerufen, sie zieht nach Graz"."""
_ABOUT: Final = re.compile(
    rf"(?:A )?(?P<who>{_KIN}|{_NAME}) (?:ist|hat|war|wird|zieht|wohnt|arbeitet|trinkt|isst|kommt|geht|fährt|heiratet|rief|"
    r"schrieb|kam|attend|a|m['’]a|est|va|quitte|travaille|habite|vit|rentre|déménage|mange|se|me|está|ha|trabaja|vive|tiene|lo|"
    r"la|deja|llamó|escribió)\b"
)
"""Who a sentence is about, that says what people do."""
_PRONOUN: Final = re.compile(
    rf"(?P<who>(?i:{_SHE})) |(?:(?P<german>Ihre?|Seine?)|(?P<french>Son|Sa|Ses)|(?P<spanish>Sus?)) (?P<what>[A-Za-zÀ-ÿ]+) "
)
_NO_PERSON: Final = frozenset(
    """
    Il Elle Er Sie Es Das Der Die Ich Wir Je On Nous Le La Les El Los Las Un Una Une Ein Eine Heute Gestern Morgen Demain Hier
    Mañana Ayer Hoy Aujourd'hui Alles Tout Todo Qui Wer Quién Ella Él Bin Habe Wenn Cuando Quand
    """.split()  # noqa: SIM905
)


def met_in(sentence: str) -> tuple[int, int, str] | None:
    """Where what is told of the user ends, where what is told of somebody met begins behind the pronoun, and who that is."""
    found = _MET.match(sentence) or _CALLED.match(sentence)
    who = None if found is None else next((name for key, name in found.groupdict().items() if key != "rest" and name), None)
    if found is None or who is None or who in _NO_PERSON:
        return None
    return found.start("rest"), found.end("rest"), who


def named_in(statement: str) -> str | None:
    """The one whom a statement is about, or whom the user met."""
    found = _ABOUT.match(statement)
    who = None if found is None else found["who"]
    if who is None:
        met = _MET_ALONE.fullmatch(statement)
        who = None if met is None else met["german"] or met["other"]
    return None if who is None or who.split()[0] in _NO_PERSON else who


def begins_with_pronoun(statement: str) -> bool:
    """Whether it is about somebody whom the sentence before named."""
    return _PRONOUN.match(statement) is not None


def with_name(statement: str, name: str) -> str:
    """A statement that begins with a pronoun, with the name in its place."""
    found = _PRONOUN.match(statement)
    if found is None:
        return statement
    rest, what = statement[found.end() :], found["what"]
    if found["german"] and re.fullmatch(_KIN, name):
        return f"{name} – {statement}"
    if found["german"]:
        return f"{name}{'’' if name[-1] in 'sxzß' else 's'} {what} {rest}"
    if found["french"]:
        article = "L’" if what[0].casefold() in "aeiouhéèê" and found["french"] != "Ses" else _ARTICLES[found["french"]]
        return f"{article}{what} de {_inside(name)} {rest}"
    if found["spanish"]:
        is_female = what.rstrip("s").endswith("a") or what.startswith("mujer")
        article = ("Las" if is_female else "Los") if found["spanish"] == "Sus" else "La" if is_female else "El"
        return f"{article} {what} de {_inside(name)} {rest}"
    return f"{name} {rest}"


_ARTICLES: Final = {"Son": "Le ", "Sa": "La ", "Ses": "Les "}


def _inside(name: str) -> str:
    return name[:1].lower() + name[1:] if re.fullmatch(_KIN, name) else name
