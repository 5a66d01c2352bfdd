"""What a statement claims: of whom, which attribute, which value; and which values it says are gone. By rules over single
sentences.

Two statements with the same subject and attribute of one value contradict each other: the later one holds. Of attributes
with several values (what somebody likes, what a project uses) a statement replaces another only when it names that one's
value as gone ("switched from X to Y"). English; German, Spanish and French by `memory.claims_other_languages`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final

from memdir.memory.aspects import CONDITION, PLACES, SEVERAL_OF, aspect_of, is_home, topic_of
from memdir.memory.assertions import OPINION, is_meant
from memdir.memory.claims_other_languages import LANGUAGES, NAME, Language, as_sentence
from memdir.memory.occupations import EMPLOYER, JOB, NO_LESSON
from memdir.memory.personal_other_languages import with_ich
from memdir.memory.relations import KIN, RELATIVES, in_full
from memdir.memory.tools import is_tool

USER: Final = "user"
_KNOWN: Final = 32_768
_STATEMENT_MAX_CHARS: Final = 1000
_LONG_WORD: Final = re.compile(r"[\w'’-]{60}")

_TITLE: Final = r"(?:(?:Mrs?|Ms|Dr|Prof)\.? )?"
_WHO: Final = (
    rf"(?:(?P<who>I|[Ww]e|[Tt]he user|[Ss]he|[Hh]e|{NAME})|(?:[Mm]y|[Oo]ur) (?P<kin>{KIN}))"
    r"(?:, (?:my|our|the|an?) [^,.;]{2,40},)?"
)
_AM: Final = r"(?:['’](?:m|ve|re|s)| am| are| is| have| has| was)?"
_HOW: Final = r"(?: (?:now|still|currently|also|already|just|really|usually|all|both|finally|recently|officially|been))*"
_MY: Final = r"(?P<my>[Mm]y|[Oo]ur|[Hh]er|[Hh]is|(?:[Tt]he )?[Uu]ser['’]s|[A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+)?['’]s)"
_V: Final = r"(?P<value>(?:[^.,;!?()]|(?<=\d)[.,](?=\d)){2,60}?)"
_OLD: Final = r"[^.,;!?()]{2,40}?"
_END: Final = (
    r"(?= (?:now|again|instead|currently|since|because|for|with|so|and|but|where|which|when|at the moment|these "
    r"days|this|last|next|in (?:January|February|March|April|May|June|July|August|September|October|November|December|\d{4})|"
    r"as of|from now|close to|near|on [A-Z]\w+day|on \d{1,2}(?:st|nd|rd|th)?(?: of)? [A-Z][a-z]+|btw)\b"
    r"|\s*[.,;!?(]|\s*$)"
)
_PERSON: Final = (
    r"wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|mother|father|mum|mom|dad|brother|sister|dog|cat|"
    r"pet|boss|manager|dentist|doctor|landlord|landlady|neighbou?r|mentor|roommate|accountant|therapist|nickname|name|full "
    r"name|first name|last name"
)
_ATTRIBUTE: Final = (
    r"(?:current |new |old |preferred |usual |main |favou?rite |work |home |primary |daily )*(?:GP|[a-z][\w-]*(?: "
    r"[a-z][\w-]*){0,2}?)"
)
_FLAT: Final = r"(?:flat|apartment|house|home|place|studio|room|condo|cottage)"
_LIVE: Final = (
    (
        rf"{_WHO}{_AM}{_HOW} [^.,;:!?()]{{3,50}} and (?:moved|relocated|left)(?: (?:over|across|out|back|up|down|away|"
        rf"together))? (?:to|for) (?P<value>{NAME})"
    ),
    rf"{_WHO}{_AM}{_HOW} settled (?:down |in |into )?(?:(?:in |into )?(?:my|our|the|a) (?:new )?{_FLAT} )?in {_V}{_END}",
    rf"{_MY} (?:new |current )*(?:address|{_FLAT})(?: is|['’]s)(?: now)? in {_V}{_END}",
    rf"\b[Tt]he new (?:flat|apartment|house|home|address)(?: is|['’]s) in (?P<value>{NAME})",
    rf"{_MY} (?:new |current )*(?:city|town|base|home ?town)(?: is|['’]s)(?: now)? (?P<value>{NAME})",
    rf"^(?:[\w ]{{2,30}}, )?(?P<value>{NAME}) (?:is (?:my|our)|has become|became) (?:my |our )?(?:new )?home\b(?! (?:to|of)\b)",
    rf"(?P<value>{NAME}) is where (?P<my>I|we) (?:now )?live\b",
    rf"{_WHO}{_HOW} calls? (?P<value>{NAME})(?: my| our)? home\b",
    rf"{_WHO}{_AM}{_HOW} an? (?P<value>{NAME}) resident\b",
    rf"{_WHO}{_AM}{_HOW} (?:an? )?(?:official )?residents? of (?P<value>{NAME})",
    rf"{_WHO}(?: have|['’]ve| has|['’]s) lived in {_V} since\b",
    rf"{_WHO} [^.,;:!?()]{{3,60}} and (?:now )?lives? in {_V}{_END}",
    (
        rf"{_WHO}{_AM}{_HOW} (?:gave up|given up|left|sold|let go of) (?:the|my|our|her|his) {_FLAT} in {_OLD} and (?:found|"
        rf"took|rented|bought|got) (?:one|another|an? (?:new )?{_FLAT}) in {_V}{_END}"
    ),
    rf"\b(?P<my>[Mm]y|[Oo]ur|I|[Ww]e)(?:['’]ve)? moved house[,;:]? (?:it['’]s|to|and it['’]s) {_V}{_END}",
    rf"^(?:[Mm]y |[Oo]ur )?[Ff]irst (?:night|day|week|morning|evening) in (?P<my>my|our) (?:own |new )+{_FLAT} in {_V}{_END}",
    rf"{_WHO}{_AM}{_HOW} (?:live|lives|living|reside|resides|residing|based|settled|at home) (?:happily )?in {_V}{_END}",
    rf"{_WHO}(?:['’]m| am|['’]s| is) (?:an? |the )?(?:[\w/-]+ ){{1,6}}(?:based|living|residing) in {_V}{_END}",
    (
        rf"{_WHO}{_AM}{_HOW} (?:moved|relocated|moving|relocating)(?: (?!(?:my|our|the|all|off|away|over|it)\b)\w+){{0,2}}? "
        rf"(?:from {_OLD} )?to "
        rf"(?=[A-ZÀ-Þ]|(?:the|an?|our|my) )(?!(?:the|an?|our|my) (?:\w+ )?(?:team|department|group|project|role|position|"
        rf"office|branch|server|cloud)\b)"
        rf"{_V}{_END}"
    ),
    rf"{_WHO}{_AM}{_HOW} (?:a|an) (?:house|flat|home|apartment|place) in {_V}{_END}",
    (
        rf"{_MY} (?:home|flat|house|apartment|place|home ?town|address|new home|new flat)(?: is| are)(?: now)?(?: in)? "
        rf"{_V}{_END}"
    ),
    (
        r"^(?:Our|My) (?:\w+ )?(?:home|flat|house|apartment|place|terrace|bungalow|cottage|condo|studio) in "
        r"(?P<value>[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+)?)\b"
        r"(?!.*\b(?:rent|let|lease|tenants?|holiday|summer|weekend|sale|Airbnb))"
    ),
    rf"\b[Hh]ome is(?: now)? (?P<value>[^.,;!?()]{{2,60}}?)(?: for (?:me|us))?{_END}",
)
_WORK: Final = (
    (
        rf"{_WHO}{_AM}{_HOW} (?:left|quit|resigned from) {_OLD} (?:and|to) (?:now )?(?:join|joined|joins|works? (?:at|for)|"
        rf"started at) {_V}{_END}"
    ),
    (
        rf"{_WHO}{_AM}{_HOW} (?:work|works|working) (?:at|for) (?:(?:a|the) (?:company|firm|start-?up) (?:called "
        rf")?)?{_V}(?: as [^.,;]+)?{_END}"
    ),
    (
        rf"{_WHO}{_AM}{_HOW} (?:(?:joined|joining|joins|join) {EMPLOYER}|(?:started|starting|start|starts|begin|"
        rf"begins|began) (?:work |(?:my|a|the) (?:new )?(?:job|role|position) )?(?:at|with) {NO_LESSON}|"
        rf"employed (?:by|at) |hired by )"
        rf"{_V}(?: as [^.,;]+)?{_END}"
    ),
    rf"{_WHO}{_AM}{_HOW} (?:(?:got|landed) (?:the|my)|(?:got |have |has )?a) (?:new )?job (?:at|with) {_V}{_END}",
    (
        rf"{_WHO}(?: (?:left|quit) {_OLD} (?:and|to))?{_AM}{_HOW} (?:open|opens|opened|opening|start|starts|started|starting|"
        rf"found|founded|founding|set up|launched|launching) (?:my|our|her|his|their) own "
        rf"(?=(?:[\w-]+ )?(?:practice|business|company|firm|shop|store|studio|agency|bakery|restaurant|café|clinic|consultancy|"
        rf"start-?up|gallery|salon)\b){_V}{_END}"
    ),
    rf"{_WHO}(?:['’](?:m|s)| am| is){_HOW} (?:an? |the )?(?:[\w/-]+ ){{0,4}}{JOB} (?:at|@) (?P<value>{NAME}|[A-Z]{{2,}})",
    rf"{_MY} (?:new |current )?(?:employer|company|workplace)(?: is|['’]s)(?: now)? {_V}{_END}",
    rf"^Started (?:work|(?:my|a|the) (?:new )?(?:job|role|position)) (?:at|with) {_V}{_END}",
    rf"^(?P<value>{NAME}) hired me\b(?:.*?\bno longer (?:with|at) {_OLD}{_END})?",
)
_BOSS: Final = rf"{_WHO}{_AM}{_HOW} (?:report|reports|reporting) to (?P<value>{_TITLE}{NAME})"
_BORN: Final = (
    rf"{_MY} birthday is (?:on )?{_V}{_END}",
    rf"{_WHO}{_AM} born on {_V}{_END}",
)
_AGED: Final = (
    rf"{_WHO}(?:(?<=I) am|['’](?:m|s)| is)(?: now)? (?P<value>\d{{1,3}})(?: years old)?(?=\s*[.,;!]|\s*$| (?:now|today|and)\b)",
    rf"{_WHO}(?: has| have)?(?: just)? turned (?P<value>\d{{1,3}})\b",
)
_FROM: Final = (
    rf"{_WHO}{_AM}{_HOW} born(?: and (?:raised|grew up|bred))? (?:in|on|near) (?!\d){_V}{_END}",
    rf"{_WHO}(?:['’]m| am|['’]s| is)(?: originally)? from {_V}{_END}",
)
_RAISED: Final = rf"{_WHO}{_AM}{_HOW} (?:raised|grew up) (?:in|on|near) {_V}{_END}"
_PARTNER: Final = (
    rf"{_MY} (?P<what>{_PERSON}) is (?:called |named )?(?P<value>{_TITLE}{NAME})",
    rf"{_MY} (?P<what>{_PERSON}) (?P<value>{_TITLE}{NAME})\b(?P<aside>)",
    rf"^(?P<value>{NAME}), (?P<my>[Mm]y) (?P<what>{_PERSON}),(?P<aside>)",
    rf"{_WHO}{_AM}{_HOW} (?P<what>married) to (?P<value>{_TITLE}{NAME})",
)
_OWN: Final = (
    (
        rf"{_WHO}{_AM}{_HOW} (?:switched|changed|moved) (?P<my>my|our|her|his) (?P<what>{_ATTRIBUTE}) (?:from {_OLD} "
        rf")?to {_V}{_END}"
    ),
    (
        r"^(?:[^,]*, )?(?P<value>(?!(?:[Ii]t|[Tt]his|[Tt]hat|[Ww]hat|[Hh]ere|[Tt]here)\b)[^.,;!?()]{2,60}) is(?: now)? "
        rf"(?P<my>my|our) (?P<what>{_ATTRIBUTE}){_END}"
    ),
    (
        rf"{_WHO}{_AM}{_HOW} (?:use|uses|using|have|chose|choose|picked) {_V} (?:as|for) (?P<my>my|our|her|his) "
        rf"(?P<what>{_ATTRIBUTE}){_END}"
    ),
    rf"{_WHO}{_AM}{_HOW} (?:write|writes|writing)(?: all)?(?: my)? (?P<what>code) (?:in|with) {_V}{_END}",
    rf"{_MY} (?P<what>(?!(?:{KIN})\b){_ATTRIBUTE})(?: is|['’]s| will be)(?: now)? (?!that\b){_V}{_END}",
)
_DRINK: Final = (
    rf"{_WHO}{_AM}{_HOW} (?:drink|drinks|drinking) (?:nothing but |only |mostly )?{_V}(?: every \w+| all day)?{_END}",
    rf"{_WHO}{_AM}{_HOW} (?:stopped|quit|gave up) (?:drinking )?{_OLD} and (?:have|drink|has|drinks) {_V} instead\b",
)
_DUE: Final = (
    (
        r"(?:[Tt]he )?deadline (?:of|for) (?:[Pp]roject )?(?P<who>[\w-]+(?: [\w-]+)??) (?:is|(?:was |has been )?(?:moved|"
        rf"pushed|shifted|extended|brought forward)(?: from {_OLD})? to)(?: now)? (?P<value>[^.,;!?()]{{2,40}})"
    ),
    rf"(?:[Pp]roject )?(?P<who>{NAME})\b[^.;]*? is(?: now)? due (?:on|by|in) (?P<value>[^.,;!?()]{{2,40}})",
)
_USES: Final = (
    (
        rf"^(?:[Ii]n )?(?:[Pp]roject |[Tt]he project )?(?P<who>{NAME})(?: now)? (?:switched|migrated|moved) from "
        rf"{_OLD} to {_V}{_END}"
    ),
    rf"^(?:[Ii]n )?(?:[Pp]roject |[Tt]he project )?(?P<who>{NAME})(?: has)? replaced {_OLD} (?:with|by) {_V}{_END}",
    (
        rf"^(?:[Ii]n )?(?:[Pp]roject )(?P<who>{NAME})(?: now)? (?:we )?(?:uses?|runs? on|relies on|rely on|stores? "
        rf"(?:\w+ )?in|is (?:written|built) (?:in|with)|depends on) {_V}{_END}"
    ),
    rf"^(?P<who>{NAME})(?: now)? (?:uses|runs on|relies on|is written in|is built with) {_V}{_END}",
)
_MANY: Final = (
    ("allergy", rf"{_WHO}{_AM}{_HOW} allergic to {_V}{_END}"),
    ("allergy", rf"{_WHO}(?: can['’]?t| cannot| must not) eat {_V}{_END}.*\ballerg"),
    ("decision", (
        rf"(?P<who>[Ww]e|I|[Tt]he (?:team|board|family|group|architects|company)){_HOW} (?:have |has "
        rf")?(?:decided|agreed|resolved|settled|chose) {_V}{_END}"
    )),
    ("prefers", rf"{_WHO}{_AM}{_HOW} (?:prefers?|likes?|loves?|enjoys?|adores?) {_V}{_END}"),
    ("dislikes", rf"{_WHO}{_AM}{_HOW} (?:hates?|dislikes?|can['’]?t stand|avoids?) {_V}{_END}"),
    ("speaks", rf"{_WHO}{_AM}{_HOW} speaks? {_V}{_END}"),
    ("habit", rf"{_WHO}(?:['’](?:m|re|s))? (?:almost )?(?:always|never|usually) {_V}{_END}"),
    ("diet", (
        rf"{_WHO}(?:{_AM}{_HOW}|(?:['’](?:ve|s)| have| has)?{_HOW} (?:gone|went|become|became|turned)) "
        rf"(?P<value>{CONDITION})\b"
    )),
    ("diet", rf"{_WHO} (?:does ?n['’]t|do ?n['’]t|does not|do not|can['’]?t|cannot) (?:eat|drink) {_V}{_END}"),
    ("role", rf"{_WHO}{_AM}{_HOW} (?:works?|working|employed) as (?:an? )?{_V}{_END}"),
)  # fmt: skip
_SINGLE: Final = (
    ("due", _DUE), ("age", _AGED), ("manager", (_BOSS,)),
    ("lives in", _LIVE), ("works at", _WORK), ("birthday", _BORN), ("from", _FROM), ("raised in", (_RAISED,)),
    ("", _PARTNER), ("drinks", _DRINK), ("", _OWN),
)  # fmt: skip
_SAME_ATTRIBUTE: Final = {
    "married": "partner", "wife": "partner", "husband": "partner", "girlfriend": "partner", "boyfriend": "partner",
    "favourite drink": "drinks", "favorite drink": "drinks", "code": "editor", "editor of choice": "editor",
    "home town": "lives in", "gp": "doctor", "physician": "doctor",
}  # fmt: skip
_ALSO: Final = re.compile(r"\b(?:too|as well|another)\b\W*|\balso\b", re.IGNORECASE)
_KEYS: Final = {
    **dict.fromkeys(
        ("lives in", "location", "city", "home", "residence", "based in", "wohnort", "ville", "ciudad"), "lives in"
    ),
    **dict.fromkeys(("works at", "employer", "company", "workplace"), "works at"),
    **dict.fromkeys(("birthday", "date of birth", "geburtstag", "cumpleaños", "anniversaire"), "birthday"),
    **dict.fromkeys(("partner", "spouse", "wife", "husband", "girlfriend", "boyfriend"), "partner"),
    **dict.fromkeys(("role", "job", "job title", "occupation", "profession", "beruf"), "role"),
    **dict.fromkeys(("editor", "primary editor", "preferred editor"), "editor"),
}  # fmt: skip
"""Keys of lines that say the same as sentences do."""
_OF_ANYTHING: Final = frozenset({"location", "home", "company"})
"""Keys that projects and journeys have, too: claims about the user only."""
_PAIR: Final = re.compile(r"(?:(?P<who>[^:–]{1,40}) – )?(?P<key>[^:–.]{1,40}):\s+(?P<value>[^,;(–—]{2,60})")
_BARE: Final = re.compile(
    r"(?:(?P<who>[^:–]{1,40}) – )?"
    r"(?P<verb>(?:(?:mostly|usually|always|never|currently|also|actively|regularly|strongly|only) )?"
    r"(?:lives|works|worked|moved|prefers|likes|loves|hates|dislikes|enjoys|uses|drinks|eats|speaks|plays|avoids|wants|needs|"
    r"owns|writes|reads|studied|joined|switched|left|born|married|allergic|vegetarian|vegan|based|interested|attends|follows|"
    r"watches|built|has|is|was|reports(?= to))) (?=\S)",
    re.IGNORECASE,
)
_WITHOUT_IS: Final = frozenset({"born", "married", "allergic", "vegetarian", "vegan", "based", "interested"})
_USUAL: Final = re.compile(r"^(?:current|new|preferred|usual|main|primary|daily) ")
_I_AM: Final = re.compile(r"I(?:['’]m| am)\b")
"""Behind which only the user is meant, whatever name follows."""
_WISHED: Final = re.compile(
    r"\b(?:hopes? to|wants? to|plans? to|going to|thinking (?:of|about)|considering|dreams? of|will probably)\b", re.IGNORECASE
)
"""Somebody may say so of themselves, and it is not so yet."""
_NO_WHO: Final = frozenset(
    """
    the this that these those there it they a an and or but of for from with without by to in on at as if when while where
    which who what how why some many most several all both each every any no not one two three such other another here however
    found bought got rented took just
    thus also although because since after before during under over between among more less new users user people students
    researchers scientists everybody everyone somebody someone nobody figure table section chapter part today yesterday
    tomorrow january february march july august september october november december monday tuesday wednesday thursday friday
    saturday sunday lunch dinner breakfast coffee please note note: let ik
    """.split()  # noqa: SIM905
)


_SAYS: Final = re.compile(r"(?P<who>[^:\n]{1,60}) says: ")
"""As `says` writes it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """`subject`: `user`, or a name in lower case. `is_single`: another value of the same `aspect` contradicts this one."""

    subject: str
    attribute: str
    value: str
    is_single: bool
    aspect: str = ""

    @property
    def topic(self) -> tuple[str, str]:
        """Two claims with the same one contradict each other, where they have one value."""
        return topic_of(self.subject, self.attribute, self.aspect)


