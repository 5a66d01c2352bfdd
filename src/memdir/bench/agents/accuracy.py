"""Whether the right memory comes first, and nothing comes where there is none: through a real server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np

from memdir.bench.agents import seedcases
from memdir.bench.agents.corpus import KINDS, Question, memories, questions
from memdir.bench.agents.goals import figure
from memdir.bench.figures import Figure
from memdir.bench.retrieval.metrics import interval, wilson
from memdir.bench.server.stand import Stand, stand
from memdir.bench.session import BenchError
from memdir.bench.smoke import progress

BATCH: Final = 500
_TOP: Final = 10


def accuracy(folder: Path, *, share: int = 1) -> Iterator[Figure]:
    """The design's ten cases, then the thousand memories; of their questions every `share`-th."""
    with stand(folder) as one, one.client() as client:
        progress("the ten cases of the design …")
        yield from seed_cases(client)
        progress("a thousand memories …")
        yield from thousand(client, share)
        yield from _server(one)


def _server(one: Stand) -> Iterator[Figure]:
    yield figure("server_resident", one.resident_mib(), "MiB", note="after all questions, models not asked for")


def seed_cases(client: httpx.Client) -> Iterator[Figure]:
    """Ten memories, ten questions."""
    ids = _stored(client, "seed", seedcases.MEMORIES)
    right = false = 0
    for case in seedcases.CASES:
        hits = searched(client, "seed", case.query, project=seedcases.PROJECT, tags=list(case.tags), limit=5)
        if case.expected is None:
            false += len(hits)
        elif hits and hits[0]["memory"]["id"] == ids[case.expected]:
            right += 1
        else:
            progress(f"missed: {case.name}: {case.query}")
    asked = len(seedcases.CASES)
    yield figure(
        "seed_cases", right + (false == 0), "cases", samples=asked, better="higher", note="top-1, and nothing for the negative"
    )
    yield figure("seed_false_positives", false, "hits", samples=1)


def thousand(client: httpx.Client, share: int) -> Iterator[Figure]:
    """All kinds of questions; `held` are those about subjects that nothing was tuned to."""
    told = memories()
    places = imported(client, "thousand", [one.item(datetime.now(UTC)) for one in told])
    asked = questions(told)[::share]
    ranks: dict[Question, int | None] = {}
    for question in asked:
        hits = searched(client, "thousand", question.text, project=question.project, limit=_TOP)
        ranks[question] = _rank(question, [places[hit["memory"]["content"], hit["memory"]["project"]] for hit in hits])
    for kind in KINDS[:-1]:
        yield from _of_kind(kind, [question for question in asked if question.kind == kind], ranks)
    positive = [question for question in asked if question.relevant]
    yield from _of_kind("all", positive, ranks)
    yield from _of_kind("held", [question for question in positive if question.held], ranks)
    negative = [question for question in asked if not question.relevant]
    for name, some in (("negatives", negative), ("held_negatives", [one for one in negative if one.held])):
        answered = sum(ranks[question] is not None for question in some)
        low_high = wilson(answered, len(some))
        yield figure(f"{name}_answered", answered / max(1, len(some)), "share", samples=len(some), spread=low_high)


def _rank(question: Question, found: Sequence[int]) -> int | None:
    """1 for the first; None: not among those found. Of a negative: 0 when anything was found."""
    if not question.relevant:
        return 0 if found else None
    return next((rank for rank, place in enumerate(found, start=1) if place in question.relevant), None)


def _of_kind(name: str, asked: Sequence[Question], ranks: dict[Question, int | None]) -> Iterator[Figure]:
    if not asked:
        return
    first = sum(ranks[question] == 1 for question in asked)
    reciprocal = np.array([1.0 / rank if (rank := ranks[question]) else 0.0 for question in asked])
    found = sum(ranks[question] is not None for question in asked)
    spread = wilson(first, len(asked))
    yield figure(f"{name}_top1", first / len(asked), "share", samples=len(asked), spread=spread, better="higher")
    yield figure(
        f"{name}_mrr", float(reciprocal.mean()), "share", samples=len(asked), spread=interval(reciprocal), better="higher"
    )
    yield figure(f"{name}_top10", found / len(asked), "share", samples=len(asked), better="higher")


def _stored(client: httpx.Client, container: str, named: dict[str, tuple[str, tuple[str, ...]]]) -> dict[str, str]:
    """Through the way a tool takes; the id of each."""
    ids = {}
    for name, (content, tags) in named.items():
        body = {"containerTag": container, "content": content, "tags": list(tags), "project": seedcases.PROJECT}
        answer = asked_of(client, "/v1/agents/memories", body)
        ids[name] = answer["memories"][0]["id"]
    if len(set(ids.values())) != len(ids):
        raise BenchError("two of the ten memories were taken for the same")
    return ids


def imported(client: httpx.Client, container: str, items: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    """All of them; the place of each by its text and project. BenchError when one is left out."""
    for at in range(0, len(items), BATCH):
        body = {"containerTag": container, "items": items[at : at + BATCH]}
        outcome = asked_of(client, "/v1/agents/memories:import", body)
        if outcome["created"] != len(items[at : at + BATCH]):
            raise BenchError(f"of {len(items[at : at + BATCH])} memories {outcome['created']} were taken: {outcome}")
    return {(item["content"], item["project"]): place for place, item in enumerate(items)}


def searched(client: httpx.Client, container: str, query: str, **more: Any) -> list[dict[str, Any]]:
    """Hits, best first; the search is not counted as an access, so that one does not change the next."""
    body = {"containerTag": container, "q": query, "record": False} | more
    found: list[dict[str, Any]] = asked_of(client, "/v1/agents/search", body)["results"]
    return found


def asked_of(client: httpx.Client, path: str, body: dict[str, Any], *, limit_s: float = 120.0) -> dict[str, Any]:
    """The answer to a POST. BenchError for anything but success."""
    answer = client.post(path, json=body, timeout=limit_s)
    if answer.status_code >= 300:
        raise BenchError(f"{path} was answered {answer.status_code}: {answer.text[:300]}")
    found: dict[str, Any] = answer.json()
    return found
