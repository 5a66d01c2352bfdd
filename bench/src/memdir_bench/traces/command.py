"""`memdir bench traces`: what is told of made-up users by the events of their real file operations."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from memdir.traces.consolidate import DIMENSIONS, Memory, consolidate
from memdir.traces.engram import Engram, engrams
from memdir_bench.figures import Figure, machine
from memdir_bench.report import reported
from memdir_bench.traces.goals import figure
from memdir_bench.traces.recording import traced_mount
from memdir_bench.traces.users import TIERS, Planned, Session, User, planned, users

USERS: Final = 10
_SEED: Final = 25
_RESAMPLES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A session as it was planned and as it was seen."""

    plan: Planned
    engram: Engram


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when a part could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """All users do all tasks; then tiers, who it was, what was otherwise, and what it costs."""
    people = users(_SEED, 3 if args.quick else USERS)
    sessions, count = _recorded(people)
    memories = {one.name: consolidate([each.engram for each in sessions if each.plan.user is one]) for one in people}
    figures = [*_tiers(people, memories), *_identity(people, sessions), *_otherwise(sessions, memories)]
    size = statistics.fmean(len(json.dumps(_plain(one.engram)).encode()) for one in sessions)
    figures += [
        figure("sessions", len(sessions), "sessions", samples=len(people), note=f"{count} events"),
        figure("engram_size", size, "bytes", samples=len(sessions), note="as JSON, with its chunks"),
    ]
    return {"machine": machine(), "figures": [one.as_json() for one in figures], "failed": {}}


def _recorded(people: Sequence[User]) -> tuple[list[Recorded], int]:
    plans = {f"{one.user.name} {one.task}": one for user in people for one in planned(user, _SEED)}
    with traced_mount() as (place, recorder):
        for name, plan in plans.items():
            folder = place / plan.task
            session = Session(plan, folder, _SEED, recorder.tick, recorder.searched)
            session.prepare()
            recorder.settle()
            recorder.session = name
            session.run()
            recorder.settle()
            recorder.session = ""
            recorder.tick(24 * 3600 * 1000)
            shutil.rmtree(folder)
        events = recorder.events()
    by_root = {event.session: event.root for event in events}
    return [Recorded(plan=plans[by_root[one.session]], engram=one) for one in engrams(events)], len(events)


def _plain(one: Engram) -> dict[str, Any]:
    return {"features": dict(one.features), "extended": dict(one.extended), "chunks": one.chunks, "counts": dict(one.counts)}


def _interval(people: Sequence[User], of: Callable[[Sequence[User]], float]) -> tuple[float, float]:
    """95 %, by resampling users."""
    chance = random.Random(_SEED)  # noqa: S311
    found = sorted(of([chance.choice(people) for _ in people]) for _ in range(_RESAMPLES))
    return found[int(0.025 * _RESAMPLES)], found[int(0.975 * _RESAMPLES) - 1]


def _tiers(people: Sequence[User], memories: dict[str, Memory]) -> Iterator[Figure]:
    """How often the tier of a dimension is recovered; beside it who always says the tier that most users have."""
    right: dict[str, dict[str, bool]] = {}
    for dimension, (_, name) in DIMENSIONS.items():
        told = {
            one.name: next((trait.tier for trait in memories[one.name].traits if trait.attribute.name == name), None)
            for one in people
        }
        right[dimension] = {one.name: told[one.name] == one.tiers[dimension] for one in people}
        share = statistics.fmean(right[dimension].values())
        spread = _interval(people, lambda some, own=right[dimension]: statistics.fmean(own[one.name] for one in some))  # type: ignore[misc]
        yield figure(f"tier_{dimension}", share, "share", samples=len(people), spread=spread, better="higher")
    overall = statistics.fmean(value for own in right.values() for value in own.values())
    spread = _interval(people, lambda some: statistics.fmean(own[one.name] for own in right.values() for one in some))
    yield figure("tiers", overall, "share", samples=6 * len(people), spread=spread, better="higher")
    constant = statistics.fmean(
        max(Counter(one.tiers[dimension] for one in people).values()) / len(people) for dimension in DIMENSIONS
    )
    yield figure("tiers_constant", constant, "share", samples=len(people), note=f"chance is {1 / len(TIERS):.2f}")


def _identity(people: Sequence[User], sessions: Sequence[Recorded]) -> Iterator[Figure]:
    """Who did a session, by the nearest middle of all others of each user; each number against what the task makes usual."""
    rows = np.array([one.engram.vector for one in sessions])
    tasks = [one.plan.task for one in sessions]
    names = [one.plan.user.name for one in sessions]
    rows = np.log1p(rows)
    for task in set(tasks):
        own = [at for at, one in enumerate(tasks) if one == task]
        rows[own] = (rows[own] - rows[own].mean(axis=0)) / (rows[own].std(axis=0) + 0.1)
    right: dict[str, list[bool]] = {one.name: [] for one in people}
    for at, name in enumerate(names):
        middles = {
            one.name: rows[[other for other, who in enumerate(names) if who == one.name and other != at]].mean(axis=0)
            for one in people
        }
        best = min(middles, key=lambda who: float(np.linalg.norm(rows[at] - middles[who])))
        right[name].append(best == name)
    share = statistics.fmean(value for own in right.values() for value in own)
    spread = _interval(people, lambda some: statistics.fmean(value for one in some for value in right[one.name]))
    note = f"chance, and by the task alone: {1 / len(people):.2f}"
    yield figure("who_did_it", share, "share", samples=len(sessions), spread=spread, better="higher", note=note)


def _otherwise(sessions: Sequence[Recorded], memories: dict[str, Memory]) -> Iterator[Figure]:
    """Sessions that are otherwise: found by the published rule, and by medians."""
    truth = {one.engram.session: one.plan.shift for one in sessions}
    odd = {session for session, shift in truth.items() if shift is not None}
    published = {session for memory in memories.values() for session in memory.anomalies}
    robust = {session for memory in memories.values() for session in memory.robust}
    for name, found in (("published", published), ("robust", robust)):
        hits = len(found & odd)
        note = f"{len(found)} flagged of {len(truth)}; chance {len(odd) / len(truth):.2f}"
        yield figure(f"anomaly_{name}_precision", hits / max(1, len(found)), "share", samples=len(found), note=note)
        yield figure(f"anomaly_{name}_recall", hits / max(1, len(odd)), "share", samples=len(odd))
    shifts = [shift for memory in memories.values() for shift in memory.shifts if shift.session in odd]
    named = sum((truth[one.session] or ("", ""))[0] == one.dimension for one in shifts)
    yield figure(
        "shift_dimension", named / max(1, len(shifts)), "share", samples=len(shifts), note="of those found; chance 0.17"
    )