_AT_WORK: Final = re.compile(r"(?: at|,? ?@) (?P<employer>\S.*)")


def employer_of(claim: Claim) -> Claim | None:
    """For whom somebody works, of a claim what they are: "Job: baker at Nexia"."""
    found = _AT_WORK.search(claim.value) if claim.attribute == "role" else None
    return None if found is None else replace(claim, attribute="works at", value=found["employer"], is_single=True, aspect="")


@cache
def _rules() -> tuple[tuple[str, bool, re.Pattern[str]], ...]:
    """Attribute, whether it has one value, pattern. Compiled for the first statement, not when a server starts."""
    single = ((attribute, True, rule) for attribute, rules in _SINGLE for rule in rules)
    several = ((attribute, False, rule) for attribute, rule in (*(("uses", rule) for rule in _USES), *_MANY))
    return tuple((attribute, is_single, re.compile(rule)) for attribute, is_single, rule in (*single, *several))


@lru_cache(maxsize=_KNOWN)
def claim_of(statement: str) -> Claim | None:
    """What one statement claims; None when it asks, supposes, quotes, tells what others say, or claims nothing that is
    known here."""
    speaker, words = speaker_and_words(statement)
    if speaker:
        said = claim_of(words)
        if said is not None and (said.subject == USER or said.subject in RELATIVES):
            who = speaker.casefold()
            return replace(said, subject=who if said.subject == USER else f"{who}'s {said.subject}")
        return said
    if not is_readable(statement) or not is_meant(statement) or _WISHED.search(statement):
        return None
    pair = _PAIR.match(statement)
    key = "" if pair is None else pair["key"].casefold()
    if pair is not None and key in _KEYS and (pair["who"] is None or key not in _OF_ANYTHING):
        who = USER if pair["who"] is None else pair["who"].casefold()
        return Claim(who, _KEYS[key], pair["value"].strip(" .").casefold(), is_single=True)
    statement = _with_subject(statement)
    for attribute, single, rule in _rules():
        found = rule.search(statement)
        made = None if found is None else _claim(found, attribute, is_single=single)
        if made is not None and (made.subject == USER or _I_AM.match(statement) is None):
            return made
    statement = as_sentence(with_ich(statement))
    return next((made for one in LANGUAGES if (made := _claim_in(one, statement)) is not None), None)


