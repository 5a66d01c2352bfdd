"""The folder of a project's memories: the same for its clones, worktrees and new places, and never that of another one which is
called alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memdir.api import agents as wire
from memdir.server.http.access import Caller
from memdir.store.agents import files as agent_files
from memdir.store.agents import memories as agent_memories
from memdir.store.types import Container

_REMOTE, _ROOT, _FOLDER = "remote:", "root:", "folder:"
_NAMES_MAX: Final = 1_000


def resolved(caller: Caller, request: wire.ProjectRequest) -> wire.ProjectAnswer:
    """The folder that is meant; with `remember` it is that of this project from now on."""
    action = "write" if request.remember else "read"
    container = (
        caller.ensured(request.container_tag, "write", at=agent_memories.FOLDER)
        if request.remember
        else caller.found(request.container_tag, action, at=caller.narrowed(agent_memories.FOLDER))
    )
    return wire.ProjectAnswer(project=folder(caller, container, request.name, request.keys, remember=request.remember))


def folder(
    caller: Caller, container: Container | None, name: str | None, keys: Sequence[str], *, remember: bool = False
) -> str | None:
    """By what the project is known by, else by its name where no other project has that. None for none."""
    named = agent_files.project_folder(name)
    if container is None or not keys or named is None:
        return named
    store = caller.store.agent_projects
    known = store.known(container.id, keys)
    found = _known(caller, container.id, keys, known)
    project = found or _free(caller, container.id, named, keys)
    if remember:
        has_remote = any(key.startswith(_REMOTE) for key in keys)
        new = {key: key.startswith(_FOLDER) for key in keys if known.get(key) != project}
        if has_remote:  # where its clones lie says nothing that the remote does not
            new = {key: takes for key, takes in new.items() if not takes}
        store.remember(container.id, project, new)
        project = store.known(container.id, keys).get(keys[0], project)  # another process may have been first
    return project


def _known(caller: Caller, container_id: int, keys: Sequence[str], known: dict[str, str]) -> str | None:
    """The strongest key that is known decides. What says nothing for sure: a first commit that is shared with a fork, and a
    folder in which something else lies now."""
    own = {kind: [key for key in keys if key.startswith(kind)] for kind in (_REMOTE, _ROOT, _FOLDER)}
    for key in keys:
        project = known.get(key)
        if project is None:
            continue
        if key.startswith((_ROOT, _FOLDER)):
            others = caller.store.agent_projects.keys(container_id, project)
            if own[_REMOTE] and any(one.startswith(_REMOTE) for one in others):
                continue  # a fork: it has a remote of its own
            roots = [one for one in others if one.startswith(_ROOT)]
            if key.startswith(_FOLDER) and own[_ROOT] and roots and not set(own[_ROOT]) & set(roots):
                continue
        return project
    return None


def _free(caller: Caller, container_id: int, named: str, keys: Sequence[str]) -> str:
    """A name for the folder of a project that is not known yet: its own, where only memories stand that came by that name; else
    with its owner's, else with a number."""
    store = caller.store.agent_projects
    held = store.keys(container_id, named)
    if not held or set(held) & set(keys):
        return named
    remote = next((key.removeprefix(_REMOTE).split("/") for key in keys if key.startswith(_REMOTE)), [])
    candidates = [f"{remote[-2]}-{named}"] if len(remote) > 2 else []
    candidates += [f"{named}-{number}" for number in range(2, _NAMES_MAX)]
    for candidate in candidates:
        name = agent_files.project_folder(candidate)
        if name and not store.keys(container_id, name) and not caller.store.agents.count(container_id, project=name):
            return name
    return named
