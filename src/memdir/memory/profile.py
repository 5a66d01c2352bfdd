"""Which facts are shown, in which order: the content of `profile.md` and of the profile call. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.memory.appointments import appointment_day
from memdir.memory.claims import USER
from memdir.memory.dates import DAY_MS, day_of, is_planned, ms_of
from memdir.memory.reconcile import fact_of, same_text
from memdir.store.types import Memory

BUDGET_TOKENS: Final = 2000
DYNAMIC_SHARE: Final = 0.4
"""At most this share of the budget goes to recent context when there are durable facts enough to fill the rest."""
HALF_LIFE_DAYS: Final = 14.0
"""Recent context counts half as much after this long."""
FORGOTTEN_BELOW: Final = 0.05
OF_ONE_FILE: Final = 20
"""Recent facts of one file that are shown: a long list of tasks takes no place from a diary, nor from whoever reads it."""
OF_OTHERS: Final = 0.1
"""What the user says of themselves comes before what they note of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Facts in order of importance; `left_out` did not fit the budget."""

    static: tuple[Memory, ...]
    dynamic: tuple[Memory, ...]
    left_out: int

    @property
    def static_texts(self) -> list[str]:
        return [memory.candidate.text for memory in self.static]

    @property
    def dynamic_texts(self) -> list[str]:
        return [memory.candidate.text for memory in self.dynamic]


def profile(memories: Sequence[Memory], *, now_ms: int, budget_tokens: int = BUDGET_TOKENS) -> Profile:
    """The facts that hold and fit, never two that say the same or contradict each other.

    Importance of a durable fact: its confidence, less OF_OTHERS where it is not about the user, then how recently it was
    stated. Of a recent one: confidence times
    2^(-age / half-life); below FORGOTTEN_BELOW it is left out and stays searchable. Of one file OF_ONE_FILE are shown.
    """
    unique = _without_doubles(memories, now_ms)
    static = sorted(
        (memory for memory in unique if memory.candidate.kind == "static"),
        key=lambda memory: (
            -_importance(memory),
            -memory.updated_at_ms,
            memory.document_id or "",
            memory.candidate.start_byte,
            memory.id,
        ),
    )
    weighed = [(freshness(memory, now_ms=now_ms), memory) for memory in unique if memory.candidate.kind == "dynamic"]
    dynamic = [
        memory
        for weight, memory in sorted(weighed, key=lambda item: (-item[0], -item[1].candidate.start_byte, item[1].id))
        if weight >= FORGOTTEN_BELOW
    ]
    recent = _few_of_each_file(dynamic)
    for_dynamic = min(sum(map(_tokens, recent)), int(budget_tokens * DYNAMIC_SHARE))
    shown_static, used = _fill(static, budget_tokens - for_dynamic)
    shown_dynamic, _ = _fill(recent, budget_tokens - used)
    return Profile(
        static=shown_static,
        dynamic=shown_dynamic,
        left_out=len(static) + len(dynamic) - len(shown_static) - len(shown_dynamic),
    )


def _few_of_each_file(memories: Sequence[Memory]) -> list[Memory]:
    """In the order given, of each file at most OF_ONE_FILE."""
    counts: Counter[str] = Counter()
    shown: list[Memory] = []
    for memory in memories:
        source = memory.document_id or memory.id
        counts[source] += 1
        if counts[source] <= OF_ONE_FILE:
            shown.append(memory)
    return shown


def _importance(memory: Memory) -> float:
    return memory.candidate.confidence - (0.0 if memory.candidate.subject == USER else OF_OTHERS)


def freshness(memory: Memory, *, now_ms: int) -> float:
    """Confidence, halved every HALF_LIFE_DAYS since the day that it is of, or for which it is announced: an old diary brings
    nothing recent."""
    said_ms = _of_ms(memory)
    comes = appointment_day(memory.candidate.text, day_of(said_ms))
    age_days = max(0.0, (now_ms - (said_ms if comes is None else ms_of(comes))) / DAY_MS)
    return float(memory.candidate.confidence * 2.0 ** (-age_days / HALF_LIFE_DAYS))


def _of_ms(memory: Memory) -> int:
    said = memory.candidate.said_ms
    return memory.updated_at_ms if said is None else said


def _without_doubles(memories: Sequence[Memory], now_ms: int) -> list[Memory]:
    """Of facts with the same text or the same single-valued attribute the most recently stated one stays, and of those that are
    still to come.

    Two values in one document are no contradiction: a list may have two lines "Contact: …".
    """
    kept: list[Memory] = []
    texts: set[str] = set()
    facts: dict[tuple[tuple[str, str], bool], str] = {}
    newest_first = sorted(
        memories,
        key=lambda memory: (-(_of_ms(memory) // DAY_MS), -memory.updated_at_ms, -memory.candidate.confidence, memory.id),
    )
    for memory in newest_first:
        if not memory.is_latest or memory.is_forgotten:
            continue
        text, told = same_text(memory.candidate.text), fact_of(memory.candidate)
        fact = None if told is None else (told, (memory.candidate.valid_from_ms or 0) > now_ms)
        source = memory.document_id or memory.id
        if text in texts or (fact is not None and facts.get(fact, source) != source):
            continue
        texts.add(text)
        if fact is not None:
            facts[fact] = source
        kept.append(memory)
    return kept


def replaced_by_due_plans(memories: Iterable[Memory], *, now_ms: int) -> frozenset[str]:
    """Ids of the facts that are over since the day of a plan has come: "I live in Porto" from March on, with "I'm moving to
    Braga in March"."""
    memories = list(memories)
    due: dict[tuple[str, str], int] = {}
    for one in memories:
        begins_ms = one.candidate.valid_from_ms
        if begins_ms is not None and _of_ms(one) < begins_ms <= now_ms and is_planned(one.candidate.text):
            fact = fact_of(one.candidate)
            if fact is not None:
                due[fact] = max(begins_ms, due.get(fact, begins_ms))
    return frozenset(
        one.id
        for one in (memories if due else ())
        if max(_of_ms(one), one.candidate.valid_from_ms or 0) < due.get(fact_of(one.candidate) or ("", ""), 0)
    )


def _tokens(memory: Memory) -> int:
    """About four characters a token, one for each character beyond ASCII, two for the list mark."""
    text = memory.candidate.text
    ascii_count = sum(char.isascii() for char in text)
    return 2 + (ascii_count + 3) // 4 + len(text) - ascii_count


def _fill(memories: Sequence[Memory], budget_tokens: int) -> tuple[tuple[Memory, ...], int]:
    shown: list[Memory] = []
    used = 0
    for memory in memories:
        cost = _tokens(memory)
        if used + cost <= budget_tokens:
            shown.append(memory)
            used += cost
    return tuple(shown), used
