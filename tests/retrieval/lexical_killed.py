"""Run as a program: change, follow and build an index without end, until somebody kills it."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

from memdir.retrieval.lexical import container
from memdir.retrieval.lexical.index import WordIndexes
from tests.retrieval.lexical_world import FakeLog, some_text


def filled(rng: random.Random) -> FakeLog:
    log = FakeLog()
    for number in range(30):
        log.put(1, f"d{number}", f"/{number % 4}/{number}.md", [(some_text(rng), "")])
    return log


def main(folder: Path) -> None:
    rng = random.Random(3)
    container.PAGE = 20
    container.WASTE_MIN = 50
    log = filled(rng)
    index = WordIndexes(log, folder)
    for turn in itertools.count():
        index.settle(1)
        sys.stdout.write(f"{turn}\n")
        sys.stdout.flush()
        log.put(1, f"d{rng.randrange(40)}", f"/{turn % 4}/{turn}.md", [(some_text(rng), "")])
        log.move(1, f"d{rng.randrange(40)}", f"/moved/{turn}.md")
        log.delete(1, f"d{rng.randrange(40)}")
        if turn % 7 == 0:
            index.rebuild(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
