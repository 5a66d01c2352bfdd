"""What becomes of new candidates, given what is known. Pure: no clock, no I/O, no randomness.

`own` is what the document said before (superseded facts included, as long as it still stood in the document); `others` is what
holds now and comes from elsewhere. The same sentence is the same fact; the same subject and attribute with another value is
an update; what the document no longer says is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memdir.memory.aspects import HOW, aspect_of, has_several, key_and_value, topic_of
from memdir.memory.claims import USER, Claim, claim_of, employer_of, speaker_and_words
from memdir.memory.dates import DAY_MS, MONTH, WEEKDAY, is_planned
from memdir.memory.endings import endings_of, is_ended, stems_of, word_topics
from memdir.memory.formers import formers_of, short_names
from memdir.memory.own_name import are_of_one_name
from memdir.memory.relations import in_full, parent_in, parents_in
from memdir.memory.tasks import is_order
from memdir.memory.tools import is_of_kind
from memdir.store.types import Memory, MemoryCandidate

Action = Literal["add", "supersede", "precede", "remove", "strengthen"]
"""`precede`: it was so before what is known, which stays."""
WORD_TOPICS: Final = frozenset({"~", "≠~"})
"""First parts of topics that are words of facts, and of what is over."""
SIMILAR: Final = 0.6
"""Share of words (Jaccard) from which an edited line is a new version of what stood there and not another fact."""

_ITEMS_MAX: Final = 12
_WHAT: Final = r"(?P<what>[\w' -]{2,60}?)"
_DEFINITES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        (
            rf"(?:the|its) {_WHAT} (?:is|are|will be) (?:now )?"
            r"(?P<value>(?!(?:\w+ed|\w+ing|out|away|done|late|ready|ok|fine|great)\W*$)\S.*)"
        ),
        rf"(?:our|my) {_WHAT} (?:is|are|will be) (?:now )?(?P<value>(?:(?:on|at|in|due|called)\b|\d).*)",
        (
            rf"(?:(?:the|its|our|my) )?{_WHAT} (?:is |was |has )?(?:been )?(?:now )?(?:(?P<moved>moved|pushed)|changed|raised|"
            r"renamed) to (?P<value>\S.*)"
        ),
        rf"(?:(?:the|its|our|my) )?{_WHAT} (?:(?P<moved>moves to)|starts at|costs) (?P<value>\S.*)",
    )
)
"""What has one value at a time: "the standup is at 10", "our office is on Lindholmen", "the deadline was pushed to Friday"."""
_OPENING: Final = re.compile(
    r"(?:(?:(?:It )?[Tt]urns out|(?:It )?[Tt]urned out|[Aa]pparently|(?:I )?[Hh]eard|(?:Just )?(?:learned|found out)|"
    r"(?:[Gg]ood|[Bb]ad|[Bb]ig) news|[Uu]pdate|[Nn]ews|FYI|[Ss]o|[Oo]k|[Oo]kay|[Ww]ell)[,:]? )+"
    r"(?:that )?(?P<who>(?!(?:I|We|My|Our|The|It|They|He|She|This|That|There)\b)[A-ZÀ-Þ]\w+)\b"
)
"""What comes before the one whom a sentence is about, who is named."""
_TIME: Final = re.compile(rf"\b(?:\d|{WEEKDAY}|{MONTH}|tomorrow|week|month|noon)", re.IGNORECASE)
"""Of a value that is a time: when the standup is does not replace where it is."""
_TIMES_AND_AMOUNTS: Final = frozenset({"when", "how many"})
_TIME_OR_AMOUNT: Final = "at"
"""The aspect of both of a definite thing: what "moved to 11" may be either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One decision; `store.protocols.MemoryChange`."""

    action: Action
    candidate: MemoryCandidate | None = None
    memory_id: str | None = None
    relation: str | None = None
    """Of the later one of the two to the earlier one."""
    also_ended: tuple[str, ...] = ()
    """Further facts that hold no more by the candidate."""


def reconcile(candidates: Sequence[MemoryCandidate], *, own: Sequence[Memory], others: Sequence[Memory]) -> tuple[Change, ...]:
    """Changes that make the store say what the document says now; applying them twice changes nothing the second time."""
    changes: list[Change] = []
    own_by_text = {same_text(memory.candidate.text): memory for memory in own}
    other_by_text = {same_text(memory.candidate.text): memory for memory in others}
    other_by_topic = _by_topic(others)
    still: set[str] = set()
    fresh: list[MemoryCandidate] = []
    for candidate in candidates:
        known = own_by_text.get(same_text(candidate.text)) or other_by_text.get(same_text(candidate.text))
        if known is None:
            fresh.append(candidate)
        else:
            still.add(known.id)
            changes.append(Change(action="strengthen", candidate=candidate, memory_id=known.id))
    gone = [memory for memory in own if memory.id not in still]
    gone_by_topic = _by_topic(gone)
    replaced: set[str] = set()
    ended: set[str] = set()
    for candidate in fresh:
        later = _replacing(candidate, other_by_topic)
        if later is not None and candidate.is_passing:
            continue
        used = replaced | ended
        before = [
            one for one in _replaced_by(candidate, other_by_topic, used) if one is not later and not _is_before(candidate, one)
        ]
        if later is not None:
            also = tuple(one.id for one in before)
            replaced.update(also)
            changes.append(
                Change(action="precede", candidate=candidate, memory_id=later.id, relation="updates", also_ended=also)
            )
            continue
        here = _replaced_by(candidate, gone_by_topic, used)
        here = here or _edited(candidate, gone, used) or _ending_alike(candidate, gone, used)
        if here or before:
            earlier, *rest = (*here, *before)
            relation = "contradicts" if not here and earlier.candidate.kind == candidate.kind else "updates"
            also = tuple(one.id for one in rest if one.is_latest)
            replaced |= {earlier.id, *(one.id for one in before)}
            ended.update(also)
            changes.append(
                Change(action="supersede", candidate=candidate, memory_id=earlier.id, relation=relation, also_ended=also)
            )
        elif not candidate.is_passing:
            changes.append(Change(action="add", candidate=candidate))
    changes.extend(Change(action="remove", memory_id=memory.id) for memory in gone if memory.id not in replaced)
    return tuple(changes)


def same_text(text: str) -> str:
    """Two facts with the same of this are one: case, punctuation at the end and white space do not count."""
    return " ".join(text.casefold().split()).rstrip(".!;, ")


def fact_of(candidate: MemoryCandidate) -> tuple[str, str] | None:
    """Subject and attribute when the statement gives the one value of something; None when several may hold at once."""
    claim = claim_of(candidate.text)
    if claim is not None and claim.is_single:
        return claim.topic
    pair = key_and_value(candidate.text)
    if pair is not None and candidate.kind == "static":
        return None if has_several(pair[0]) else (candidate.subject.casefold(), pair[0])
    if claim is not None:
        return None
    definite = next((one for pattern in _DEFINITES if (one := pattern.match(candidate.text)) is not None), None)
    if definite is None:
        return None
    what = " ".join(definite["what"].casefold().split())
    aspect = aspect_of(definite["value"], what)
    if aspect in _TIMES_AND_AMOUNTS or (aspect == "" and _TIME.search(definite["value"])):
        aspect = _TIME_OR_AMOUNT
    elif definite.groupdict().get("moved"):
        aspect = "where"
    return topic_of(candidate.subject.casefold(), what, aspect)


def _items_of(candidate: MemoryCandidate) -> list[tuple[str, str]]:
    """Topics of what a line with a list lists ("Languages: Portuguese, English"): a later line with one of them replaces it."""
    pair = key_and_value(candidate.text)
    if pair is None or candidate.kind != "static" or not has_several(pair[0]):
        return []
    items = re.split(r"[,;/]| (?:and|und|y|et) ", pair[1].casefold())
    return [(candidate.subject.casefold(), f"{pair[0]}={plain}") for item in items[:_ITEMS_MAX] if (plain := item.strip(" ."))]


def _topic_of(candidate: MemoryCandidate) -> tuple[str, str] | None:
    """`fact_of`, of a claim under the first name of its subject."""
    fact = fact_of(candidate)
    return fact if fact is None or claim_of(candidate.text) is None else (_first_name(fact[0]), fact[1])


def topics_of(candidate: MemoryCandidate) -> frozenset[tuple[str, str]]:
    """By what a fact is found that a later one may replace: its subject and attribute; its subject and value (after `=`); its
    words (after `~`)."""
    fact = _topic_of(candidate)
    claim = claim_of(candidate.text)
    found = {fact} if fact is not None else set()
    if claim is not None:
        first = _first_name(claim.subject)
        employer = employer_of(claim)
        values = (claim.value, *(() if employer is None else (employer.value,)))
        found |= {(first, f"={name}") for value in values for name in short_names(value)}
        found |= {(first, claim.attribute)} if not claim.aspect.startswith(HOW) else set()
        found |= _beside(claim)
    elif fact is not None:
        found.add(_of_key(fact))
    found |= set(_items_of(candidate))
    found |= {("~", topic) for topic in word_topics(candidate.text)}
    found |= {("≠~", word) for ending in endings_of(candidate.text) for word in ending.topics}
    return frozenset(found) | {(_subject_of(candidate), f"≠{former}") for former in formers_of(candidate.text)}


def related_topics_of(candidate: MemoryCandidate) -> list[tuple[str, str]]:
    """Topics of the facts that a statement replaces, or that replace it where they are of a later day."""
    return replaced_topics_of(candidate) + _ending_topics_of(candidate)


def replaced_topics_of(candidate: MemoryCandidate) -> list[tuple[str, str]]:
    """Topics of the facts that a statement replaces: of its own attribute, where that has one value, and of the values
    which it says are gone, then whatever tells of what it says is over."""
    subject = _subject_of(candidate)
    return [
        *_fact_topics_of(candidate),
        *_items_of(candidate),
        *((subject, f"={former}") for former in sorted(formers_of(candidate.text))),
        *(("~", word) for ending in endings_of(candidate.text) for word in sorted(ending.topics)),
    ]


def _fact_topics_of(candidate: MemoryCandidate) -> list[tuple[str, str]]:
    """Topics of the facts that give the value which a statement gives, too: "Laptop: ThinkPad X1" may be of any aspect but how
    it is."""
    fact, claim = _topic_of(candidate), claim_of(candidate.text)
    if fact is None:
        return []
    if claim is None:
        return [fact]
    keys = [] if claim.aspect.startswith(HOW) else [_of_key((fact[0], claim.attribute))]
    return [fact, *keys, *_beside(claim)]


def _beside(claim: Claim) -> set[tuple[str, str]]:
    """Topics of what else a claim gives a value of: "Our standup is at 10" is what "The standup is at 11" contradicts, "Job:
    baker at Nexia" what "I work at Tessera" does."""
    is_either = claim.is_single and claim.aspect in _TIMES_AND_AMOUNTS
    topics = {topic_of(claim.subject, claim.attribute, _TIME_OR_AMOUNT)} if is_either else set()
    employer = employer_of(claim)
    return topics if employer is None else topics | {(_first_name(employer.subject), employer.topic[1])}


