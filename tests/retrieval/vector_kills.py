"""Builds an index of vectors in processes that end at one step after the other, and looks at what they left.

    python -m tests.retrieval.vector_kills FOLDER EVERY

Forks: this process has no threads and no open database. Prints how many steps a build has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from memdir.core.clock import FakeClock
from memdir.retrieval import derived_index as files
from memdir.retrieval.derived_index import folder_of
from memdir.store.sqlite.store import SqliteStore
from tests.retrieval.conftest import World
from tests.retrieval.vectors import answers, beside, opened, put

KILLED: Final = 9


def in_a_process(work: Callable[[], None]) -> int:
    """Exit code of a fork that does `work`."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
    except BaseException as error:  # noqa: BLE001  it must not go on as its parent
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def fill(folder: Path) -> None:
    store = SqliteStore.open(folder, clock=FakeClock())
    world = World(store, FakeClock())
    for number in range(20):
        put(world, f"/a/notes-{number}.md", number)
    with beside(world, folder, segment_min=0) as index:
        index.rebuild(1)
    for number in range(20, 30):
        put(world, f"/ab/{number}.md", number)
    store.close()


def build(folder: Path, allowed: int) -> None:
    taken = 0

    def count(_what: str) -> None:
        nonlocal taken
        taken += 1
        if taken > allowed:
            os._exit(KILLED)

    with opened(folder) as world, beside(world, folder, segment_min=0) as index:
        files.BEFORE_STEP.append(count)
        index.rebuild(1)


def look(folder: Path) -> None:
    with opened(folder) as world, beside(world, folder, segment_min=0) as index:
        assert answers(world, index) == answers(world, world.chunks), "the index answers otherwise than the store"
        assert index.settle(60), "the index does not come to rest"
        found = index.check(1, full=True)
        assert not found, found
        left = sorted(path.name for path in folder_of(folder, 1, "vectors").iterdir())
        assert len(left) == 2, left


def main(folder: Path, every: int) -> int:
    """Exit code."""
    if in_a_process(lambda: fill(folder)):
        return 1
    for allowed in range(0, 1_000, every):
        ended = in_a_process(lambda allowed=allowed: build(folder, allowed))  # type: ignore[misc]
        if ended not in (0, KILLED) or in_a_process(lambda: look(folder)):
            sys.stderr.write(f"killed before step {allowed + 1}\n")
            return 1
        if ended == 0:
            sys.stdout.write(f"{allowed}\n")
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
