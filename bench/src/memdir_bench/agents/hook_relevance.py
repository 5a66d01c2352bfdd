"""Whether the hook gives a prompt the memory that it needs, and nothing when it needs none: through a real server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Final

import httpx

from memdir_bench.agents.accuracy import asked_of, searched
from memdir_bench.agents.goals import figure
from memdir_bench.agents.projects import Project, Prompt, projects
from memdir_bench.figures import Figure
from memdir_bench.memory.documentation import documents
from memdir_bench.retrieval.metrics import wilson
from memdir_bench.server.fixtures import fixture
from memdir_bench.server.runs import settle
from memdir_bench.smoke import progress

CONTAINER: Final = "prompts"
_TOP: Final = 5
_PASTE_MIN_CHARS: Final = 2_000
_PASTE_MAX_CHARS: Final = 12_000
_PASTES_FROM: Final = 300
"""Files."""
Given = list[tuple[Prompt, list[str]]]
"""Prompts, with the ids of the memories that each was given, in order; another project's has its name before it."""


def hook_relevance(folder: Path) -> Iterator[Figure]:
    """All projects in one container; each half apart. `held` is the one that counts."""
    known = list(projects())
    with fixture(folder) as one, one.client() as client:
        progress(f"memories of {len(known)} projects …")
        names = _stored(client, known)
        settle(one, CONTAINER)
        one.rested_s()
        given = {project.name: _answered(_given, client, project, names) for project in known}
        elsewhere = {project.name: _elsewhere(client, project, known) for project in known}
        long = {project.name: _answered(_given, client, _with_pastes(project), names) for project in known}
        found = {project.name: _answered(_found, client, project, names) for project in known}
        shown = {project.name: _answered(_shown, client, project, names) for project in known}
    for half in (False, True):
        own = [project.name for project in known if project.held == half]
        name = "held" if half else "tuned"
        yield from _figures(name, [answer for project in own for answer in given[project]])
        yield _share(f"{name}_elsewhere_silent", [silent for project in own for silent in elsewhere[project]])
        yield from _long_figures(name, [answer for project in own for answer in long[project]])
        yield from _search_figures(name, [answer for project in own for answer in found[project]])
        needing = [answer for project in own for answer in shown[project] if answer[0].needs is not None]
        yield _share(f"{name}_search_shown", [prompt.needs in told for prompt, told in needing])


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


def _answered(
    ask: Callable[[httpx.Client, Project, str], list[str]],
    client: httpx.Client,
    project: Project,
    names: dict[str, tuple[str, str]],
) -> Given:
    found: Given = []
    for prompt in project.prompts:
        told = [names[one] for one in ask(client, project, prompt.text)]
        found.append((prompt, [name if own == project.name else f"{own}/{name}" for own, name in told]))
    return found


def _given(client: httpx.Client, project: Project, text: str) -> list[str]:
    """Ids of what a hook is given in a project."""
    body = {"containerTag": CONTAINER, "prompt": text, "project": project.name}
    given: list[str] = asked_of(client, "/v1/agents/context", body)["memoryIds"]
    return given


def _found(client: httpx.Client, project: Project, text: str) -> list[str]:
    """Ids of what a search finds that looks through all projects."""
    return [hit["memory"]["id"] for hit in searched(client, CONTAINER, text, project=project.name, limit=_TOP)]


def _shown(client: httpx.Client, project: Project, text: str) -> list[str]:
    """Ids of what a search shows: what it finds, and what is closest besides."""
    body = {"containerTag": CONTAINER, "q": text, "record": False, "project": project.name, "limit": _TOP}
    answer = asked_of(client, "/v1/agents/search", body)
    return [hit["memory"]["id"] for hit in (*answer["results"], *answer["closest"])]


def _elsewhere(client: httpx.Client, project: Project, known: Sequence[Project]) -> list[bool]:
    """Whether nothing is given in a project for prompts that need a memory of another one of its half."""
    others = [other for other in known if other.held == project.held and other is not project]
    asked = [prompt.text for other in others for prompt in other.prompts if prompt.needs is not None]
    return [not _given(client, project, text) for text in asked]


def _with_pastes(project: Project) -> Project:
    """The same prompts before or behind a page or three of what people paste, errors within it; none on a machine without any
    documentation."""
    texts = documents(max_bytes=_PASTE_MAX_CHARS, most=_PASTES_FROM)
    pastes = [text for _, text in texts if len(text) > _PASTE_MIN_CHARS]
    prompts = [
        replace(prompt, text=_pasted(prompt, paste, is_behind=at % 2 == 0))
        for at, (prompt, paste) in enumerate(zip(project.prompts, cycle(pastes), strict=False))
    ]
    return replace(project, prompts=prompts)


def _pasted(prompt: Prompt, paste: str, *, is_behind: bool) -> str:
    if prompt.kind == "error":
        middle = paste.find("\n", len(paste) // 2) + 1
        return f"this happens again\n\n{paste[:middle]}{prompt.text}\n{paste[middle:]}"
    return f"{paste}\n\n{prompt.text}" if is_behind else f"{prompt.text}\n\n{paste}"


def _long_figures(half: str, given: Given) -> Iterator[Figure]:
    yield _share(f"{half}_long_given", [prompt.needs in told for prompt, told in given if prompt.needs is not None])
    yield _share(f"{half}_long_silent", [not told for prompt, told in given if prompt.needs is None])


def _search_figures(half: str, found: Given) -> Iterator[Figure]:
    need = [(prompt, told) for prompt, told in found if prompt.needs is not None]
    yield _share(f"{half}_search_first", [told[:1] == [prompt.needs] for prompt, told in need])
    yield _share(f"{half}_search_top5", [prompt.needs in told for prompt, told in need])
    yield _share(f"{half}_search_silent", [not told for prompt, told in found if prompt.needs is None])


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
