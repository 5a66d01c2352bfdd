"""Run as a program: build an index again and again, each time in a process that dies one step later."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from memdir.retrieval import derived_index as files
from memdir.retrieval.lexical import container
from memdir.retrieval.lexical.index import SegmentedIndex
from tests.retrieval.lexical_world import FakeLog, some_text

DIED = 9
STEPS_MAX = 200


def filled(rng: random.Random) -> FakeLog:
    log = FakeLog()
    for number in range(30):
        log.put(1, f"d{number}", f"/{number % 4}/{number}.md", [(some_text(rng), "")])
    return log


def worked_on(log: FakeLog, folder: Path, rng: random.Random) -> None:
    """Build, change, merge, build anew."""
    container.FLUSH_WORDS, container.FLUSH_AT_CLOSE_WORDS, container.FANOUT, container.PAGE = 150, 1, 2, 20
    index = SegmentedIndex(log, folder)
    index.settle(1)
    for number in range(3):
        log.put(1, f"d{number}", f"/{number % 4}/{number}.md", [(some_text(rng), "")])
        log.delete(1, f"d{number + 10}")
        index.settle(1)
    index.rebuild(1)
    index.close()


def main(folder: Path) -> None:
    for allowed in range(STEPS_MAX):
        child = os.fork()
        if not child:
            taken = 0

            def step(_what: str, allowed: int = allowed) -> None:
                nonlocal taken
                if taken >= allowed:
                    os._exit(DIED)
                taken += 1

            files.BEFORE_STEP.append(step)
            rng = random.Random(3)
            worked_on(filled(rng), folder / str(allowed), rng)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        sys.stdout.write(f"{allowed} {code}\n")
        if code != DIED:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
