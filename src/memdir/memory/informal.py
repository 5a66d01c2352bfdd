"""What people type in a chat, or in a note without capitals, as sentences that the rules read: "btw moved to bristol last
month, im vegan, jess isnt" is "I moved to bristol last month, I'm vegan, Jess isn't". English, German and French; Spanish needs
no subject. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Final

from memdir.memory.dates import MONTH, WEEKDAY
from memdir.store.text.sentences import sentences

_OPENING: Final = re.compile(
    r"(?:(?:(?:hey|hi|hello|ok(?:ay)?|k|so|and|but|well|h+m+|also|btw|by the way|fyi|yeah|yes|yep|yup|thx|thanks|thank you|"
    r"oh|ah|nah|nope|lol|(?:ha){2,}h?|anyways?|actually|tbh|honestly|scratch that|heads up|(?:good news|update)(?=[:,!])|"
    r"u(?:nd|h+m*|m+(?=,))|erm+|ähm?|euh+|"
    r"aber|achja|ja|übrigens|danke|genau|bon|alors|au fait|oui|merci|bueno|por cierto|sí|gracias)\b[,:;.!…–-]*|"
    r"(?:nice|cool|great|good|sure|right|true|no|perfect|sorry|nein|nee|super|stimmt|non|vale|claro)(?:\b[,:;.!…–-]+|"
    r"(?= (?:i|we|my|moved|just|still|habe?|bin|ich|j['’]))))\s+)+(?=\S)",
    re.IGNORECASE,
)
"""What stands before what is said."""
_DICTATED: Final = re.compile(r"\b(?:u+m+|u+h+m*|erm+|ä+hm*|euh+),", re.IGNORECASE)
_FILLER: Final = re.compile(
    r"(?<=\w),? (?:btw|fyi|tbh|lol|ngl|haha+|hehe|x{1,3})\b(?= *[,.!?;]| *$| (?:so|and|but)\b)", re.IGNORECASE
)
"""What stands behind it, and says nothing."""
_WORDS: Final = tuple(
    (re.compile(rf"(?<![\w.'’/-])(?:{typed})(?![\w'’/-])"), meant)
    for typed, meant in (
        (r"i", "I"),
        (r"i['’]m|im(?= \w)", "I'm"),
        (r"(?<![\w ])were(?= (?:on|in|at|using|all|\w+ing)\b)", "we're"),
        (r"i['’]ve|ive", "I've"),
        (r"weve", "we've"),
        (r"shes", "she's"),
        (r"hes", "he's"),
        (r"theyre", "they're"),
        (r"i['’]d", "I'd"),
        (r"i['’]ll", "I'll"),
        (r"gonna", "going to"),
        (r"wanna", "want to"),
        (r"dont", "don't"),
        (r"doesnt", "doesn't"),
        (r"didnt", "didn't"),
        (r"cant", "can't"),
        (r"isnt", "isn't"),
        (r"havent", "haven't"),
        (r"(?<=[Ww]e )r", "are"),
        (r"gf", "girlfriend"),
        (r"bf", "boyfriend"),
        (r"gfs(?= name)", "girlfriend's"),
        (r"bfs(?= name)", "boyfriend's"),
        (r"bday", "birthday"),
        (r"pls|plz", "please"),
        (r"rn", "right now"),
        (r"jai", "j'ai"),
        (r"jhabite", "j'habite"),
    )
)
"""How people type, and what they mean."""
_GERMAN: Final = re.compile(r"\b(?:ich|und|nicht|wir|mit|bei|nach|ist|wohne|bin|habe?|ziehe|zu|für)\b", re.IGNORECASE)
"""There "im" is another word."""
_OWNER: Final = re.compile(
    r"(?<=\b[Mm]y )(wife|son|mom|mum|dad|cat|dog|boss|sister|brother|daughter|partner|husband)s(?= (?:name|birthday)\b)"
)
_ADVERB: Final = r"(?:(?:just|finally|now|recently|currently|still|already|only|officially) )?"
_LACKING: Final = (
    (
        re.compile(
            rf"{_ADVERB}(?:moved|started|quit|left|joined|sold|bought|got|adopted|switched|changed jobs|gave up|stopped|"
            r"graduated|retired|broke up|turned \d\d?(?! \w+s\b)|became|signed up|lost|passed|grew up|was born|live|love|hate|"
            r"work (?:at|for|in|as|from))\b(?!:| me\b| \w+ (?:is|are|was|were|needs?)\b)",
            re.IGNORECASE,
        ),
        "I ",
    ),
    (re.compile(rf"am {_ADVERB}\w", re.IGNORECASE), "I "),
    (
        re.compile(
            rf"{_ADVERB}(?:living|working (?:at|for|in|as|from)|staying|starting (?:at|my|a)|studying|learning|moving|"
            r"going to (?:be|move|start|live|have|marry|quit)|renting|dating|training for|expecting|engaged|married|pregnant|"
            r"vegan|vegetarian|(?:not )?(?:drinking|smoking)|(?:not )?eating (?:meat|fish|dairy|eggs)|"
            r"seeing (?:someone|somebody))\b",
            re.IGNORECASE,
        ),
        "I'm ",
    ),
    (
        re.compile(
            r"(?:bin|habe?|wohne|lebe|arbeite|heiße|komme aus|ziehe|studiere|spreche|esse|trinke|fahre) \w", re.IGNORECASE
        ),
        "Ich ",
    ),
)
"""How a sentence begins that has no subject, and what it lacks."""
_NAMES: Final = frozenset(
    name
    for line in files("memdir.memory").joinpath("first_names.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
    for name in line.split()
)
"""In small letters."""
_WORD: Final = re.compile(r"(?<![\w@/.#&'’-])[a-zß-ÿ]{2,14}(?![\w@/-]|\.\w)")
_GOES_ON: Final = (
    r"(?:now|last|this|next|in|since|with|from|for|and|but|on|at|until|till|again|yesterday|today|so|by|as|because|soon|after|"
    r"before|then|where|full-time|part-time|permanently|originally)\b"
)
_NO_PLACE: Final = (
    r"(?!(?:town|bed|college|uni|university|school|work|home|there|here|halls|student|peace|fear|debt|it|this|that|me|him|her|"
    r"them|us|my|our|the|an?|early|late|alone|behind|out|over|off|today|tomorrow|nights?|weekends?|once|least|first|noon|"
    r"midnight|mon|tues?|weds?|thurs?|fri|sat|sun|\w+ing|\w+days?|\w+self)\b)"
)
_PLACE: Final = re.compile(
    r"(?:(?<=[\w'’] )|(?=[Ii]['’]m ))(?P<before>(?:live[sd]?|living|moved?|moves|moving|relocat(?:ed|ing)|based|born|grew up|"
    r"settled|staying|[Ii]['’]m|originally) (?:in|to|near|from|back to) |"
    r"(?:works?|working|worked|started|starts|starting|interning|job|hired) (?:at|for) |(?:left|joined|joining|leaving) )"
    rf"(?P<name>{_NO_PLACE}(?!{_GOES_ON})[a-zß-ÿ]{{3,}}(?: (?!{_GOES_ON})[a-zß-ÿ]{{2,}})?)(?= *[,.;!?)](?!\w)| *$| {_GOES_ON})"
)
"""Where somebody lives or works, by a name in small letters."""
_MONTH: Final = f"(?:{MONTH.lower()}|mai)"
_CALENDAR: Final = re.compile(
    rf"\b(?:january|february|april|june|july|august|september|october|november|december|{WEEKDAY.lower()}s?|"
    r"januar|februar|märz|juni|juli|oktober|dezember|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)\b|"
    rf"(?:(?<=\b(?:in|on|by|of|im) )|(?<=\d )|(?<=\d(?:st|nd|rd|th) )){_MONTH}\b|\b{_MONTH}(?= \d)"
)
"""Months and weekdays in small letters; the short ones and "may" where a day or "in" stands beside them."""
_CODE: Final = re.compile(r"[={}\\]|\w\(|;$|</?\w+>")
_SHORT_HABE: Final = re.compile(r"(?<=\bich )hab(?= )", re.IGNORECASE)
_BEGINS: Final = re.compile(r"(?<=[.!?] )[a-zß-ÿ]")

_OF_THE_MOMENT: Final = re.compile(
    r"(?:I|We) (?:\w+ )?(?:this|that|it|these|those)\b|Let['’]?s\b|(?:S?he|They|It|His|Her|Its|Their)(?:['’]\w+)? |I think\b|"
    r"I['’]m (?:confused|lost|stuck|back|done|ready|curious|wondering|sorry|sure|good|(?:happy|fine|ok|okay) with)\b|"
    r"I (?:\w+ )?(?:like|love|prefer|hate) (?:the (?:\w+ )?(?:one|line|version|option|idea|draft|tone)|option \w)\b|"
    r"(?:write|explain|make|give|need|show|help|summari[sz]e|translate|list|suggest|find|tell|compare|draft|fix|rewrite|"
    r"shorten|create|generate|more|again)\b(?!.*\b(?:always|never|every time|from now on)\b)",
    re.IGNORECASE,
)
_OF_PROGRAMS: Final = re.compile(
    r"\b(?:branch|ports?|tests?|ci|errors?|debugger|functions?|cache|regex|containers?|servers?|rebase|commits?|merge|diffs?|"
    r"stack ?trace|traceback|output|prints?|logs?|variables?|class(?:es)?|methods?|files?|scripts?|imports?|builds?|buttons?|"
    r"endpoints?|quer(?:y|ies)|tables?|columns?|dicts?|arrays?|loops?|threads?|bugs?|timeouts?|whitespace|prs?|pull requests?|"
    r"mock(?:s|ing)|checks?|dataclass|lists? of|json|yaml|configs?|pages?|components?|handlers?|routes?|schemas?|migrations?|"
    r"linter|warnings?|typos?|messages?|modules?|dependenc(?:y|ies)|terminal|prompts?|headers?|modal|fields?|div|generators?|"
    r"null|async|cookies?|snippet|line \d+|python|git|docker|npm|pip|sql|http|api|cpu|css|html|"
    r"\w+\.(?:py|js|ts|go|rs|java|c|h|cpp|sh|md|txt|yml))\b",
    re.IGNORECASE,
)
_OF_PROGRAMS_SHARE: Final = 0.3
_SMALL_LETTERS_SHARE: Final = 0.8


def is_informal(said: Iterable[str]) -> bool:
    """Whether most sentences of a text begin with small letters, but for "I", or it was dictated: "Um, I saw …"."""
    said = list(said)
    if any(map(_DICTATED.search, said)):
        return True
    small = [one[0].islower() for one in said if one[:1].isalpha() and not re.match(r"I\b", one)]
    return bool(small) and sum(small) >= _SMALL_LETTERS_SHARE * len(small)


def is_about_programs(said: Sequence[str]) -> bool:
    """Whether messages are of a session in which somebody has a model work on programs."""
    return sum(_OF_PROGRAMS.search(one) is not None for one in said) > _OF_PROGRAMS_SHARE * len(said)


def is_of_the_moment(said: str) -> bool:
    """Whether a message asks for something, or is understood only with what was said before it."""
    return _OF_THE_MOMENT.match(said) is not None


def as_sentences(said: str, *, is_item: bool = False) -> list[tuple[int, str]]:
    """Of one paragraph of such a text: where each sentence begins in it, and what it says. Code stays as it is, and an item of
    a list that may be none ("cats", below "Allergies")."""
    marked = _BEGINS.sub(lambda found: found[0].upper(), said)
    found = []
    for start, end in sentences(marked):
        typed = said[start:end]
        is_code = _CODE.search(typed) is not None
        meant = typed if is_code else _sentence(typed)
        found.append((start, typed if is_code or (is_item and meant == typed) else f"{meant[:1].upper()}{meant[1:]}"))
    return found


def _sentence(typed: str) -> str:
    """With what it lacks, but for its first capital."""
    opening = _OPENING.match(typed)
    said = _FILLER.sub("", typed if opening is None else typed[opening.end() :])
    if _GERMAN.search(said) is None:
        for rule, meant in _WORDS:
            said = rule.sub(meant, said)
    said = _WORD.sub(lambda found: found[0].capitalize() if found[0] in _NAMES else found[0], said)
    said = _OWNER.sub(r"\1's", said)
    lacking = next((subject for rule, subject in _LACKING if rule.match(said)), "")
    if lacking:
        said = f"{lacking}{said[:1].lower()}{said[1:]}"
    said = _CALENDAR.sub(lambda found: found[0].capitalize(), said)
    said = _PLACE.sub(lambda found: found["before"] + found["name"].title(), said)
    return _SHORT_HABE.sub("habe", said)
