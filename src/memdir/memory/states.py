"""States of a person of which one excludes the others: who is back is no longer on holiday, who eats meat is no vegetarian.
Pure; English, and what is most common in German, French and Spanish.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memdir.memory.occupations import JOB
from memdir.store.text.stopwords import ENGLISH
from memdir.store.text.words import words

_KNOWN: Final = 32_768
_IS: Final = (
    r"(?:['’](?:m|re|s)|\b(?:am|is|are|was|were|got|get|getting|gets)\b)(?: (?:now|happily|finally|just|both|"
    r"officially|currently))*"
)
_HOME: Final = r"(?:flat|house|apartment|home|place|condo|bungalow|cottage|room|studio)"
_NTH: Final = r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|\d{1,2}(?:st|nd|rd|th))"
_TO_WORK: Final = r"(?=[^.;]{0,30}\bto (?:work|the office|school|uni)\b)"
_MEANS: Final = r"bus|train|tram|metro|tube|subway|underground|ferry|car|bike|bicycle|cycle|drive|walk|on foot|scooter|e-bike"
_FAMILIES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "relationship": (
        (
            "single",
            (rf"{_IS} single\b(?! (?:\w+ )?(?:parent|mother|father|mum|mom|dad|point|file|node))|not seeing any(?:one|body)\b"),
        ),
        (
            "dating",
            (
                r"\b(?:dating|seeing (?:someone|somebody|a (?:new )?(?:guy|girl|woman|man))|in a (?:new )?relationship)\b|"
                r"\band I (?:live|moved in) together\b|"
                r"\b(?:my|a|is my) (?:new )?(?:girlfriend|boyfriend)\b"
            ),
        ),
        (
            "engaged",
            (
                rf"{_IS} engaged\b(?! (?:in|with|by))|\b(?:my|is my) fianc[eé]e?\b|\bproposed to (?:her|him|me|"
                rf"(?-i:[A-Z]\w))|\bwedding is (?:planned|set|on|in)\b|\bgetting married (?:in|on|next)\b"
            ),
        ),
        ("married", rf"{_IS} married\b|\b(?:my|is my) (?:wife|husband)\b|\btied the knot\b"),
        (
            "apart",
            (
                rf"{_IS} (?:divorced|separated|widowed)\b|\b(?:split up|broke up|divorce (?:is|went|came) |"
                rf"no longer together)"
                r"|(?:aren['’]t|are not) together\b"
            ),
        ),
    ),
    "diet": (
        (
            "vegetarian",
            (
                r"\b(?:vegetarian|pescatarian)\b(?! (?:restaurant|place|dish|option|food|recipe))|\b(?:don['’]t|never|"
                r"stopped) eat(?:ing)? meat\b"
            ),
        ),
        ("vegan", r"\bvegan\b(?! (?:restaurant|place|dish|option|food|recipe))"),
        (
            "meat",
            (
                r"\b(?:eat(?:ing)?|started eating|back to(?: eating)?) (?:some |a little )?(?:meat|chicken|fish|cheese|"
                r"dairy|eggs|everything|anything)\b(?= again| now|.*\bagain\b|\s*[.,;!]|\s*$| and\b)|\b(?:no longer|not|"
                r"stopped being|"
                r"gave up being) (?:a )?(?:vegan|vegetarian|pescatarian)\b"
            ),
        ),
    ),
    "whereabouts": (
        (
            "away",
            (
                rf"{_IS} (?:away\b|(?:out|off) (?:sick|ill|of office)\b|(?:on|off on) (?:(?:her|his|their|my|our|"
                rf"an?) )?(?:\w+ )?"
                r"(?:vacation|holidays?|leave|sabbatical|trip|break|honeymoon|tour)\b|in (?:the )?(?:hospital|rehab|"
                r"quarantine|intensive care)\b|travell?ing\b|(?:ill|sick|unwell|poorly)\b|in bed with\b)|\b(?:has|have|"
                r"got) (?:the )?(?:flu|covid|a (?:bad )?cold)\b"
            ),
        ),
        (
            "back",
            (
                rf"{_IS} back(?=\s*[.,;!]|\s*$| (?:at|in|from|home|today|now|on (?:his|her|their|my) feet)\b)|"
                rf"{_IS} (?:discharged|(?:out of|home from) (?:the )?hospital|(?:well|better|healthy|home) again|"
                rf"feeling better|over the flu)\b"
                r"|\b(?:first day back|came (?:back|home)(?! to )|returned(?=\s*[.,;!]|\s*$| (?:from|to work)\b)|"
                r"got (?:back|home) from|recovered(?! the\b))"
            ),
        ),
    ),
    "guest": (
        ("here", r"\b(?:is|are) (?:staying|living|visiting) (?:with us|with me|here|us)\b"),
        (
            "gone",
            (
                r"\b(?:flew|went|drove|travell?ed|moved|gone|headed|has left|have left) (?:back )?home"
                r"(?! (?:early|late|sick)\b)|\bmoved out\b"
            ),
        ),
    ),
    "hours": (
        (
            "part",
            (
                r"\b(?:work|works|working|on) (?:only )?(?:two|three|four|2|3|4|[1-9]0 ?%)(?: days?\b| ?%|$)|\bpart[- ]time\b|"
                r"\b[1-9]0 ?(?:%|percent)(?= (?:job|contract|position))"
            ),
        ),
        ("full", r"\bfull[- ]time\b(?! (?:student|mum|mom|dad|parent))|\bfive days a week\b"),
    ),
    "children": (
        (
            "none yet",
            (
                r"\b(?:no|any) (?:kids|children)\b|\b(?:childless|pregnant)\b|\bexpecting(?=\s*[.,;!]|\s*$| (?:a (?:baby|"
                r"boy|girl)|twins|our|in)\b)|\btrying for a (?:baby|child)\b"
            ),
        ),
        (
            "born",
            (
                r"\b(?:was|were) born\b(?! in\b)|\bhad (?:a (?:baby|boy|girl|son|daughter)|twins|the baby|her|our|"
                r"their (?:baby|son|daughter))|\b(?:our|my) (?:\w+ )?(?:son|daughter|baby|boy|"
                r"girl)(?: [A-Z]\w+)? (?:arrived|is here)|\bgave birth\b|\bbaby (?:\w+ )?(?:arrived|came|is here)|"
                r"\bbecame (?:a )?(?:father|mother|parents?|dad|mum|mom)\b"
            ),
        ),
    ),
    "driving": (
        (
            "no",
            (
                r"\b(?:don['’]t have a (?:driver['’]s |driving )?licen[cs]e|can['’]t drive(?=\s*[.,;!]|\s*$| yet)|"
                r"learning to drive)\b"
            ),
        ),
        (
            "yes",
            (
                r"\b(?:passed (?:my|the|his|her) driving test|(?<!t )(?:have|got) (?:my|a) (?:driver['’]s |"
                r"driving )?licen[cs]e(?=\s*[.,;!]|\s*$| now))"
            ),
        ),
    ),
    "home": (
        (
            "rented",
            (
                rf"\brent(?:s|ing)? (?:a|an|the|our|my|this) (?:\w+ )?{_HOME}\b|\brenting (?:in|from)\b|\b(?:my|"
                rf"our) (?:landlord|landlady)\b(?! (?:sold|has sold))"
            ),
        ),
        (
            "own",
            (
                rf"\b(?:bought|own) (?:a|an|our|my|the) (?:\w+ )?(?:\w+ )?{_HOME}\b|\bhomeowners?\b|"
                r"\bgot the keys to (?:our|my)\b"
            ),
        ),
    ),
    "work": (
        (
            "none",
            (
                rf"{_IS} (?:unemployed|out of work|between jobs|laid off|made redundant|let go|fired|sacked)\b|"
                r"\b(?:lost|quit|left|changed|resigned from) (?:my|his|her|their|the) job\b|\b(?:changed|switched) jobs\b"
                r"|\b(?:don['’]t|doesn['’]t) have a job\b"
            ),
        ),
        (
            "some",
            (
                r"\b(?:works? (?:at|for)|working (?:at|for)|employed|got (?:a|the|my) (?:new )?job|"
                rf"started (?:a|my) (?:new )?job|(?:{_IS}|works as) (?:an? |the )?(?:[\w-]+ ){{0,3}}{JOB} (?:at|for))\b|"
                r"^Job: .* at "
            ),
        ),
        ("retired", rf"{_IS} (?:now )?retired\b|\bI(?:['’]ve| have)? retired\b|\btook early retirement\b"),
    ),
}
_IN_OTHER_LANGUAGES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "relationship": (
        ("single", r"\b(?:bin|ist|sind) (?:\w+ ){0,2}single\b|\bcélibataire\b|\bsolter[oa]\b"),
        (
            "dating",
            (
                r"\b(?:habe?|hat) (?:\w+ )?eine?n? (?:neue[nr]? )?freund(?:in)?\b|\b(?:bin|ist) (?:\w+ )?mit \w+ zusammen\b|"
                r"\b(?:tengo|tiene) (?:nuev[oa] )?novi[oa]\b|\bj'ai (?:un copain|une copine)\b|\ben couple\b"
            ),
        ),
        ("engaged", r"\bverlobt\b|\b(?:suis|est|sommes) fiancée?s?\b|\b(?:estoy|está|estamos) (?:com)?prometid[oa]s?\b"),
        ("married", r"\bverheiratet\b|\b(?:suis|est|sommes) mariée?s?\b|\b(?:estoy|está|estamos) casad[oa]s?\b"),
        (
            "apart",
            (
                r"\b(?:geschieden|verwitwet)\b|\bhaben (?:uns|sich) getrennt\b|\bnicht mehr zusammen\b|"
                r"\b(?:divorcée?|séparée?)s?\b|\b(?:divorciad|separad)[oa]s?\b"
            ),
        ),
    ),
    "diet": (
        (
            "vegetarian",
            (
                r"\bvegetarier(?:in)?\b|\bvegetarisch\b|\b(?:suis|est|sommes) végétarien(?:ne)?s?\b|"
                r"\b(?:soy|es|somos) vegetarian[oa]s?\b|\bessen? kein fleisch\b|"
                r"\bmange plus de viande\b|\bno como carne\b"
            ),
        ),
        (
            "vegan",
            r"\bveganer(?:in)?\b|\b(?:suis|est|sommes) véganes?\b|\b(?:soy|es|somos) vegan[oa]s?\b",
        ),
        (
            "meat",
            (
                r"\b(?:essen?|isst) (?:\w+ )?wieder (?:fleisch|fisch|käse|eier|alles)\b|\bnicht mehr (?:vegan|vegetarisch)\b|"
                r"\bkeine? (?:veganer|vegetarier)(?:in)? mehr\b|\bremangeons? |\bremange |"
                r"\bmange(?:ons)? (?:de nouveau|à nouveau) (?:de la viande|du poisson|de tout)\b|"
                r"\bplus (?:végan|végétarien)\w*|\bvuelto a comer (?:carne|pescado|de todo)\b|"
                r"\bya no (?:soy|es) (?:vegan|vegetarian)[oa]\b"
            ),
        ),
    ),
    "smoking": (
        ("yes", r"\b(?:rauche|raucht|je fume|fumo)\b(?! (?:nicht|plus)\b)|\bwieder angefangen zu rauchen\b"),
        (
            "no",
            (
                r"\brauchen aufgehört\b|\b(?:rauche|raucht) nicht\b|\bnichtraucher(?:in)?\b|\barrêté de fumer\b|"
                r"\bne fume (?:plus|pas)\b|\bdejado de fumar\b|\b(?:ya )?no fum[oa]\b"
            ),
        ),
    ),
    "whereabouts": (
        (
            "away",
            (
                r"\b(?:bin|ist|sind) (?:\w+ ){0,2}(?:krank(?:geschrieben)?|im urlaub|verreist|in elternzeit|im krankenhaus)\b|"
                r"\b(?:suis|est|sommes) (?:malade|en vacances|en congé|à l'hôpital)\b|\b(?:estoy|está|estamos) (?:enferm[oa]|"
                r"de vacaciones|de baja|en el hospital)\b"
            ),
        ),
        (
            "back",
            (
                r"\bwieder (?:da|gesund|zu ?hause|im büro|bei der arbeit)\b|\bzurück aus\b|\b(?:de retour|rentrée?s? de)\b|"
                r"\bguérie?\b|\bde vuelta\b|\bya (?:estoy|está) (?:bien|en casa)\b"
            ),
        ),
    ),
    "hours": (
        ("part", r"\b(?:in )?teilzeit\b|\btemps partiel\b|\bmi-temps\b|\bmedia jornada\b"),
        ("full", r"\b(?:in )?vollzeit\b|\btemps plein\b|\bjornada completa\b"),
    ),
    "work": (
        (
            "some",
            (
                r"\barbeite[tn]? (?:\w+ )?(?:bei|für|als)\b|\btravaillen?t? (?:\w+ )?(?:chez|pour|comme)\b|"
                r"\btrabaj[oa] (?:\w+ )?(?:en|para|de)\b"
            ),
        ),
        ("none", r"\barbeitslos\b|\bau chômage\b|\ben paro\b|\bdesemplead[oa]\b"),
        ("retired", r"\b(?:in rente|im ruhestand|pensioniert)\b|\b(?:à la retraite|retraitée?)\b|\bjubilad[oa]\b"),
    ),
}
"""As `_FAMILIES`, in German, French and Spanish."""
PASSING: Final = frozenset({"whereabouts", "guest"})
"""Families of states that one is in for days."""
_RULES: Final = tuple(
    (family, value, re.compile(rule, re.IGNORECASE))
    for table in (_FAMILIES, _IN_OTHER_LANGUAGES)
    for family, rules in table.items()
    for value, rule in rules
)
_BY_WORDS: Final = (
    (
        "school",
        re.compile(
            rf"\b(?P<value>{_NTH} (?:grade|class|form|year)|(?:grade|year|class) \d{{1,2}}|kindergarten|"
            rf"nursery(?: school)?|pre-?school|"
            r"(?:primary|elementary|secondary|middle|high) school|college|university|uni|(?<=started )school|"
            r"(?<=goes to )school)\b",
            re.IGNORECASE,
        ),
        re.compile(rf"(?:{_IS}|\b(?:goes|went|moved up|started|starts|has started|enters|entered)\b)", re.IGNORECASE),
    ),
    (
        "team",
        re.compile(
            r"\b(?:on|in|joined|join|joining|moved to|switched to|part of) (?:the|our) (?P<value>[\w-]+(?: [\w-]+)?) team\b"
        ),
        re.compile(rf"(?:{_IS}|\b(?:joined|work|works|moved|switched)\b)"),
    ),
    (
        "way to work",
        re.compile(rf"\b(?P<value>{_MEANS}){_TO_WORK}", re.IGNORECASE),
        re.compile(
            r"\b(?:take|takes|get|gets|catch|ride|rides|drive|drives|cycle|cycles|walk|walks|commute|commutes|(?:I|we|"
            r"s?he) bikes?|go|goes)\b"
        ),
    ),
)
"""Families whose values are words: the value, and the verb that must be there."""
_RELATED: Final = re.compile(r"\b(?:[Mm]y|[Oo]ur) (?:\w+ )?[a-z]+ (?=[A-ZÀ-Þ])")
_YEAR: Final = re.compile(r"\b(?:in|since) (?:19|20)\d\d\b|\bago\b")
"""What was so then is no change now."""
_FROM_CLAUSE: Final = re.compile(r".*(?:[.,;:!?()–—]| (?:and|but|so|because|when|while)\b(?! I\b)) ?", re.DOTALL)
FILLERS: Final = ENGLISH | frozenset(
    """
    s m re ve ll d t don doesn didn isn aren wasn weren hasn haven hadn won can since
    """.split()  # noqa: SIM905
)
"""Words that tell nothing."""
_OF_NOBODY: Final = FILLERS | frozenset(
    """
    and back gone went fully finally also now still already just today
    ich wir uns bin ist sind habe haben hat mit dem arbeite arbeitet seit wieder jetzt inzwischen
    je j nous ai suis est sommes avons travaille de en à depuis
    yo soy es estoy está somos he ha hemos trabajo desde ya
    """.split()  # noqa: SIM905
)
_OF_PARENTS: Final = re.compile(
    r"\b(?:our|my) (?:\w+ )?(?:son|daughter|baby|boy|girl|twins?|kids?|children|wife|husband|partner|"
    r"girlfriend|boyfriend)(?: [A-ZÀ-Þ]\w+)? ?$",
    re.IGNORECASE,
)
_STATUS: Final = re.compile(r"^(?:(?:relationship|marital|civil) )?status: ", re.IGNORECASE)
_OF_FILE: Final = re.compile(r"^(?P<who>[^:–]{1,40}) – (?P<at>In|At|On)\b")
"""Of an item in the file of a person."""
_WITH_USER: Final = re.compile(r"\band I\b")
"""Who is in a state together with the user."""


@dataclass(frozen=True, slots=True)
class State:
    """One of a `family`; `who` is in it, by words, empty for the user."""

    family: str
    value: str
    who: frozenset[str]


@lru_cache(maxsize=_KNOWN)
def states_of(statement: str) -> tuple[State, ...]:
    """At most one of each family: of several the one that comes last in it."""
    statement = _OF_FILE.sub(r"\g<who> is \g<at>", _STATUS.sub("I am ", statement, count=1), count=1)
    found: dict[str, State] = {}
    for family, value, rule in _RULES:
        match = rule.search(statement)
        if match is not None:
            found[family] = State(family, value, _who(statement, match.start(), family))
    for family, rule, verb in _BY_WORDS:
        match, acts = rule.search(statement), verb.search(statement)
        if match is not None and acts is not None:
            found[family] = State(family, match["value"].casefold(), _who(statement, acts.start(), family))
    return tuple(found.values())


def is_excluded(fact: str, state: State, said: str) -> bool:
    """Whether a fact says that the one who is in a state now, as was `said`, is in another one of its family."""
    if _YEAR.search(said):
        return False
    others = [one for one in states_of(fact) if one.family == state.family and one.value != state.value]
    return any(state.who <= frozenset(words(fact)) and one.who <= frozenset(words(said)) for one in others)


def _who(statement: str, end: int, family: str) -> frozenset[str]:
    before = _FROM_CLAUSE.sub("", statement[:end], count=1)
    if _WITH_USER.search(before):
        return frozenset()
    if family == "children":
        before = _OF_PARENTS.sub("", before)
    return frozenset(words(_RELATED.sub("", before))) - _OF_NOBODY