def is_readable(statement: str) -> bool:
    """Whether it may be a sentence; none is a picture in PostScript, a line of data, or a key in Base64."""
    return len(statement) <= _STATEMENT_MAX_CHARS and _LONG_WORD.search(statement) is None


def says(speaker: str, statement: str) -> str:
    """What somebody else than the user says, so that "I" in it is they."""
    return f"{speaker} says: {statement}"


def speaker_and_words(statement: str) -> tuple[str, str]:
    """Who says it and what, of a statement that `says` made; of others nobody and all of it."""
    told = _SAYS.match(statement)
    return ("", statement) if told is None else (told["who"], statement[told.end() :])


def is_bare(statement: str) -> bool:
    """Whether it leaves out whom it is about: "Prefers tea", "Allergic to nuts"."""
    return _BARE.match(statement) is not None


def _with_subject(statement: str) -> str:
    """With whom a bare statement is about: the user, or who is named before it ("Ana – Lives in Graz")."""
    found = _BARE.match(statement)
    if found is None:
        return statement
    verb = found["verb"].casefold()
    lacks_verb = verb.rpartition(" ")[2] in _WITHOUT_IS
    return f"{found['who'] or 'The user'} {'is ' if lacks_verb else ''}{verb} {statement[found.end() :]}"


def _claim_in(language: Language, statement: str) -> Claim | None:
    if language.marks.search(statement) is None:
        return None
    for attribute, is_single, rule in language.rules():
        found = rule.search(statement)
        if found is None:
            continue
        groups = found.groupdict()
        who, value = groups.get("who"), found["value"].strip()
        first = (who or "").casefold().partition(" ")[0]
        if first in _FIRST_PERSON:
            who = None
        elif first in language.no_who:
            continue
        subject = USER if who is None else _subject(who)
        what = (groups.get("what") or "").casefold()
        named = language.attributes.get(what, what) or attribute
        if subject is not None and value and named:
            single = is_single and groups.get("aside") is None and named not in SEVERAL_OF
            aspect = language.aspect_of(value, named, statement) if what or named == "drinks" else ""
            return Claim(subject=subject, attribute=named, value=value.casefold(), is_single=single, aspect=aspect)
    return None


