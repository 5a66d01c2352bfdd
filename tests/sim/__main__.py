"""`python -m tests.sim`: run seeds, see one again, make a failing one short."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from pathlib import Path

from tests.sim.disk import Shelf
from tests.sim.runner import Failure, attempt, chosen, replay, shrunk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument("--replay", type=Path, help="a file that --keep wrote")
    parser.add_argument("--keep", type=Path, help="write the shortest failing schedule there")
    parser.add_argument("--digest", action="store_true", help="only say what each schedule comes to")
    parser.add_argument("--shrink", action="store_true", help="make failing schedules short")
    parser.add_argument("--stop", type=int, default=1, help="stop after so many failures")
    arguments = parser.parse_args()
    logging.getLogger("memdir").setLevel(logging.ERROR)
    logging.lastResort = None
    shelf = Shelf()
    if arguments.digest:
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            sys.stdout.write(f"{chosen(seed, shelf)[2]}\n")
        return 0
    failures: list[Failure] = []
    begun = time.process_time()
    if arguments.replay:
        found = replay(json.loads(arguments.replay.read_text()), shelf)
        failures += [found] if found else []
    else:
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            found = attempt(seed, shelf)
            if found is not None:
                failures.append(found)
                sys.stderr.write(f"seed {seed}: {found.kind}\n")
                if len(failures) >= arguments.stop:
                    break
    spent = time.process_time() - begun
    for failure in failures:
        short = shrunk(failure, shelf) if arguments.shrink else failure
        sys.stdout.write(f"{short}\n")
        if arguments.keep:
            arguments.keep.write_text(short.to_json())
    sys.stderr.write(f"{len(failures)} failures, {spent:.1f} s of processor time\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
