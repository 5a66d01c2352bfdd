"""Every case of the table on a mount and on a native directory: what POSIX and Linux say, and nothing that differs unlisted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.posix.script import DIFFERENCES, Case, load_all, matches, parse_step
from tests.posix.sides import Side

CASES = load_all()
IS_ROOT = os.geteuid() == 0
MINE = [case for case in CASES if "user" not in case.needs and (IS_ROOT or "root" not in case.needs)]
ROOT = Path(__file__).parents[2]


def _report(case: Case, answers: list[str], native: list[str] | None) -> list[str]:
    """What is wrong, one line for each step that is."""
    wrong = []
    for number, (step, answer) in enumerate(zip(case.steps, answers, strict=True)):
        if not matches(answer, step.expected):
            wrong.append(f"{step.line}: the mount answered {answer}")
        if native is None:
            continue
        if not matches(native[number], step.native):
            wrong.append(f"{step.line}: the native filesystem answered {native[number]}")
        elif not step.differs and native[number] != answer:
            wrong.append(f"{step.line}: the mount answered {answer}, the native filesystem {native[number]}")
    return wrong


def _check(case: Case, side: Side) -> None:
    native = side.native.run(case) if side.native is not None else None
    assert _report(case, side.worker.run(case), native) == []


@pytest.mark.promise("posix.table", "posix.native")
@pytest.mark.mount
@pytest.mark.parametrize("case", MINE, ids=lambda case: case.id)
def test_the_mount_answers_as_the_table_and_the_native_filesystem_do(case: Case, side: Side) -> None:
    _check(case, side)


@pytest.mark.skipif(not IS_ROOT, reason="the tests run as an ordinary user already")
@pytest.mark.promise("posix.user")
@pytest.mark.mount
@pytest.mark.parametrize("case", [case for case in CASES if "root" not in case.needs], ids=lambda case: case.id)
def test_an_ordinary_users_mount_answers_as_the_table_does(case: Case, user_side: Side) -> None:
    _check(case, user_side)


@pytest.mark.promise("posix.areas")
def test_the_table_covers_every_area() -> None:
    areas = {case.area for case in CASES}
    assert areas >= {
        "chmod", "chown", "link", "mkdir", "mknod", "open", "rename", "rmdir", "symlink", "truncate", "unlink", "utimens",
        "fallocate", "xattr", "times", "paths",
    }  # fmt: skip
    assert len({case.id for case in CASES}) == len(CASES)


def test_every_listed_difference_is_used_and_documented() -> None:
    page = " ".join((ROOT / "docs" / "filesystem.md").read_text(encoding="utf-8").split())
    used = {step.key for case in CASES for step in case.steps if step.key}
    assert set(DIFFERENCES) - used == set()
    assert [sentence for sentence in DIFFERENCES.values() if sentence not in page] == []


@pytest.mark.parametrize("line", ["", "open f O_RDONLY -> EPERM | ok (no-such-key)", "@65534 "])
def test_a_step_that_makes_no_sense_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"step|difference"):
        parse_step(line)
