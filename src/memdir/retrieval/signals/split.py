"""Questions that ask for two things: taken apart where their language says so, and the answers put together fairly.

Only what is clearly two questions is split: a conjunction before a question word, a comparison, two sentences of which one asks
(not a passage that was pasted, whose search would take three times as long). What stands in quotes is never cut, and a part
that leans on the other (`and when did it start`) keeps the question whole. English, German, Spanish and French.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memdir.retrieval.signals import stems
from memdir.retrieval.types import Hit, SearchOutcome
from memdir.retrieval.words import prepare
from memdir.store.text.words import words

PARTS_MAX: Final = 3
QUERY_MAX_CHARS: Final = 400
"""A longer text is no question but something pasted."""

_QUOTED: Final = re.compile(
    '"[^"\n]*"|\u201c[^\u201d\n]*\u201d|\u201e[^\u201c\u201d\n]*[\u201c\u201d]|\u00ab[^\u00bb\n]*\u00bb|`[^`\n]*`'
)
_ASKS: Final = (
    "how|what|when|where|which|who|whom|whose|why|wie|was|wann|wo|woher|wohin|welche[rsmn]?|wer|wen|wem|wessen|warum|wieso|wieviel|"
    "cómo|como|qué|que|cuándo|cuando|dónde|donde|cuáles|cuál|quiénes|quién|quien|cuántos|cuánto|comment|quand|où|quel(?:le)?s?|qui|"
    "pourquoi|combien"
)
_ITSELF: Final = r"(?:it|they|this|that|these|es|das|dies|sie|se|eso|esto|cela|ça|il|elle)"
_RELATES: Final = re.compile(
    rf"[,;]?\s+(?:and|und|y|et)\s+(?:how|wie|cómo|como|comment)\s+{_ITSELF}\s+(?:is\s+|are\s+|mit\s+|zu\s+|est\s+)?"
    r"(?:relates?|related|connects?|connected|compares?|mit|zu|relaciona(?:n)?|compara(?:n)?|se\s+rapporte|liée?|compare)?\s*"
    r"(?:to|with|con|avec|à|au|aux|mit|zu)?\s+(?P<second>.+?)"
    r"(?:\s+(?:zusammenhängt|zusammenhängen|steht|stehen|passt|passen))?[?.!]*$",
    re.IGNORECASE,
)
_WHAT_IS: Final = r"(?:(?:what(?:'s| is| are)|was ist|was sind|cuál(?:es)? (?:es|son)|quelles? (?:est|sont))\s+)?"
_COMPARES: Final = re.compile(
    r"^(?:(?:please|bitte|por favor)\s+)?(?:compare|contrast|vergleich(?:e|en)?|compar(?:a|ar|e[rz]?)|"
    rf"{_WHAT_IS}(?:the |der |die |la |las |les )?"
    r"(?:differences?|unterschiede?|diferencias?|différences?)\s+(?:between|zwischen|entre))\s+(?P<both>.+?)[?.!]*$",
    re.IGNORECASE,
)
_WITH: Final = re.compile(r"\s+(?:with|to|against|versus|vs\.?|mit|con|avec|à)\s+", re.IGNORECASE)
_AND: Final = re.compile(r"\s+(?:and|und|y|e|et)\s+", re.IGNORECASE)
_ALSO: Final = re.compile(
    rf"[,;]?\s+(?:and|und|y|et)\s+(?=(?:(?:in|on|at|for|to|with|von|seit|bis|à|de|por|para)\s+)?(?:{_ASKS})\b)", re.IGNORECASE
)
_SENTENCE: Final = re.compile(r"(?<=[?!;])\s+|;\s*|(?<=\w{4}\.)\s+(?=\S)")
_QUESTION: Final = re.compile(rf"^\W*(?:{_ASKS})\b|\?\s*$", re.IGNORECASE)
_LEANS: Final = re.compile(
    r"\b(?:it|its|they|them|their|he|him|his|she|her|this|that|these|those|es|ihn|ihm|ihr|ihre|er|sie|dies(?:e[rsmn]?)?|dabei|dafür|"
    r"damit|ello|ella|ellos|ellas|él|lo|su|sus|eso|esto|il|elle|ils|elles|lui|leur|cela|ça|son|sa|ses)\b",
    re.IGNORECASE,
)
_MASK: Final = "\ue000"


def split(text: str) -> tuple[str, ...]:
    """The two or three questions of `text`, () when it is one."""
    plain = " ".join(text.split())
    if len(plain) > QUERY_MAX_CHARS:
        return ()
    masked = _QUOTED.sub(lambda quoted: _MASK * len(quoted[0]), plain)
    for found in (_related(plain, masked), _compared(plain, masked), _asked(plain, masked)):
        if found and _independent(found):
            return found
    return ()


def _related(plain: str, masked: str) -> tuple[str, ...]:
    match = _RELATES.search(masked)
    return () if match is None else (plain[: match.start()], plain[match.start("second") : match.end("second")])


def _compared(plain: str, masked: str) -> tuple[str, ...]:
    match = _COMPARES.match(masked)
    if match is None:
        return ()
    first, end = match.span("both")
    joints = list(_WITH.finditer(masked, first, end))[:1] or list(_AND.finditer(masked, first, end))[-1:]
    return tuple(part for joint in joints for part in (plain[first : joint.start()], plain[joint.end() : end]))


def _asked(plain: str, masked: str) -> tuple[str, ...]:
    """Sentences, and what `and` with a question word joins. One part has to be a question, the others need not."""
    cuts = [match.span() for pattern in (_SENTENCE, _ALSO) for match in pattern.finditer(masked)]
    parts, begin = [], 0
    for start, end in sorted(cuts):
        if start >= begin and plain[begin:start].strip():
            parts.append(plain[begin:start])
            begin = end
    parts.append(plain[begin:])
    parts = [part for part in parts if part.strip(" ?.!;,")]
    asks = any(map(_QUESTION.search, parts))
    if not asks or not 2 <= len(parts) <= PARTS_MAX or any(_LEANS.search(part) for part in parts[1:]):
        return ()
    return tuple(parts) if all(len(words(part)) >= 2 for part in parts) else ()


def _independent(parts: Sequence[str]) -> bool:
    """Each part asks for something, and none for the same as another."""
    asked = [frozenset(stems(" ".join(prepare(part).terms))) for part in parts]
    return all(asked) and len(set(asked)) == len(asked)


def joined(parts: Sequence[str], found: Sequence[SearchOutcome], whole: SearchOutcome, limit: int) -> SearchOutcome:
    """The best of each part and of the question as a whole by turns until `limit` passages are chosen, then by score: every
    side has its share of the answer, and no score says more than it does. Ties by path and place."""
    chosen: dict[int, Hit] = {}
    sides: list[list[Hit]] = [
        *([_told(hit, part) for hit in outcome.hits] for part, outcome in zip(parts, found, strict=True)),
        list(whole.hits),
    ]
    for rank in range(max((len(side) for side in sides), default=0)):
        for hit in (side[rank] for side in sides if rank < len(side)):
            known = chosen.get(hit.stored.id)
            if len(chosen) < limit if known is None else hit.score > known.score:
                chosen[hit.stored.id] = hit
    hits = sorted(chosen.values(), key=lambda hit: (-hit.score, hit.path or hit.document_id, hit.start_byte))
    stages: dict[str, float] = {}
    for outcome in (*found, whole):
        for stage, spent_ms in outcome.stages_ms.items():
            stages[stage] = round(stages.get(stage, 0.0) + spent_ms, 3)
    if any(not hit.weak for hit in hits):
        hits = [hit for hit in hits if not hit.weak]
    total = max(len(hits), whole.total, *(outcome.total for outcome in found))
    closest = max(whole.closest, *(outcome.closest for outcome in found))
    return SearchOutcome(hits=tuple(hits), total=total, stages_ms=stages, closest=closest)


def _told(hit: Hit, part: str) -> Hit:
    told = f'for "{part.strip(" ?.!;,")}"'
    return replace(hit, why=told if hit.why is None else f"{hit.why}, {told}")