def _of_key(key: tuple[str, str]) -> tuple[str, str]:
    """Under which lines `key: value` are found by claims."""
    return key[0], f"{key[1]}:"


def _ending_topics_of(candidate: MemoryCandidate) -> list[tuple[str, str]]:
    """Topics of the facts that say that what a statement claims, or tells of, is over."""
    claim = claim_of(candidate.text)
    names = [] if claim is None else [(_first_name(claim.subject), f"≠{name}") for name in sorted(short_names(claim.value))]
    return names + [("≠~", topic) for topic in sorted(word_topics(candidate.text))]


def may_replace(candidate: MemoryCandidate, fact: MemoryCandidate) -> bool:
    """Whether another value may take the place of a fact already: a plan changes nothing but a plan, and a plan is over when it
    has come true; what the user is called in short holds beside the name."""
    if are_of_one_name(candidate, fact):
        return False
    planned = is_planned(candidate.text)
    if planned == is_planned(fact.text):
        return True
    claim, plan = claim_of(candidate.text), claim_of(fact.text)
    return (
        not planned
        and claim is not None
        and plan is not None
        and not short_names(claim.value).isdisjoint(short_names(plan.value))
    )


def ends(candidate: MemoryCandidate, fact: MemoryCandidate) -> bool:
    """Whether a statement says that what a fact tells of is over: of the same person, or of the one who is gone
    themselves ("Kuma died")."""
    if is_planned(candidate.text) and not is_planned(fact.text):
        return False
    return any(
        is_ended(fact.text, ending)
        and (
            (ending.kind in {"role", "state"} and _are_said_by_one(candidate, fact))
            or _is_of_same(candidate, fact)
            or (ending.switch is not None and _are_of_kind(candidate, fact, ending.switch.kind))
            or ending.stems in (stems_of(candidate.subject), stems_of(_subject_of(fact)))
        )
        for ending in endings_of(candidate.text)
        if not (ending.kind == "the same" and (candidate.is_passing or _are_of_other_sides(candidate, fact)))
        and not (ending.kind == "name" and _may_be_another(candidate))
        and not (ending.kind == "done" and fact.kind == "static" and is_order(fact.text))
        and not (ending.kind in {"place", "time", "made", "seat"} and _moves_house(candidate))
    )


