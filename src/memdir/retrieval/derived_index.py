"""Derived indexes: what every one of them answers to its caretaker, and how their files are put in place.

An index holds nothing of its own: all of it is made again from the store, container by container. Its files lie in
`indexes/<container id>/<name>/` below the server's data folder. They are written to a temporary place, synced, renamed, and
named by a manifest that is renamed last, so that a process may die anywhere: what is there is whole, or is not used.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from memdir.core.paths import private, sync_folder
from memdir.store.upkeep.engine import Finding

log = logging.getLogger(__name__)

INDEXES_FOLDER: Final = "indexes"
TEMPORARY: Final = ".tmp"
"""Names of files and folders that are being written end so; after a death they are nobody's and are swept away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a build is: `done` of `total` passages (or documents)."""

    done: int
    total: int


Told = Callable[[Progress], None]
"""Called now and then during a build. It may raise to end the build, which then has changed nothing."""


def untold(_progress: Progress) -> None:
    """For a build that nobody watches."""


class DerivedIndex(Protocol):
    """One kind of index over all containers. Any thread may call any method; two builds of the same container exclude each
    other, and searches go on beside all of them."""

    @property
    def name(self) -> str:
        """`lexical`, `vectors`: the name of its folder, and for `memdir server reindex --what`."""
        ...

    def check(self, container_id: int, *, full: bool = False) -> Sequence[Finding]:
        """What disagrees with the store now: kinds `index-damaged` (files that cannot be read, or are not what their manifest
        says), `index-differs` (entries that the store has not, lacks, or has otherwise). Behind the store by events that are
        still in its log is no finding: the next search catches up. Without `full` a sample of the entries is compared, with it
        all. Changes nothing. No files at all is no finding."""
        ...

    def rebuild(self, container_id: int, *, told: Told = untold) -> int:
        """Make the container's index anew from the store and put it in place of the old one, which answers until then. Returns
        how many entries it has. May be killed anywhere and repeated."""
        ...

    def drop(self, container_id: int) -> None:
        """Take the container's files and all that memory holds of it away. They come back when they are needed."""
        ...

    def containers(self) -> Sequence[int]:
        """Containers that there are files of, in order; some may be gone from the store."""
        ...

    def close(self) -> bool | None:
        """End what is under way and let the files go. Before the store is closed. False: something is still under way."""
        ...


BEFORE_STEP: list[Callable[[str], None]] = []
"""Called with a short text before each step that changes a file here. Tests end the process in it."""


def folder_of(data_folder: Path, container_id: int, name: str) -> Path:
    """Where the files of one index of one container lie. The folder may not be there."""
    return data_folder / INDEXES_FOLDER / str(container_id) / name


def containers_in(data_folder: Path, name: str) -> list[int]:
    """Containers that have a folder of that name."""
    root = data_folder / INDEXES_FOLDER
    found = root.iterdir() if root.is_dir() else ()
    return sorted(int(entry.name) for entry in found if entry.name.isdigit() and (entry / name).is_dir())


def write_synced(path: Path, pieces: Iterable[bytes | memoryview]) -> int:
    """Write a file beside `path`, sync it and rename it to `path`: afterwards it is there whole, also after a power cut.
    Returns its size in bytes."""
    temporary = path.with_name(path.name + TEMPORARY)
    _step(f"write {path.name}")
    size_bytes = 0
    with open(temporary, "wb", opener=private) as file:
        for piece in pieces:
            size_bytes += file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    replace_synced(temporary, path)
    return size_bytes


def replace_synced(temporary: Path, path: Path) -> None:
    """Rename a synced file or folder to `path`; the name survives a power cut. A folder must not be there yet."""
    _step(f"rename {path.name}")
    temporary.replace(path)
    _step(f"renamed {path.name}")
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Take a file or a folder with all in it away, if it is there. A folder first gets a name that says it is nobody's."""
    _step(f"remove {path.name}")
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path if path.name.endswith(TEMPORARY) else path.with_name(f"{path.name}.gone{TEMPORARY}")
    if doomed != path:
        if doomed.exists():
            shutil.rmtree(doomed)
        path.replace(doomed)
    shutil.rmtree(doomed)


def sweep(folder: Path) -> int:
    """Take away what a process that died was writing in `folder`. Only while nobody builds there. Returns how many."""
    left = [entry for entry in folder.iterdir() if entry.name.endswith(TEMPORARY)] if folder.is_dir() else []
    for entry in left:
        log.info("taking away %s, which nobody finished", entry)
        remove(entry)
    return len(left)


def _step(what: str) -> None:
    for before in BEFORE_STEP:
        before(what)
