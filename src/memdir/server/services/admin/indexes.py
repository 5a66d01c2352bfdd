"""Building derived data anew while searches go on: over HTTP, and by `memdir server reindex` while no server runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from memdir.api import indexes as wire
from memdir.retrieval.derived_indexes import Build, Rebuilds
from memdir.server.http.access import Caller
from memdir.store.store import Store

JOBS: Final = {"chunks": "index", "memories": "memory", "transcriptions": "index"}
"""What the pipeline makes, and the job that does it."""
_LEFT: Final = ("index", "extract", "embed", "memory")


def rebuild(caller: Caller, rebuilds: Rebuilds, request: wire.RebuildRequest) -> wire.IndexesView:
    """Ask for it. Returns at once; what was asked for survives the death of the process."""
    org_id = caller.administer()
    if request.container_tag is not None:
        ids = [caller.container(request.container_tag, "admin").id]
    else:
        ids = _all(caller.store, org_id)
    caller.noted.note("admin", request.container_tag, target=",".join(request.what))
    skipped = asked(caller.store, rebuilds, ids, request.what)
    return _view(caller.store, rebuilds, ids, skipped)


def view(caller: Caller, rebuilds: Rebuilds) -> wire.IndexesView:
    """How far it is."""
    return _view(caller.store, rebuilds, _all(caller.store, caller.administer()), [])


def asked(store: Store, rebuilds: Rebuilds, container_ids: Sequence[int], what: Sequence[str]) -> list[str]:
    """Write down what is to be built. Returns what the store's database keeps itself."""
    builds = [Build(container_id=one, name=name) for name in what if name in rebuilds.names for one in container_ids]
    rebuilds.ask(builds)
    for name in what:
        if name in JOBS:
            store.reprocessing.ask(container_ids, JOBS[name], transcribed=name == "transcriptions")
    for container_id in container_ids:
        store.notify(container_id)
    return [name for name in what if name not in rebuilds.names and name not in JOBS]


def offline_view(store: Store, rebuilds: Rebuilds, container_ids: Sequence[int], skipped: list[str]) -> dict[str, Any]:
    """The same for a command that did it itself, with the names that `--json` uses."""
    return _view(store, rebuilds, container_ids, skipped).model_dump()


def _all(store: Store, org_id: str) -> list[int]:
    return [container.id for container in store.containers.all(org_id, limit=1_000_000)]


def _view(store: Store, rebuilds: Rebuilds, container_ids: Sequence[int], skipped: list[str]) -> wire.IndexesView:
    state = rebuilds.state()
    left = store.reprocessing.left(container_ids, _LEFT)
    current = None
    if state.current is not None:
        container = store.containers.by_id(state.current.container_id)
        current = wire.IndexBuild(
            what=state.current.name,
            container_tag=None if container is None else container.tag,
            done=0 if state.progress is None else state.progress.done,
            total=0 if state.progress is None else state.progress.total,
        )
    return wire.IndexesView(
        what=list(rebuilds.names),
        skipped=skipped,
        running=state.done < state.total or left > 0,
        builds=state.total,
        builds_done=state.done,
        current=current,
        documents_left=left,
        failed=list(state.failed),
    )
