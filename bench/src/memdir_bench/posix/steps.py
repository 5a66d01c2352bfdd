"""One timed piece of filesystem work, and the helpers the suites build them from."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from memdir_bench.posix.trees import environment
from memdir_bench.programs import run_to_end
from memdir_bench.session import BenchError

STEP_LIMIT_S: Final = 600.0
"""After this long a step counts as hung: its daemon is killed."""

Cold = Literal["", "names", "all"]


def nothing() -> None:
    """The default of what comes before and after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`work` is timed; everything else is not."""

    name: str
    ops: int
    """What the time is divided by: files, reads or MiB."""
    unit: str
    work: Callable[[], None]
    prepare: Callable[[], None] = nothing
    """Before the caches are dropped: brings a warm step's caches to warmth."""
    load: Callable[[], None] = nothing
    """After they were dropped: loads the program that is going to run, on something else."""
    check: Callable[[], None] = nothing
    """Whether the work was really done; BenchError otherwise."""
    cold: Cold = ""
    changes: bool = False
    """Later steps need what this one leaves behind."""
    size_bytes: int = 0
    """Bytes moved, when a rate is the natural figure."""


class Program:
    """A command whose output goes to a file on the native disk and is looked at afterwards."""

    def __init__(self, *command: str, cwd: Path | None = None, codes: Sequence[int] = (0,)) -> None:
        self._command = command
        self._cwd = cwd
        self._codes = codes
        self.output = b""

    def __call__(self) -> None:
        """Run to the end; BenchError when it fails or takes too long."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                code = run_to_end(self._command, cwd=self._cwd, env=environment(), stdout=out, stderr=err, limit_s=STEP_LIMIT_S)
            except subprocess.TimeoutExpired:
                raise BenchError(f"{self._command[0]} took longer than {STEP_LIMIT_S:.0f} s") from None
            out.seek(0)
            self.output = out.read()
            err.seek(0)
            said = err.read(2000).decode("utf-8", "replace").strip()
        if code not in self._codes:
            first = (said.splitlines() or ["no message"])[0]
            raise BenchError(f"{' '.join(self._command[:3])} ended with {code}: {first}")

    @property
    def lines(self) -> int:
        return self.output.count(b"\n")


def expect(what: str, found: int, wanted: int) -> None:
    """A benchmark that did something else is no benchmark."""
    if found != wanted:
        raise BenchError(f"{what}: {found} instead of {wanted}")


def count_files(folder: Path) -> int:
    """Regular files below; `.git` left out."""
    total = 0
    for _, folders, names in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        total += len(names)
    return total
