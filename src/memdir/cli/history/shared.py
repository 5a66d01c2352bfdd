"""What `history`, `restore` and `undelete` share: which memory and path is meant, and nothing that waits here is passed by.

What they show and bring back is what the server has. What was changed in a mount and not pushed yet is pushed first; while that
cannot be done nothing is restored, so that the present content always becomes a revision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from memdir.core.errors import BusyError, MemdirError, UsageError

if TYPE_CHECKING:
    from memdir.api import v1
    from memdir.cli.output import Output
    from memdir.client.errors import ClientError
    from memdir.client.http import Client
    from memdir.daemon.registry import MountRecord

_PUSH_S: Final = 60.0
_SHOWN_S: Final = 10.0
_ANSWER_EXTRA_S: Final = 15.0
_NAMED_MAX: Final = 3
_TOGETHER: Final = 8
_WAITING_MAX: Final = 256
Item = TypeVar("Item")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path of a memory, and the mount that it was given in, when it was."""

    container: str
    path: str
    record: MountRecord | None


def placed(path: str | None, container: str | None) -> Place:
    """What a person means. UsageError for a path outside every mount, and for a mount that has no server."""
    from memdir.cli.search.remote import place_of
    from memdir.cli.targets import current_folder, open_registry

    name, inside = place_of(path, container)
    if container is not None:
        return Place(container=name, path=inside, record=None)
    found = open_registry().find_by_path(Path(current_folder(), path or "."))
    record = None if found is None else found[0]
    if record is not None and not record.sync:
        raise UsageError(
            f"{record.name} is mounted with --no-sync, so no revisions are kept", hint="mount it without --no-sync"
        )
    return Place(container=name, path=inside, record=record)


@contextmanager
def keeper(out: Output) -> Iterator[Client]:
    """A client of a server that keeps revisions. UsageError for one that speaks Supermemory's API only: it keeps none."""
    from memdir.cli.search.remote import connected
    from memdir.client.errors import NotFoundError

    with connected(out.note) as client:
        try:
            client.capabilities()
        except NotFoundError as error:
            raise UsageError(
                f"the server at {client.base_url} keeps no revisions: it has no /v1",
                hint="`memdir whoami` shows which server is used",
            ) from error
        yield client


def push_first(place: Place) -> None:
    """Push what waits at and below the place. BusyError, and nothing was changed, when something still waits."""
    from memdir.cli.targets import control

    record = place.record
    if record is None or record.state != "alive":
        return  # a mount that is not there keeps its changes; the next one brings both sides together
    answer = control(record).call("flush", _PUSH_S + _ANSWER_EXTRA_S, path=place.path, timeout_s=_PUSH_S)
    waiting = answer.get("waiting") or []
    if waiting:
        named = ", ".join(map(str, waiting[:_NAMED_MAX])) + (" and more" if len(waiting) > _NAMED_MAX else "")
        why = answer.get("problem") or "the server does not take it now"
        raise BusyError(f"{named}: changed here and not pushed yet: {why}", hint=f"`memdir sync {record.path}`, then again")


def wait_shown(place: Place, seq: int, out: Output) -> None:
    """Until the mount shows what the server has done up to `seq`; a note when that takes too long."""
    from memdir.cli.targets import control

    record = place.record
    if record is None or record.state != "alive":
        return
    try:
        timeout_s = _SHOWN_S
        answer = control(record).call("flush", timeout_s + _ANSWER_EXTRA_S, path=place.path, timeout_s=timeout_s, seq=seq)
    except MemdirError as error:
        out.note(f"the mount will show it a moment later: {error.message}")
        return
    if not answer.get("seen"):
        out.note("the mount will show it a moment later")


def in_parallel(
    label: str, items: Sequence[Item], do: Callable[[Item], Done], path_of: Callable[[Item], str]
) -> list[Done | ClientError]:
    """Do something at the server with each item, a few at a time: it writes those to its disk together that come together. The
    result of each in their order, or why it was refused. OfflineError ends it: what is done stays done."""
    from concurrent.futures import ThreadPoolExecutor

    from memdir.cli.output import Progress
    from memdir.client.errors import ClientError, OfflineError

    results: list[Done | ClientError] = []
    with Progress(label, noun="file") as progress, ThreadPoolExecutor(_TOGETHER) as pool:
        for begin in range(0, len(items), _WAITING_MAX):
            part = items[begin : begin + _WAITING_MAX]
            waiting = [pool.submit(do, item) for item in part]
            for item, future in zip(part, waiting, strict=True):
                try:
                    results.append(future.result())
                except OfflineError:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
                except ClientError as error:
                    results.append(error)
                progress.update(len(results), len(items), path_of(item))
    return results


def entries_below(client: Client, container: str, path: str) -> Iterator[v1.FileEntry]:
    """What stands at and below a path now."""
    after: str | None = None
    while True:
        page = client.list_files(container, prefix=path, after=after)
        yield from page.entries
        if page.next_after is None:
            return
        after = page.next_after
