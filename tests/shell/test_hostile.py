"""Hostile scripts end in time, get nothing of this machine, and leave the shell usable: see `hostile.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import memdir
from tests.shell.hostile import TIMEOUT_S, scripts

ROOT = Path(memdir.__file__).parents[2]
SLOW_S = 10.0
"""A script past its time ends at its next command; a busy machine is slow."""
GROWN_MIB = 1600
SECRET = "only-this-machine-knows"


@pytest.mark.promise("shell.bounded", "shell.contained")
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long), 5])
def test_no_script_gets_out_hangs_or_breaks_the_shell(tmp_path: Path, every: int) -> None:
    secret = tmp_path / "a-secret-file"
    secret.write_text(SECRET + "\n")
    wanted = scripts(str(secret))
    assert len(wanted) >= 200
    done = subprocess.run(
        [sys.executable, "-m", "tests.shell.hostile", str(secret), str(every)],
        cwd=ROOT, env={**os.environ, "A_SECRET": SECRET}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=len(wanted) * SLOW_S / every, check=False,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, len(rows)) == (0, len(wanted[::every])), (rows[-1:], done.stderr[-2000:])
    for row in rows:
        assert SECRET not in row["said"], row
        assert row["after"] == "still here\n", row
        assert row["took_s"] < TIMEOUT_S + SLOW_S, row
        assert row["rss_mib"] < GROWN_MIB, row
    assert secret.read_text() == SECRET + "\n"
    assert [path.name for path in tmp_path.iterdir()] == [secret.name]
