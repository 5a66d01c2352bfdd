"""Run as a program: keep the index of agents' memories again and again, each time in a process that dies one step later."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from memdir.retrieval import derived_index as files
from memdir.retrieval.agents import container
from memdir.retrieval.agents.index import AgentIndexes
from memdir.store.sqlite.store import SqliteStore
from tests.retrieval.agent_world import CONTAINER, forget, told

DIED = 9
STEPS_MAX = 100


def worked_on(folder: Path) -> None:
    """Read, write the file, change, write it again, make it anew."""
    container.KEPT_MIN = 5
    store = SqliteStore.open(folder)
    indexes = AgentIndexes(store)
    own = indexes.of(CONTAINER)
    own.load()
    own.keep()
    forget(store, 3)
    told(store, 100, "The okapi gate opens at seven")
    own.follow()
    own.keep()
    indexes.rebuild(CONTAINER)
    indexes.close()
    store.close()


def main(filled: Path, folder: Path) -> None:
    for allowed in range(STEPS_MAX):
        here = folder / str(allowed)
        shutil.copytree(filled, here)
        child = os.fork()
        if not child:
            taken = 0

            def step(_what: str, allowed: int = allowed) -> None:
                nonlocal taken
                if taken >= allowed:
                    os._exit(DIED)
                taken += 1

            files.BEFORE_STEP.append(step)
            worked_on(here)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        sys.stdout.write(f"{allowed} {code}\n")
        if code != DIED:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
