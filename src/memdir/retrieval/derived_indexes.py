"""All derived indexes over a store together: which there are, whether they agree with the store, making them anew."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import MemdirError
from memdir.retrieval.derived_index import INDEXES_FOLDER, DerivedIndex, Progress, Told, untold, write_synced
from memdir.retrieval.lexical.choice import word_indexes
from memdir.store.database import fetch
from memdir.store.store import Store
from memdir.store.upkeep.engine import Finding

log = logging.getLogger(__name__)

_PLAN_NAME: Final = "rebuild.json"
_FAILED_MAX: Final = 100
"""Reasons that are kept of one plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One index of one container."""

    container_id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """How far the builds that were asked for are. `current` None: none is under way."""

    total: int
    done: int
    current: Build | None
    progress: Progress | None
    failed: tuple[str, ...]


class StoppedError(MemdirError):
    """A build was ended because its process ends; the plan has it still."""


def derived_indexes(store: Store) -> tuple[DerivedIndex, ...]:
    """Every kind that is kept in files for this store, in the order in which they are built. PostgreSQL searches inside the
    database and has none."""
    from memdir.retrieval.embed.static import NAME
    from memdir.retrieval.vectors.index import index_beside

    found = (word_indexes(store), index_beside(store, named_by=NAME))
    return tuple(index for index in found if index is not None)


def container_ids(store: Store) -> list[int]:
    """Of all organisations, in order."""
    with store.upkeep().reading() as reader:
        return [row[0] for row in fetch(reader, "select id from container order by id")]


def disagreements(
    store: Store, indexes: Sequence[DerivedIndex], *, full: bool = False, told: Told = untold
) -> Iterator[tuple[Finding, Build]]:
    """What disagrees with the store, and which index of which container that is. `index-orphan`: its container is gone."""
    known = set(container_ids(store))
    for index in indexes:
        there = index.containers()
        for number, container_id in enumerate(there):
            told(Progress(done=number, total=len(there)))
            build = Build(container_id=container_id, name=index.name)
            if container_id not in known:
                detail = f"the index {index.name} has files of container {container_id}, which is gone"
                yield Finding(kind="index-orphan", detail=detail), build
            else:
                for finding in index.check(container_id, full=full):
                    yield finding, build


def mended(store: Store, indexes: Sequence[DerivedIndex], *, full: bool = False, told: Told = untold) -> list[Finding]:
    """The same, and what disagrees is taken away: it comes back from the store. Nobody else may be at work with the files."""
    by_name = {index.name: index for index in indexes}
    found = list(disagreements(store, indexes, full=full, told=told))
    for build in dict.fromkeys(build for _, build in found):
        by_name[build.name].drop(build.container_id)
    for finding, _ in found:
        finding.repaired = True
    return [finding for finding, _ in found]


class Rebuilds:
    """Builds that were asked for, one after the other. What is asked for stands in a file, so that it goes on after a death."""

    def __init__(self, data_folder: Path, indexes: Sequence[DerivedIndex]) -> None:
        self._path = data_folder / INDEXES_FOLDER / _PLAN_NAME
        self._indexes = {index.name: index for index in indexes}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._total = 0
        self._current: Build | None = None
        self._progress: Progress | None = None
        self._failed: list[str] = []
        self._waiting = self._read()
        self._thread = threading.Thread(target=self._loop, name="memdir-rebuild", daemon=True)
        self._total = len(self._waiting)

    @property
    def names(self) -> tuple[str, ...]:
        """Kinds of indexes there are."""
        return tuple(self._indexes)

    def start(self) -> None:
        """Build in the background what is asked for, and what a process that died had not built."""
        self._thread.start()

    def stop(self, *, timeout_s: float = 5.0) -> bool:
        """End at the next step of the build under way, which begins again after the next start. Returns whether it ended."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def ask(self, builds: Sequence[Build]) -> None:
        """Returns when it is on the disk that these are wanted."""
        with self._lock:
            if not self._waiting:
                self._total, self._failed = 0, []
            new = [build for build in dict.fromkeys(builds) if build not in self._waiting and build.name in self._indexes]
            self._waiting += new
            self._total += len(new)
            self._write()
        self._wake.set()

    def state(self) -> PlanState:
        """Any thread."""
        with self._lock:
            return PlanState(
                total=self._total,
                done=self._total - len(self._waiting),
                current=self._current,
                progress=self._progress,
                failed=tuple(self._failed),
            )

    def run(self, told: Told = untold) -> None:
        """Build everything that is asked for, now, in this thread."""
        while (build := self._begun()) is not None:
            try:
                self._indexes[build.name].rebuild(build.container_id, told=lambda progress: self._on_the_way(progress, told))
                log.info("the index %s of container %d was built anew", build.name, build.container_id)
            except StoppedError:
                return
            except Exception as error:
                log.exception("the index %s of container %d could not be built", build.name, build.container_id)
                self._ended(build, str(error) or type(error).__name__)
            else:
                self._ended(build, None)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            self.run()
            if not self._stopping.is_set():
                self._wake.wait()

    def _on_the_way(self, progress: Progress, told: Told) -> None:
        if self._stopping.is_set():
            raise StoppedError("the process ends")
        with self._lock:
            self._progress = progress
        told(progress)

    def _begun(self) -> Build | None:
        with self._lock:
            self._current = self._waiting[0] if self._waiting and not self._stopping.is_set() else None
            self._progress = None
            return self._current

    def _ended(self, build: Build, reason: str | None) -> None:
        with self._lock:
            self._waiting.remove(build)
            self._current = self._progress = None
            if reason is not None and len(self._failed) < _FAILED_MAX:
                self._failed.append(f"{build.name} of container {build.container_id}: {reason}")
            self._write()

    def _read(self) -> list[Build]:
        try:
            plan: Any = json.loads(self._path.read_bytes())
            wanted = [Build(container_id=int(one["container_id"]), name=str(one["name"])) for one in plan]
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError):
            log.warning("%s cannot be read; ask again for what is to be built anew", self._path)
            return []
        return [build for build in wanted if build.name in self._indexes]

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        plan = [{"container_id": build.container_id, "name": build.name} for build in self._waiting]
        if plan:
            write_synced(self._path, [json.dumps(plan).encode()])
        else:
            self._path.unlink(missing_ok=True)