def _are_of_other_sides(one: MemoryCandidate, other: MemoryCandidate) -> bool:
    """ "My desk is black now" says nothing of where it is."""
    claims = [claim for candidate in (one, other) if (claim := claim_of(candidate.text)) is not None and claim.is_single]
    known = [claim for claim in claims if claim.aspect or " " in claim.value]
    sides = {HOW if claim.aspect.startswith(HOW) else claim.aspect for claim in known}
    return len(sides) > 1 and claims[0].attribute == claims[1].attribute and not sides.isdisjoint({HOW, "where"})


def _are_said_by_one(one: MemoryCandidate, other: MemoryCandidate) -> bool:
    """By the user, or by the same other speaker of a conversation."""
    return speaker_and_words(one.text)[0] == speaker_and_words(other.text)[0]


def _may_be_another(candidate: MemoryCandidate) -> bool:
    """ "My son is called Emil": there may be another."""
    claim = claim_of(candidate.text)
    return claim is not None and not claim.is_single


def _moves_house(candidate: MemoryCandidate) -> bool:
    """Who moves is as they were, but for where they live."""
    claim = claim_of(candidate.text)
    return claim is not None and claim.attribute == "lives in"


def _are_of_kind(one: MemoryCandidate, other: MemoryCandidate, kind: str) -> bool:
    """Whether two statements are about the user, or about no more than what a tool is for."""
    return all(_is_users(candidate) or is_of_kind(_subject_of(candidate), kind) for candidate in (one, other))


