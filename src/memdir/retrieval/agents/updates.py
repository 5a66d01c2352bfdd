"""Does a new statement take the place of an older one? The same subject and attribute with another value, or in so many words
("moved from X to Y", "no longer X").

Conservative: what is replaced is given to nobody any more. A frame is what both statements begin with, up to and with the
verb and its preposition; what comes behind it is the value. Rules and lists were made on one half of the pairs of `memdir
bench agents`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from memdir.retrieval.agents.stems import stem
from memdir.retrieval.agents.terms import is_stop_word
from memdir.store.text.words import fold


class Relation(Enum):
    """What a new statement is to an older one."""

    SAME = "same"
    UPDATES = "updates"
    MAY_UPDATE = "may update"
    """A question for whoever knows."""


@dataclass(frozen=True, slots=True)
class _Word:
    written: str
    folded: str
    stem: str

    @property
    def is_content(self) -> bool:
        return not is_stop_word(self.folded) and self.folded not in _CUE_WORDS


_TOKEN: Final = re.compile(r"[^\s,;()\"“”]+")
_EDGES: Final = ".:!?'’"
_CLAUSE: Final = re.compile(r"(?<=[.!?;])\s+|;\s*|(?<!\s)\s+(?:and|but) (?=(?:it|they|we|not)\b)")
_CHANGED: Final = (
    r"(?:switched|moved|migrated|replaced|renamed|upgraded|downgraded|raised|lowered|reduced|increased|changed|dropped|bumped|"
    r"cancell?ed|removed|retired|merged)"
)
_CUE: Final = re.compile(
    r"\b(?:now(?:adays)?|no longer|any ?more|instead of|rather than|since|as of|used to|(?:is|are) gone|again|quit|left|"
    rf"(?:was|were|has been|have been|got) {_CHANGED}|(?:we|they|I) {_CHANGED}|(?:{_CHANGED}|went) (?:over )?(?:from|to)|"
    r"jetzt|nicht mehr|statt|ahora|ya no|désormais|ne \w+ plus)\b",
    re.IGNORECASE,
)
_CUE_WORDS: Final = frozenset(
    "now longer anymore any more instead since again gone only currently still just yet".split()  # noqa: SIM905
)
_WORD: Final = r"(?:[^\s,;.]|\.(?=\S)){1,40}"
_FORMER: Final = re.compile(
    rf"\b(?:no longer|instead of|rather than|not|from|dropped|replaced|quit|gave up|left|than)\s+({_WORD}(?:\s{_WORD}){{0,3}})"
    r"|((?:\S+\s){1,3})(?:was|were|is|are) (?:replaced|dropped|cancell?ed|removed|retired|gone|renamed)",
    re.IGNORECASE,
)
"""What is said to hold no more."""
_AUXILIARY: Final = frozenset(
    """
    is are was were be been has have had must should can may will does do did
    """.split()  # noqa: SIM905
)
_VERB: Final = frozenset(
    """
    is are was were has have must should can uses use runs run lives live works work listens listen reads read
    goes go comes come needs need requires require prefers prefer supports support leads lead owns own manages
    manage starts start ends end stays stay takes take keeps keep approves approve reviews review polls poll
    buffers buffer saves save writes write drinks drink eats eat arrives arrive changes change happens happen
    costs cost expires expire returns return belongs belong ships ship deploys deploy builds build points point
    stands stand sits sit means mean defaults default contains contain holds hold allows allow forbids forbid
    speaks speak reports report rotates rotate speaks speak sends send stores store serves serve opens open closes
    close lasts last renders render sorts sort targets target wakes wake rebuilds
    """.split()  # noqa: SIM905
)
_PREPOSITION: Final = frozenset(
    """
    in on at to from with by for as into through under over via of per every within after before behind until than
    """.split()  # noqa: SIM905
)
_SEVERAL: Final = frozenset(
    """
    use uses need needs support supports require requires prefer prefers has have own owns know speak speaks allow
    allows write writes drink drinks eat eats read reads contain contains hold holds manage manages
    """.split()  # noqa: SIM905
)
"""Verbs that are true of several things at once: another object is no contradiction."""
_PERSONS: Final = frozenset(
    """
    leads lead approves approve owns own manages manage reviews review maintains runs
    """.split()  # noqa: SIM905
)
_TIMES: Final = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays
    saturdays sundays january february march april may june july august september october november december noon
    midnight night day hour week month year quarter minute second weekly daily monthly hourly nightly morning
    evening afternoon spring summer autumn winter
    """.split()  # noqa: SIM905
)
_NUMBERS: Final = frozenset(
    """
    one two three four five six seven eight nine ten eleven twelve twenty thirty none zero no
    """.split()  # noqa: SIM905
)
_SWITCHES: Final = frozenset(
    """
    on off enabled disabled true false allowed forbidden yes no required optional
    """.split()  # noqa: SIM905
)
_VALUE_WORDS_MAX: Final = 6
_MORE_MAX: Final = 2
"""Telling words that an older memory may hold beside what is replaced: of more, something would be lost."""


