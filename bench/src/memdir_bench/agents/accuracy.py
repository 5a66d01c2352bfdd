"""Whether the right memory comes first, and nothing comes where there is none: through a real server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np

from memdir_bench.agents import seedcases
from memdir_bench.agents.corpus import KINDS, NEGATIVE_KINDS, Question, memories, questions
from memdir_bench.agents.goals import figure
from memdir_bench.figures import Figure
from memdir_bench.retrieval.metrics import interval, wilson
from memdir_bench.server.fixtures import Fixture, fixture
from memdir_bench.server.runs import settle
from memdir_bench.session import BenchError
from memdir_bench.smoke import progress

BATCH: Final = 500
THOUSAND: Final = "thousand"
"""The container of the thousand memories."""
_TOP: Final = 10
Ranks = dict[Question, tuple[int | None, int | None, int]]
"""Of each question the rank of the right memory, that of the first one which tells the same, and how many were found."""


def accuracy(folder: Path, *, share: int = 1) -> Iterator[Figure]:
    """The design's ten cases, then the thousand memories; of their questions every `share`-th."""
    with fixture(folder) as one, one.client() as client:
        progress("the ten cases of the design …")
        yield from seed_cases(client)
        progress("a thousand memories …")
        yield from thousand(client, share)
        progress("the same by meaning …")
        settle(one, THOUSAND)
        yield from by_meaning(client, share)
        yield from _server(one)


def _server(one: Fixture) -> Iterator[Figure]:
    yield figure("server_resident", one.resident_mib(), "MiB", note="after all questions, models loaded")


def seed_cases(client: httpx.Client) -> Iterator[Figure]:
    """Ten memories, ten questions."""
    ids = _stored(client, "seed", seedcases.MEMORIES)
    right = false = 0
    for case in seedcases.CASES:
        hits = searched(client, "seed", case.query, project=seedcases.PROJECT, tags=list(case.tags), limit=5, semantic=False)
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
    """All kinds of questions; `held` are those about subjects, and in wordings, that nothing was tuned to."""
    told = memories()
    places = imported(client, THOUSAND, [one.item(datetime.now(UTC)) for one in told])
    asked = questions(told)[::share]
    yield from _of_all(asked, _ranks(client, asked, places, semantic=False))


def by_meaning(client: httpx.Client, share: int) -> Iterator[Figure]:
    """The same questions by words and meaning, when the pipeline is done with the memories."""
    told = memories()
    asked = questions(told)[::share]
    places = {(one.content, one.project): place for place, one in enumerate(told)}
    yield from _of_all(asked, _ranks(client, asked, places, semantic=True), prefix="semantic_")


def _ranks(client: httpx.Client, asked: Sequence[Question], places: dict[tuple[str, str], int], **more: Any) -> Ranks:
    ranks: Ranks = {}
    for question in asked:
        hits = searched(client, THOUSAND, question.text, project=question.project, limit=_TOP, **more)
        found = [places[hit["memory"]["content"], hit["memory"]["project"]] for hit in hits]
        ranks[question] = _rank(question.relevant, found), _rank(question.same, found), len(found)
    return ranks


def _rank(right: frozenset[int], found: Sequence[int]) -> int | None:
    """1 for the first; None: not among those found."""
    return next((rank for rank, place in enumerate(found, start=1) if place in right), None)


def _of_all(asked: Sequence[Question], ranks: Ranks, prefix: str = "") -> Iterator[Figure]:
    positive = [question for question in asked if question.relevant]
    for kind in KINDS:
        yield from _of_kind(f"{prefix}{kind}", [question for question in positive if question.kind == kind], ranks)
    yield from _of_kind(f"{prefix}all", positive, ranks)
    yield from _of_kind(f"{prefix}held", [question for question in positive if question.held], ranks)
    negative = [question for question in asked if not question.relevant]
    named = {kind: [question for question in negative if question.kind == kind] for kind in NEGATIVE_KINDS}
    named |= {"negatives": negative, "held_negatives": [question for question in negative if question.held]}
    for name, some in named.items():
        if some:
            answered = sum(ranks[question][2] > 0 for question in some)
            yield figure(
                f"{prefix}{name}_answered", answered / len(some), "share", samples=len(some), spread=wilson(answered, len(some))
            )


def _of_kind(name: str, asked: Sequence[Question], ranks: Ranks) -> Iterator[Figure]:
    if not asked:
        return
    own = [ranks[question][0] for question in asked]
    for figure_name, ranked in (("top1", own), ("fact1", [ranks[question][1] for question in asked])):
        first = sum(rank == 1 for rank in ranked)
        spread = wilson(first, len(asked))
        yield figure(f"{name}_{figure_name}", first / len(asked), "share", samples=len(asked), spread=spread, better="higher")
    reciprocal = np.array([1.0 / rank if rank else 0.0 for rank in own])
    spread = interval(reciprocal)
    yield figure(f"{name}_mrr", float(reciprocal.mean()), "share", samples=len(asked), spread=spread, better="higher")
    found = sum(rank is not None for rank in own)
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
    """Hits, best first, by words and meaning unless `semantic` is False; the search is not counted as an access, so that one
    does not change the next."""
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