def _is_of_same(one: MemoryCandidate, other: MemoryCandidate) -> bool:
    files = {candidate.subject.casefold() for candidate in (one, other) if _is_of_file(candidate)}
    if len(files) > 1:
        return False
    opened = _OPENING.match(one.text)
    ours = {opened["who"].casefold()} if opened is not None else _whose(one)
    return not (ours | parents_in(one.text)).isdisjoint(_whose(other))


def _whose(candidate: MemoryCandidate) -> set[str]:
    """The user's, where no other subject is named in it but for that of its file, or that one's."""
    of_file = {candidate.subject.casefold()} if _is_of_file(candidate) else set()
    return of_file | {USER if _is_users(candidate) else _subject_of(candidate)}


def _is_users(candidate: MemoryCandidate) -> bool:
    """Whether no other subject is named in it, but for that of its file."""
    subject, text = _subject_of(candidate), candidate.text.casefold()
    return subject == USER or not (text.startswith(subject) or parent_in(text) == subject) or _is_of_file(candidate)


def _is_of_file(candidate: MemoryCandidate) -> bool:
    """Whether the name of its file, or of its part, stands before it: "Otto – Sold the car"."""
    return candidate.text.casefold().startswith(f"{candidate.subject.casefold()} –")


def _subject_of(candidate: MemoryCandidate) -> str:
    claim = claim_of(candidate.text)
    if claim is not None:
        return _first_name(claim.subject)
    subject = in_full(candidate.subject.casefold())
    return (parent_in(candidate.text) if subject == USER else None) or subject


def _first_name(subject: str) -> str:
    """ "Ana" may be "Ana Ruiz": facts of both are looked at together, and told apart by `_of_same_subject`."""
    return subject.partition(" ")[0]


def _of_same_subject(candidate: MemoryCandidate, memories: Sequence[Memory]) -> Sequence[Memory]:
    """Those of them that are about the same one: a first name is the one known longer name that begins with it."""
    claim = claim_of(candidate.text)
    if claim is None:
        return memories
    known = [(one, claim_of(one.candidate.text)) for one in memories]
    same = [(one, other) for one, other in known if other is None or _may_be_same(claim.subject, other.subject)]
    longer = {other.subject for _, other in same if other is not None and other.subject != claim.subject}
    return [one for one, other in same if len(longer) < 2 or other is None or other.subject == claim.subject]