def relation(new: str, old: str) -> Relation | None:
    """Whether `new` takes the place of `old` (UPDATES), may do so (MAY_UPDATE), or is about something else. Symmetric texts are
    never the same here: see `retrieval.agents.similar`. Pure."""
    before = _clauses(old)
    now = _clauses(new)
    if not before or not now:
        return None
    found = None
    has_cue = _CUE.search(new) is not None
    for one in before:
        for other in now:
            how = _of_clauses(other, one, has_cue)
            if how is Relation.UPDATES or found is None:
                found = how or found
    if has_cue and found is not Relation.UPDATES:
        found = _told(new, old) or found
    if found is Relation.UPDATES and _would_be_lost(new, before):
        return Relation.MAY_UPDATE
    return found


def _clauses(text: str) -> list[list[_Word]]:
    found = ([_word(token) for token in _TOKEN.findall(part)] for part in _CLAUSE.split(text.strip()))
    return [[word for word in clause if word.folded] for clause in found if len(clause) > 1]


def _word(token: str) -> _Word:
    written = token.strip(_EDGES)
    folded = fold(written)
    return _Word(written, folded, stem(folded))


def _of_clauses(new: Sequence[_Word], old: Sequence[_Word], has_cue: bool) -> Relation | None:
    """By what both have in common from the beginning, and by what differs behind that."""
    new, old = _bare(new), _bare(old)
    same = _same(new, old)
    tail = _same(new[same:][::-1], old[same:][::-1])
    value, former = new[same : len(new) - tail], old[same : len(old) - tail]
    value = _until_cue(value)
    frame = old[:same]
    if not value or not former or max(len(value), len(former)) > _VALUE_WORDS_MAX:
        return None
    if not any(word.is_content and word.folded not in _VERB for word in frame):
        return _other_person(new, old, same, tail, has_cue)
    verb = next((word.folded for word in reversed(frame) if word.folded in _VERB or _is_participle(word)), None)
    if verb is None:
        # "Node 18 is required …": a number within the subject may be its version, or name another one
        is_number = all(map(_is_number, (*value, *former)))
        return Relation.MAY_UPDATE if is_number and len(value) == len(former) == 1 and tail > 1 else None
    if verb in _AUXILIARY and any(_is_participle(word) or word.folded in _VERB for word in (value[0], former[0])):
        return None
    if (value[0].folded in _PREPOSITION) != (former[0].folded in _PREPOSITION):
        return None
    shapes = _shape(value), _shape(former)
    if shapes[0] != shapes[1]:
        return Relation.UPDATES if has_cue else None
    if has_cue or shapes[0] in ("number", "time", "switch"):
        return Relation.UPDATES
    single = sum(word.is_content for word in value) == sum(word.is_content for word in former) == 1
    return Relation.UPDATES if shapes[0] == "name" and single and verb not in _SEVERAL else Relation.MAY_UPDATE


