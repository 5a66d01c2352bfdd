"""What a statement says is over ("Sold the Skoda", "the damp is fixed", "no more piano lessons"), and which facts that ends:
those that tell of the same thing in the same words. Pure; English.

What a statement replaces by naming the former value of an attribute is for `memory.claims`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, Literal

from memdir.memory.claims import STATEMENT_MAX_CHARS, is_meant
from memdir.store.text.stopwords import ENGLISH
from memdir.store.text.words import stem, words

Kind = Literal["anything", "doing", "not doing", "wanting", "owing", "trouble", "the same"]

_KNOWN: Final = 32_768
WORDS_MAX: Final = 24
"""Of a fact, the first ones."""
_WORDS_FOR_ONE: Final = 4
"""A fact that says more words for each one of what is over only mentions it."""
_DETERMINER: Final = r"(?:(?:the|my|our|his|her|their|its|all|an?) )?"
_PHRASE: Final = r"[^.,;:!?()–—]{2,60}?"
_WHAT: Final = rf"(?:(?:with|using|doing|on|in|at|from) )?{_DETERMINER}(?P<what>{_PHRASE})"
_END: Final = (
    r"(?=\s*[.,;:!?()–—]|\s*$| - | -> | (?:and|but|because|since|so|for|to|in favou?r of|after|when|last|this|that|today|"
    r"yesterday|now|as|by|instead|on|any ?more|altogether|too|completely|entirely|again)\b)"
)
_CLAUSE: Final = r"(?:^(?:[^:]{1,40} – |\d{4}-\d\d-\d\d: )?|[.,;:–—(] |\b(?:and|but|so|then) )"
_SUBJECT: Final = (
    r"(?:(?:I|[Ww]e|[Ss]he|[Hh]e|[Tt]he user|[A-ZÀ-Þ]\w+)(?:['’](?:ve|m|re|s)| have| has| am| are| is)? )?"
    r"(?:(?:finally|just|now|also|already|really|recently|officially) )*"
)
_IT_IS: Final = (
    rf"{_CLAUSE}{_DETERMINER}(?P<what>[^.,;:!?()–—]{{2,50}}?) (?:(?:is|are|was|were|has|have)(?: been| got)? )?"
    r"(?:(?:finally|now|all) )*"
)
_SAID: Final = r"(?=\s*[.,;!?)]|\s*$| - | (?:on|at|in|last|this|today|yesterday|now|since|and|but)\b)"
"""Nothing that the word before could take as its object."""
_OVER: Final = re.compile(
    rf"{_CLAUSE}{_SUBJECT}(?i:sold|traded(?: in)?|gave (?:away|back)|given away|handed back|returned|got rid of|threw out|"
    r"handed over|gave(?= my [^.,;]{2,40} to\b)|retired(?= (?:the|my|our) )|some(?:one|body) stole|"
    r"(?:had to )?stop(?= \w+ing\b)|"
    r"stopped(?! (?:at|by|in|for)\b)|quit|gave up|given up|dropped(?! [^.,;]{0,30}\boff\b)|ended(?! up\b)|"
    r"left(?= (?:the|my|our) (?!house|home|office|flat|room|table)\w)|"
    r"scrapped|deleted|shut down|switched off|turned off|moved off|moved away from|unsubscribed from|(?:done|through) with|"
    r"no more|no longer|no(?= [^.,;]{2,40} any ?more)|retired from|"
    r"resigned (?:from|as)|stepped down as|let(?= [^.,;]{2,40} lapse\b)|handed in (?:my )?notice at|"
    r"took me off|(?:my )?last day (?:at|with)|decided not to|uninstalled|divorced|split up with|broke up with|"
    rf"(?:switched|changed)(?! (?:to|from|the|our)\b)|cancell?ed) {_WHAT}{_END}"
)
_IS_OVER: Final = re.compile(
    rf"{_IT_IS}(?:(?:sold|(?:(?<=is )|(?<=are )|(?<=was ))(?:over|off|gone)|cancell?ed|finished|"
    r"scrapped|ended|switched off|uninstalled|left|"
    rf"shut down){_SAID}"
    r"|(?:dead|died|stolen|broke down|passed away|retired|expired|lapsed|came off|fell through|moved out|moved away|"
    r"split up|broke up|closed down|went (?:bust|back))\b)"
)
_WELL: Final = re.compile(
    rf"{_IT_IS}(?:fixed|repaired|solved|resolved|healed|cured|back to normal|(?:fine|better|"
    r"working|works?) again)"
    rf"{_SAID}"
    rf"|{_CLAUSE}{_SUBJECT}(?i:fixed|repaired|solved|resolved|found) {_DETERMINER}(?P<again>{_PHRASE}){_END}"
)
_FROM: Final = re.compile(
    rf"\b(?:[Mm]oved|[Mm]igrated|[Ss]witched|[Cc]hanged|[Ww]ent|[Pp]orted|[Tt]ransferred)\b[^.,;:]{{0,40}}? from {_DETERMINER}"
    rf"(?P<what>{_PHRASE}) (?:over )?to\b"
)
_INSTEAD: Final = re.compile(rf"\b(?:instead of|rather than) (?:\w+ing )?{_WHAT}{_END}")
_NOT_SO: Final = re.compile(
    rf"(?:(?:\b(?<!will )not|(?<!\bwo)n['’]t)(?= [^.;]*\b(?:after all|any ?more)\b)|\b[Tt]urns? out [^.;,]{{1,30}} not) {_WHAT}"
    r"(?=,? after all| any ?more|[.,;!?()]|$)"
)
_SEPARATED: Final = re.compile(
    r"(?P<what>[A-ZÀ-Þ]\w+) and I (?:have |are |finally )*(?:split up|broke up|separated|divorced|getting divorced)\b"
)
_DONE: Final = re.compile(
    rf"{_CLAUSE}{_SUBJECT}(?i:finished|completed|ran|passed|did|read|watched|handed in|shipped|submitted|delivered|wrapped up|"
    rf"done with|withdrew from|did(?:n['’]t| not) get|got(?= (?:the|my) )) {_WHAT}{_END}"
)
_GOT: Final = re.compile(
    rf"{_CLAUSE}{_SUBJECT}(?i:bought|got|found|booked|ordered|moved into|signed (?:for)?) {_DETERMINER}(?:new )?"
    rf"(?P<what>{_PHRASE})(?= (?:in|on|at|from|with|by|for|as|and|today|yesterday|last)\b|[.,;:!?()–—]|\s*$)"
)
_ARRIVED: Final = re.compile(
    rf"{_CLAUSE}{_DETERMINER}(?P<what>[^.,;:!?()–—]{{2,50}}?) (?:(?:is|are|was|were|has|have)(?: been)? )?(?:(?:finally|now) )*"
    r"(?:arrived|delivered|(?<=is )here|granted|approved|came (?:through|in|today|yesterday))\b"
)
_PAID: Final = re.compile(rf"{_CLAUSE}{_SUBJECT}(?i:paid|repaid)(?: (?:off|back))? {_WHAT}(?: back| off)?{_END}")
_AGAIN: Final = re.compile(
    rf"\bback (?:on|at|to) {_DETERMINER}(?P<what>{_PHRASE}){_END}"
    rf"|\b(?:started|resumed|eat|drink|go to|play|use|do|take) {_DETERMINER}(?P<again>{_PHRASE}) again\b"
)
_CHANGED: Final = re.compile(
    r"\b(?:now|no longer|any ?more|these days|nowadays|from now on|again|new|down to|up to|only)\b",
    re.IGNORECASE,
)
"""Words of a statement that says how something is after it changed."""
_HAS_VALUE: Final = re.compile(r"\b(?:is|are|takes?|costs?|has|have|pays?|gets?|starts?|ends?|due|expires?|opens?|closes?)\b")
_SAME: Final = 0.5
"""Jaccard, of the words of two statements but for quantities, from which they are about the same."""
_SAME_MIN: Final = 2
"""Words in common; where there are fewer, all must be."""
_PATTERNS: Final[tuple[tuple[re.Pattern[str], Kind], ...]] = (
    (_OVER, "anything"), (_IS_OVER, "anything"), (_FROM, "anything"), (_INSTEAD, "anything"), (_NOT_SO, "anything"),
    (_SEPARATED, "anything"), (_WELL, "trouble"), (_DONE, "doing"), (_GOT, "wanting"), (_ARRIVED, "wanting"),
    (_PAID, "owing"), (_AGAIN, "not doing"),
)  # fmt: skip
_TOLD_BY: Final[dict[Kind, re.Pattern[str]]] = {
    "doing": re.compile(
        r"\b(?:train|prepar|study|learn|read|watch|writ|work|build|plan|wait|practi[sc]|draft|apply|renovat|redo|taking)\w*\b|"
        r"\b(?:to do|todo|due|deadline|in progress)\b",
        re.IGNORECASE,
    ),
    "wanting": re.compile(
        r"\b(?:(?:want|need|plan|wish|hope|buy|wait|pending|appl[iy])\w*|looking for|"
        r"saving (?:up )?for|thinking of|on order|ordered)\b",
        re.IGNORECASE,
    ),
    "owing": re.compile(r"\b(?:owes?|debt|loan|borrowed|mortgage|invoice|bill)\b", re.IGNORECASE),
    "trouble": re.compile(
        r"\b(?:problem|trouble|issue|bug|fault|leak|crack|damp|broke|hurt|ache|pain|stuck|fail|slow|flaky|infect|noise|down|wrong|"
        r"sick|ill|injur|sprain|damag|dead|lost|treated)\w*\b|n['’]t\b|\bnot\b",
        re.IGNORECASE,
    ),
    "not doing": re.compile(
        r"\b(?:not|never|no|without|stopped|quit|gave up|given up|cancell?ed|dropped|sold|ended|off)\b|n['’]t\b",
        re.IGNORECASE,
    ),
}
_THIS_TIME: Final = re.compile(
    r"\b(?:today|tonight|tomorrow|this (?:week|morning|afternoon|evening|month|time|year))\b", re.IGNORECASE
)
_ONE_TIME: Final = re.compile(_THIS_TIME.pattern + r"|\b(?:tried|had|made|ate|went|took|got|bought|\w+ed)\b", re.IGNORECASE)
_RECURRING: Final = re.compile(r"\b(?:every|each|daily|weekly|monthly|yearly|\w+days)\b", re.IGNORECASE)
_ONCE: Final = frozenset(
    map(
        stem,
        """
        meeting call dinner lunch breakfast appointment flight trip session party visit order date class standup
        """.split(),  # noqa: SIM905
    )
)
"""What is cancelled for one day, and is held the next time."""
_OF_FILE: Final = re.compile(r"^[^:–]{1,40} – ")
"""Whom a line is about, where its words do not tell."""
_OF_RELATIVE: Final = re.compile(r"(?:My|Our) [a-z-]+ (?:works|drives|owns|uses|rides|plays|goes|lives|studies|likes|loves)\b")
_QUANTITIES: Final = frozenset(
    map(
        stem,
        """
        second third fourth fifth sixth three four five six seven eight nine ten eleven twelve twenty hundred thousand half
        minutes hours days weeks months years euros dollars pounds kr only about down now longer anymore again new instead moved
        changed switched takes costs has pays gets starts due is back still daily weekly monthly early late
        """.split(),  # noqa: SIM905
    )
)
_TIMES: Final = frozenset(
    map(
        stem,
        """
        january february march april may june july august september october november december
        jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun monday tuesday wednesday thursday
        friday saturday sunday day week month year today yesterday tomorrow morning evening night ago last next end finally now
        just already really
        """.split(),  # noqa: SIM905
    )
)
_IGNORED: Final = ENGLISH | frozenset({"called", "named", "user", "every", "each", "yrs", "kr"})
"""Words that tell nothing, or whose stems are nouns that tell something else."""
_VAGUE: Final = frozenset(
    map(
        stem,
        """
        thing stuff work job go going do doing use using take taking get make live eat drink one two three first much many lot
        more less new old good way part home
        """.split(),  # noqa: SIM905
    )
)
"""What tells nothing of what is over when it stands alone."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Stems of what is over, and which `kind` of facts it ends: `anything` that holds, or what somebody is doing, not doing,
    wanting or owing, or trouble, or `the same` with another value. `needs_all`: only where nothing else is said."""

    stems: frozenset[str]
    kind: Kind
    is_for_once: bool = False
    needs_all: bool = False

    @property
    def topics(self) -> frozenset[str]:
        """Of `word_topics`, by which such facts are looked up."""
        if self.needs_all:
            return frozenset({_all_of(self.stems)})
        return self.stems if self.kind == "the same" else frozenset({max(self.stems, key=lambda one: (len(one), one))})


@lru_cache(maxsize=_KNOWN)
def endings_of(statement: str) -> tuple[Ending, ...]:
    """What a statement says is over; empty for one that asks, supposes or is longer than `STATEMENT_MAX_CHARS`."""
    if len(statement) > STATEMENT_MAX_CHARS or not is_meant(statement):
        return ()
    found: list[Ending] = []
    for pattern, kind in _PATTERNS:
        if pattern is _INSTEAD and _ONE_TIME.search(statement):
            continue
        for match in pattern.finditer(statement):
            groups = match.groupdict()
            stems = stems_of(groups["what"] or groups.get("again") or "")
            if stems - _VAGUE:
                is_cancelled = "ancel" in match[0]
                if is_cancelled and _THIS_TIME.search(statement):
                    continue
                is_for_once = is_cancelled and bool(stems & _ONCE)
                found.append(Ending(stems, kind, is_for_once))
    about = _about(statement)
    is_changed = _CHANGED.search(statement) is not None
    if (about - _VAGUE and is_changed) or (len(about) >= _SAME_MIN and _HAS_VALUE.search(statement)):
        found.append(Ending(about, "the same", needs_all=not is_changed))
    return tuple(found)


def says_what_is_over(statement: str) -> bool:
    """Whether it is worth remembering for that alone; what is finished, bought or paid passes."""
    return any(ending.kind not in {"doing", "wanting", "owing", "the same"} for ending in endings_of(statement))


@lru_cache(maxsize=_KNOWN)
def stems_of(text: str) -> frozenset[str]:
    """Of its words that tell something: no stop words, numbers, days or months; at most WORDS_MAX."""
    telling = (word for word in words(text) if word not in _IGNORED and len(word) > 1 and not word[0].isdigit())
    return frozenset(islice((one for one in map(stem, telling) if one not in _TIMES), WORDS_MAX))


def word_topics(fact: str) -> frozenset[str]:
    """Its words, and all that it is about as one."""
    return stems_of(fact) | {_all_of(_about(fact))}


def _all_of(stems: frozenset[str]) -> str:
    return " ".join(("=", *sorted(stems)))


def is_ended(fact: str, ending: Ending) -> bool:
    """Whether a fact tells of what is over, and of hardly anything else."""
    if ending.kind == "the same":
        about = _about(fact)
        if ending.needs_all:
            return about == ending.stems
        return about - _VAGUE == ending.stems - _VAGUE or (
            len(about & ending.stems) >= max(_SAME_MIN, _SAME * len(about | ending.stems))
        )
    stems = stems_of(_OF_FILE.sub("", fact))
    if not ending.stems <= stems or len(stems) > _WORDS_FOR_ONE * len(ending.stems) or _OF_RELATIVE.match(fact):
        return False
    if ending.is_for_once and _RECURRING.search(fact):
        return False
    if ending.kind != "anything":
        return _TOLD_BY[ending.kind].search(fact) is not None
    return _TOLD_BY["not doing"].search(fact) is None and not _is_one_of_several(fact, ending)


def _about(text: str) -> frozenset[str]:
    """Stems of what a statement is about, without how much, how long or when."""
    return stems_of(text) - _QUANTITIES


def _is_one_of_several(fact: str, ending: Ending) -> bool:
    """Whether the fact tells of others beside it: "two cats, Miso and Kuma"."""
    last = max(ending.stems, key=len)
    return re.search(rf"\band {last}|{last}\w* and [A-ZÀ-Þa-zà-þ]|, {last}\w*,", fact, re.IGNORECASE) is not None