def _may_be_same(name: str, other: str) -> bool:
    return name == other or _first_name(name) == other or name == _first_name(other)


def _is_before(candidate: MemoryCandidate, memory: Memory) -> bool:
    """Whether a statement is of an earlier day than a fact, or of an earlier time of one day. What has no date is of now; where
    midnight says that no time is known, the one that comes later counts."""
    ours, theirs = candidate.said_ms, memory.candidate.said_ms
    if ours is None or theirs is None:
        return False
    if ours // DAY_MS == theirs // DAY_MS and 0 in (ours % DAY_MS, theirs % DAY_MS):
        return False
    return ours < theirs


def _replacing(candidate: MemoryCandidate, table: Mapping[tuple[str, str], Sequence[Memory]]) -> Memory | None:
    """The fact of a later day that holds instead: it gives another value, or says that this one is gone."""
    topics = _fact_topics_of(candidate) + _items_of(candidate) + _ending_topics_of(candidate)
    known = [
        one
        for topic in topics
        for one in _under_topic(candidate, topic, table)
        if (ends if topic[0] == "≠~" else may_replace)(one.candidate, candidate)
    ]
    later = [one for one in known if one.is_latest and _is_before(candidate, one)]
    return min(later, key=lambda one: (one.candidate.said_ms or 0, one.id), default=None)


def _by_topic(memories: Iterable[Memory]) -> dict[tuple[str, str], list[Memory]]:
    table: dict[tuple[str, str], list[Memory]] = {}
    for memory in memories:
        for topic in topics_of(memory.candidate):
            table.setdefault(topic, []).append(memory)
    return table


def _replaced_by(candidate: MemoryCandidate, table: Mapping[tuple[str, str], Sequence[Memory]], used: set[str]) -> list[Memory]:
    """The facts that hold no more; of those that tell of what is over, the ones that say least else go first."""
    by_value: dict[str, Memory] = {}
    over: dict[str, Memory] = {}
    for topic in replaced_topics_of(candidate):
        known = [memory for memory in _under_topic(candidate, topic, table) if memory.id not in used]
        if topic[0] == "~":
            over |= {memory.id: memory for memory in known if ends(candidate, memory.candidate)}
        else:
            by_value |= {memory.id: memory for memory in known if may_replace(candidate, memory.candidate)}
    told = sorted(over.values(), key=lambda memory: (len(stems_of(memory.candidate.text)), memory.id))
    return [*by_value.values(), *(memory for memory in told if memory.id not in by_value)]


def _under_topic(
    candidate: MemoryCandidate, topic: tuple[str, str], table: Mapping[tuple[str, str], Sequence[Memory]]
) -> Sequence[Memory]:
    """What is known under a topic, of the candidate's subject where the topic does not name words only."""
    found = table.get(topic, ())
    return found if topic[0] in WORD_TOPICS else _of_same_subject(candidate, found)


def _edited(candidate: MemoryCandidate, gone: Sequence[Memory], used: set[str]) -> list[Memory]:
    """The vanished fact that this line most resembles, if enough, and if the line lasts."""
    if candidate.is_passing:
        return []
    words = _words(candidate.text)
    best: Memory | None = None
    best_share = SIMILAR
    for memory in gone:
        if memory.id in used or memory.candidate.kind != candidate.kind:
            continue
        other = _words(memory.candidate.text)
        share = len(words & other) / max(1, len(words | other))
        if share >= best_share and (best is None or share > best_share):
            best, best_share = memory, share
    return [] if best is None else [best]


def _ending_alike(candidate: MemoryCandidate, gone: Sequence[Memory], used: set[str]) -> list[Memory]:
    """The vanished fact that told of the end of the same thing: what that one ended stays over."""
    over = _over(candidate)
    same = (memory for memory in gone if memory.id not in used and not over.isdisjoint(_over(memory.candidate)))
    return [memory for memory in same if _is_of_same(candidate, memory.candidate)][:1] if over else []


def _over(candidate: MemoryCandidate) -> set[str]:
    return {word for ending in endings_of(candidate.text) if ending.kind != "the same" for word in ending.topics}


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))
