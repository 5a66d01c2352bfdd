"""Programs that benches time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memdir_bench.programs import run_to_end


def test_a_program_gives_its_exit_code_and_its_output_to_files(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+b") as out, (tmp_path / "err").open("w+b") as err:
        script = "pwd; echo $MARK; cat; echo wrong >&2; exit 7"
        code = run_to_end(["sh", "-c", script], cwd=tmp_path, env={"MARK": "x"}, stdout=out, stderr=err, limit_s=30)
        out.seek(0)
        err.seek(0)
        assert (code, out.read(), err.read()) == (7, f"{tmp_path}\nx\n".encode(), b"wrong\n")
    assert run_to_end([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], limit_s=30) == -9
    with pytest.raises(FileNotFoundError):
        run_to_end(["there is no such program"], limit_s=1)


def test_one_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    began_s = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_to_end(["sh", "-c", "echo $$ > pid; exec sleep 60"], cwd=tmp_path, limit_s=1)
    assert time.monotonic() - began_s < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
