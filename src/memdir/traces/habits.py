"""What is known of somebody's ways with files, in words: three sections in a fixed order, every line with its evidence."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

from memdir.traces.consolidate import DIMENSIONS, Memory, Trait, mode_name
from memdir.traces.engram import Episode

PREVIEW_CHARS: Final = 800
NAME_CHARS: Final = 40
SHOWN: Final = 5
JSON_SESSIONS_MAX: Final = 20
"""Names of sessions in one list, beside how many there are."""
_EVIDENCE_MAX: Final = 3


def markdown(memory: Memory, query: str = "") -> str:
    """Procedural patterns, semantic content, episodic consistency. `query` chooses the contents and episodes that are shown."""
    lines = ["## Procedural Patterns", "", *_procedural(memory)]
    lines += ["", "## Semantic Content", "", *_semantic(memory, query)]
    lines += ["", "## Episodic Consistency", "", *_episodic(memory, query)]
    return "\n".join(lines) + "\n"


STYLE_SESSIONS_MIN: Final = 3
STYLE_CONFIDENCE_MIN: Final = 0.5


def working_style(memory: Memory) -> list[str]:
    """What is sure enough to stand in a profile, a line each, with its sessions: what most of three or more sessions agree
    on."""
    return [
        f"{trait.attribute.name.replace('_', ' ').capitalize()}: {trait.says} ({len(trait.agreeing)} of {len(trait.sessions)} "
        f"sessions: {', '.join(trait.agreeing[-_EVIDENCE_MAX:])})"
        for trait in memory.traits
        if len(trait.sessions) >= STYLE_SESSIONS_MIN and trait.confidence >= STYLE_CONFIDENCE_MIN
    ]


def as_json(memory: Memory, query: str = "") -> dict[str, Any]:
    """The same for programs."""
    return {
        "sessions": len(memory.engrams),
        "dimensions": {letter: _tier_json(memory, name) for letter, (_, name) in DIMENSIONS.items()},
        "traits": {trait.attribute.name: _trait_json(trait) for trait in memory.traits},
        "statistics": {
            name: {"mean": one.mean, "median": one.median, "std": one.std, "min": one.min, "max": one.max}
            for name, one in memory.statistics.items()
        },
        "languages": dict(_summed(memory, "languages").most_common()),
        "file_types": dict(_summed(memory, "file_types").most_common()),
        "naming": dict(_summed(memory, "naming").most_common()),
        "chunks": [
            {"path": path, "text": text[:PREVIEW_CHARS], "session": session} for path, text, session in best(memory, query)
        ],
        "modes": [{"name": mode_name(memory, mode), **_sessions(mode)} for mode in memory.modes],
        "anomalies": _sessions(memory.anomalies),
        "anomalies_robust": _sessions(memory.robust),
        "anomaly_rule_can_fire": len(memory.engrams) > _RULE_MIN,
        "shifts": [
            {
                "session": one.session, "dimension": one.dimension, "usual": one.usual, "then": one.then,
                "distance": round(one.distance, 3), "features": list(one.features),
            }
            for one in memory.shifts[-JSON_SESSIONS_MAX:]
        ],
        "episodes": [
            {"session": session, "title": one.title, "summary": one.summary, "events": one.last - one.first}
            for session, one in shown_episodes(memory, query)
        ],
        "verdicts": {
            session: {"is_change": one.is_change, "reason": one.reason} for session, one in memory.verdicts.items()
        },
    }  # fmt: skip


_RULE_MIN: Final = 4


def _tier_json(memory: Memory, name: str) -> dict[str, Any] | None:
    trait = next((one for one in memory.traits if one.attribute.name == name), None)
    return None if trait is None else _trait_json(trait)


def _trait_json(trait: Trait) -> dict[str, Any]:
    return {
        "tier": trait.tier, "says": trait.says, "number": trait.attribute.number, "value": round(trait.value, 4),
        "confidence": round(trait.confidence, 3), "agreeing": _sessions(trait.agreeing), "sessions": len(trait.sessions),
    }  # fmt: skip


def _sessions(sessions: Sequence[str]) -> dict[str, Any]:
    """How many they are, and the latest."""
    return {"count": len(sessions), "latest": list(sessions[-JSON_SESSIONS_MAX:])}


def _procedural(memory: Memory) -> list[str]:
    if not memory.engrams:
        return ["Nothing was recorded yet."]
    by_name = {trait.attribute.name: trait for trait in memory.traits}
    lines = []
    for letter, (title, name) in DIMENSIONS.items():
        trait = by_name.get(name)
        if trait is None:
            lines.append(f"- **{letter} {title}**: nothing tells")
            continue
        lines.append(f"- **{letter} {title}**: {trait.says} ({trait.tier}) — {_evidence(trait)}")
        others = [one for one in memory.traits if letter in one.attribute.dimensions and one.attribute.name != name]
        lines += [f"  - {one.attribute.name.replace('_', ' ')}: {one.says} ({one.tier}) — {_evidence(one)}" for one in others]
    return lines


def _evidence(trait: Trait) -> str:
    shown = _latest(trait.agreeing)
    value = f"{trait.value:,.0f}" if abs(trait.value) >= 100 else f"{trait.value:.2g}"
    return (
        f"median {trait.attribute.number} {value}, "
        f"{len(trait.agreeing)} of {len(trait.sessions)} sessions agree"
        f"{f' ({shown})' if shown else ''}, confidence {trait.confidence:.2f}"
    )


def _latest(sessions: Sequence[str]) -> str:
    return ", ".join(sessions[-_EVIDENCE_MAX:]) + (" …" if len(sessions) > _EVIDENCE_MAX else "")


def _semantic(memory: Memory, query: str) -> list[str]:
    lines = []
    for title, name in (("Languages", "languages"), ("File types", "file_types"), ("Names", "naming")):
        found = _summed(memory, name)
        if found:
            parts = ", ".join(f"{key or 'none'} {count}" for key, count in found.most_common(SHOWN))
            lines.append(f"- {title}: {parts} — of {sum(found.values())} files")
    for one in [one for one in memory.engrams if one.descriptor][-SHOWN:]:
        names = ", ".join(cut(name) for name in one.names[:3])
        lines.append(f"- Wrote {one.descriptor} — {one.session}: {names}")
    for path, text, session in best(memory, query):
        preview = " ".join(text.split())[:PREVIEW_CHARS]
        lines.append(f"- `{cut(path.rpartition('/')[2])}` — {session}: {preview}")
    return lines or ["Nothing was written."]


def _episodic(memory: Memory, query: str) -> list[str]:
    if not memory.engrams:
        return ["Nothing was recorded yet."]
    count = len(memory.engrams)
    lines = [
        f"- Mode: mostly {mode_name(memory, mode)}, {len(mode)} of {count} sessions ({_latest(mode)})" for mode in memory.modes
    ]
    if count <= _RULE_MIN:
        lines.append(f"- Too few sessions ({count}) for the rule of anomalies: with four or fewer it cannot fire")
    odd = [one.session for one in memory.otherwise]
    if len(odd) > SHOWN:
        rules = f"by distance {len(memory.anomalies)}, by medians {len(memory.robust)}"
        lines.append(f"- Otherwise were {len(odd)} of {count} sessions ({rules}); the latest {SHOWN}:")
    shifts = {shift.session: shift for shift in memory.shifts}
    for session in odd[-SHOWN:]:
        rule = "both rules" if session in memory.anomalies and session in memory.robust else (
            "distance" if session in memory.anomalies else "medians"
        )  # fmt: skip
        shift = shifts.get(session)
        if shift is None:
            far = "far from the usual in its numbers, in no one dimension"
            lines.append(f"- Otherwise: {far} — {session}, by {rule}{_verdict(memory, session)}")
            continue
        title, name = DIMENSIONS[shift.dimension]
        trait = next(one for one in memory.traits if one.attribute.name == name)
        usual, then = (trait.attribute.tiers["LMR".index(tier)] for tier in (shift.usual, shift.then))
        signs = f": {', '.join(shift.features)}" if shift.features else ""
        said = _verdict(memory, session)
        lines.append(f"- Otherwise: {title.casefold()} {usual} → {then} — {session}, by {rule}{signs}{said}")
    lines += [f"- {one.title} — {session}: {one.summary}" for session, one in shown_episodes(memory, query)]
    return lines


def _verdict(memory: Memory, session: str) -> str:
    found = memory.verdicts.get(session)
    if found is None:
        return ""
    return f"; a model says: {'a change of habit' if found.is_change else 'its task explains it'}: {found.reason}"


def shown_episodes(memory: Memory, query: str) -> list[tuple[str, Episode]]:
    """Those that share most words with the question, else the latest."""
    every = [(one.session, episode) for one in reversed(memory.engrams) for episode in one.episodes]
    words = _words(query)
    every.sort(key=lambda item: -len(words & _words(f"{item[1].title} {item[1].summary}")))
    return every[:SHOWN]


def best(memory: Memory, query: str) -> list[tuple[str, str, str]]:
    """Path, text and session of contents that share most words with the question; those of usual sessions first, the latest
    first."""
    odd = {one.session for one in memory.otherwise}
    every = [(path, text, one.session) for one in reversed(memory.engrams) for path, text in one.chunks]
    words = _words(query)
    every.sort(key=lambda item: (-len(words & _words(f"{item[0]} {item[1]}")), item[2] in odd))
    return every[:SHOWN]


def _words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"\w{3,}", text)}


def _summed(memory: Memory, name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in memory.engrams:
        counts: Mapping[str, int] = getattr(one, name)
        found.update(counts)
    return found


def cut(text: str, most_chars: int = NAME_CHARS) -> str:
    """A text of at most so many characters, with a sign where it goes on."""
    return text if len(text) <= most_chars else text[: most_chars - 1] + "…"


# drift

_BARS: Final = "▁▂▃▄▅▆▇█"
BARS_MAX: Final = 40


def drift(memory: Memory, number: str) -> tuple[list[str], list[float]]:
    """Days of the sessions and their values of a number, in order."""
    days = [datetime.fromtimestamp(one.begins_ms / 1000, UTC).strftime("%Y-%m-%d") for one in memory.engrams]
    values = [{**one.features, **one.extended}[number] for one in memory.engrams]
    return days, values


def bars(values: Sequence[float]) -> str:
    """A line of bars, from the least to the most; of more than BARS_MAX values the means of as many at a time."""
    if len(values) > BARS_MAX:
        edges = [len(values) * at // BARS_MAX for at in range(BARS_MAX + 1)]
        values = [statistics.fmean(values[first:last]) for first, last in pairwise(edges)]
    low, high = min(values, default=0.0), max(values, default=0.0)
    return "".join(_BARS[round((one - low) / (high - low) * 7) if high > low else 0] for one in values)
