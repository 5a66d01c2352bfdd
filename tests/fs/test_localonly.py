"""What `.memdirignore` may cost: the rules are asked in the request loop, and whoever writes into a memory can write them."""

from __future__ import annotations

import time

import pytest

from memdir.core.gitignore import PATTERN_MAX_BYTES, PATTERNS_MAX
from memdir.fs.localonly import LocalOnlyRules

LONG_NAME = "/" + "a" * 255
DEEP = "/" + "a/" * 2000

_STEP_S = 1.0
"""Far beyond what a bounded match takes on a loaded machine, far below the hours of an unbounded one."""


@pytest.mark.promise("exercise.ignore-bounded")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 15 + "b", LONG_NAME), ("*a" * 400 + "b", LONG_NAME), ("?*" * 100 + "b", LONG_NAME), ("*[ab]*[ab]*c", LONG_NAME),
        ("*[ab]" * 9 + "c", LONG_NAME), ("**/a/**/b", DEEP), ("**/a/**/b/**/c/**/d", DEEP), ("**/*a*a*a*b", DEEP),
        ("\n".join(f"*x*{number}*y" for number in range(20_000)), "/" + "x" * 250), ("a" * 250_000, LONG_NAME),
    ],
)  # fmt: skip
def test_no_pattern_makes_a_match_expensive(pattern: str, path: str) -> None:
    started_s = time.thread_time()
    LocalOnlyRules(pattern).matches(path)
    assert time.thread_time() - started_s < _STEP_S


def test_lines_that_are_too_many_or_too_long_are_left_out() -> None:
    lines = [f"name-{number}" for number in range(PATTERNS_MAX + 1)]
    rules = LocalOnlyRules("\n".join(lines))
    assert rules.matches(f"/name-{PATTERNS_MAX - 1}")
    assert not rules.matches(f"/name-{PATTERNS_MAX}")
    rules = LocalOnlyRules("x" * (PATTERN_MAX_BYTES + 1) + "\n*.log")
    assert not rules.matches("/" + "x" * (PATTERN_MAX_BYTES + 1))
    assert rules.matches("/a.log")
