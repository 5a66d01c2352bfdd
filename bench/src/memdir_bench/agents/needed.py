"""Whether a prompt is given the memory that it needs, and nothing when it needs none: through a real server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import httpx

from memdir_bench.agents.accuracy import asked_of
from memdir_bench.agents.goals import figure
from memdir_bench.agents.projects import Project, Prompt, projects
from memdir_bench.figures import Figure
from memdir_bench.retrieval.metrics import wilson
from memdir_bench.server.fixtures import fixture
from memdir_bench.server.runs import settle
from memdir_bench.smoke import progress

CONTAINER: Final = "needed"
Given = list[tuple[Prompt, list[str]]]
"""Prompts, with the ids of the memories that each was given, in order; another project's has its name before it."""


def needed(folder: Path) -> Iterator[Figure]:
    """All projects in one container; each half apart. `held` is the one that counts."""
    known = list(projects())
    with fixture(folder) as one, one.client() as client:
        progress(f"memories of {len(known)} projects …")
        names = _stored(client, known)
        settle(one, CONTAINER)
        one.rested_s()
        given = {project.name: _given(client, project, names) for project in known}
    for half in (False, True):
        own = [answer for project in known if project.held == half for answer in given[project.name]]
        yield from _figures("held" if half else "tuned", own)


def _stored(client: httpx.Client, known: Sequence[Project]) -> dict[str, tuple[str, str]]:
    """Project and id in its file of each memory, by the id that the server gave."""
    names = {}
    for project in known:
        items = [{"content": text, "tags": tags, "project": project.name} for tags, text in project.memories.values()]
        asked_of(client, "/v1/agents/memories:import", {"containerTag": CONTAINER, "items": items})
        own = {text: name for name, (_, text) in project.memories.items()}
        query: dict[str, str | int] = {"containerTag": CONTAINER, "project": project.name, "limit": 100}
        answer = client.get("/v1/agents/memories", params=query).raise_for_status().json()
        names.update({memory["id"]: (project.name, own[memory["content"]]) for memory in answer["memories"]})
    return names


def _given(client: httpx.Client, project: Project, names: dict[str, tuple[str, str]]) -> Given:
    found: Given = []
    for prompt in project.prompts:
        body = {"containerTag": CONTAINER, "prompt": prompt.text, "project": project.name}
        told = [names[one] for one in asked_of(client, "/v1/agents/context", body)["memoryIds"]]
        found.append((prompt, [name if own == project.name else f"{own}/{name}" for own, name in told]))
    return found


def _figures(half: str, given: Given) -> Iterator[Figure]:
    need = [(prompt, told) for prompt, told in given if prompt.needs is not None]
    none = [told for prompt, told in given if prompt.needs is None]
    yield _share(f"{half}_given", [prompt.needs in told for prompt, told in need])
    yield _share(f"{half}_given_first", [told[:1] == [prompt.needs] for prompt, told in need])
    yield _share(f"{half}_right_of_given", [name == prompt.needs for prompt, told in given for name in told])
    yield _share(f"{half}_silent", [not told for told in none])
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for prompt, told in given:
        by_kind[prompt.kind].append(prompt.needs in told if prompt.needs is not None else not told)
    for kind, right in sorted(by_kind.items()):
        yield _share(f"{half}_{kind}", right)


def _share(name: str, right: Sequence[bool]) -> Figure:
    count = max(1, len(right))
    spread = wilson(sum(right), count)
    return figure(name, sum(right) / count, "share", samples=len(right), spread=spread, better="higher")