_FIRST_PERSON: Final = frozenset({"ich", "wir"})


def _claim(found: re.Match[str], attribute: str, *, is_single: bool) -> Claim | None:
    groups = found.groupdict()
    who = groups.get("who") or groups.get("kin") or groups.get("my") or "I"
    subject = _subject(who)
    value = (groups.get("value") or "").strip()
    if subject is None or not value or (attribute == "lives in" and (is_tool(value) or not is_home(value))):
        return None
    named = " ".join((groups.get("what") or "").casefold().split())
    if named:
        if OPINION.fullmatch(value):
            return None
        while (shorter := _USUAL.sub("", named)) != named:
            named = shorter
        attribute = _SAME_ATTRIBUTE.get(named, named)
    is_single = is_single and groups.get("aside") is None and attribute not in SEVERAL_OF
    is_single = is_single and _ALSO.search(found.string) is None
    aspect = aspect_of(value, attribute) if named or attribute in PLACES or attribute == "drinks" else ""
    return Claim(subject=subject, attribute=attribute, value=value.casefold(), is_single=is_single, aspect=aspect)


_USERS: Final = frozenset(
    {
        *("i", "we", "my", "our", "user", "the user", "the team", "the family", "the board", "the group"),
        *("nutzer", "der nutzer", "benutzer", "der benutzer", "usuario", "el usuario", "utilisateur"),
    }
)
"""Who is the user, or speaks for them."""


def _subject(who: str) -> str | None:
    """`user`, a name, or None for a word that only begins a sentence."""
    plain = re.sub(r"['’]s$", "", who.strip())
    if plain.casefold() in _USERS or plain.startswith(("I'", "I’")):
        return USER
    if plain.casefold() in ("she", "he", "her", "his"):
        return None
    words = [in_full(word) for word in plain.casefold().split()]
    is_name = bool(words) and words[0] not in _NO_WHO and not words[0].endswith(("n't", "n’t"))
    return " ".join(words) if is_name else None