def _other_person(new: Sequence[_Word], old: Sequence[_Word], same: int, tail: int, has_cue: bool) -> Relation | None:
    """ "Ana leads the payments team", "Tomás leads the payments team now": the subject is the value."""
    shared = old[len(old) - tail :]
    subject, former = new[same : len(new) - tail], old[same : len(old) - tail]
    if same or not shared or shared[0].folded not in _PERSONS or sum(word.is_content for word in shared) < 2:
        return None
    named = all(word.written[:1].isupper() for word in (*subject, *former))
    if not named or not former:
        return None
    return Relation.UPDATES if has_cue else Relation.MAY_UPDATE


def _told(new: str, old: str) -> Relation | None:
    """What says itself what holds no more: that stands in the older statement, and so does what it is about."""
    known = {word.stem for clause in _clauses(old) for word in clause if word.is_content}
    said = [word for clause in _clauses(new) for word in clause if word.is_content]
    shared = known & {word.stem for word in said}
    if not known or not shared:
        return None
    gone: set[str] = set()
    for found in _FORMER.finditer(new):
        gone |= {one.stem for one in map(_word, _TOKEN.findall(found[1] or found[2] or "")) if one.is_content}
    former = gone & known
    subject = shared - former
    if former and subject and len(shared) >= 2 and len(shared) >= len(known) / 3:
        return Relation.UPDATES
    numbered = [next((word.folded for word in clauses[0][:3] if _is_number(word)), "") for clauses in map(_clauses, (new, old))]
    if numbered[0] != numbered[1]:
        return None  # "Build 4190 was …", "Build 4112 was …"
    if len(shared) >= 2 and len(shared) >= 0.6 * len(known):
        return Relation.UPDATES
    return Relation.MAY_UPDATE if len(shared) >= 2 and len(shared) >= len(known) / 2 else None


def _would_be_lost(new: str, before: Sequence[Sequence[_Word]]) -> bool:
    """Whether an older memory says more than what is replaced."""
    if len(before) == 1:
        return False
    said = {word.stem for clause in _clauses(new) for word in clause}
    lacking = [{word.stem for word in clause if word.is_content} - said for clause in before]
    return sum(len(one) for one in sorted(lacking, key=len)[1:]) > _MORE_MAX


def _bare(clause: Sequence[_Word]) -> list[_Word]:
    """Without what only says when: "now", "still"."""
    return [
        word for word in clause if word.folded not in ("now", "currently", "still", "again", "only", "just", "the", "a", "an")
    ]


def _same(first: Sequence[_Word], second: Sequence[_Word]) -> int:
    """How many words both begin with."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one.stem != other.stem:
            break
        count += 1
    return count


def _until_cue(value: list[_Word]) -> list[_Word]:
    """A value without what is said about the former one behind it."""
    for at, word in enumerate(value):
        if at and word.folded in ("since", "instead", "rather", "not", "no", "because", "until", "after"):
            return value[:at]
    return value


def _is_participle(word: _Word) -> bool:
    return len(word.folded) > 4 and (word.folded.endswith("ed") or word.folded in _IRREGULAR)


_IRREGULAR: Final = frozenset(
    """
    written kept built done made sent read held taken given drawn found paid shown rebuilt bought sold chosen
    driven run
    """.split()  # noqa: SIM905
)


def _is_number(word: _Word) -> bool:
    return any(map(str.isdigit, word.folded)) or word.folded in _NUMBERS


def _shape(value: Sequence[_Word]) -> str:
    """What kind of thing a value is."""
    telling = [word for word in value if word.is_content or _is_number(word) or word.folded in _SWITCHES]
    if not telling:
        return "word"
    if any(map(_is_number, telling)) and not any(_is_name(word) for word in telling if not _is_number(word)):
        return "number"
    if all(word.folded in _SWITCHES for word in telling):
        return "switch"
    if any(word.folded in _TIMES for word in telling):
        return "time"
    return "name" if any(map(_is_name, telling)) else "word"


def _is_name(word: _Word) -> bool:
    """Written as names and identifiers are, not as a word."""
    return (
        word.written[:1].isupper()
        or any(mark in word.written for mark in "._-/@#:")
        or word.written[1:] != word.written[1:].lower()
    )
