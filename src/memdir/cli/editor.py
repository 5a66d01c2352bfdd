"""A text in the user's editor, as git has it: VISUAL, else EDITOR, a command with arguments for the shell."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output


def editor() -> str:
    """The command; `vi` on a terminal where none is named. UsageError where nobody could use it."""
    for command in (os.environ.get("VISUAL", ""), os.environ.get("EDITOR", ""), "vi" if sys.stdin.isatty() else ""):
        if command.strip():
            return command
    raise UsageError("there is no text and no editor", hint="give a new text, or set EDITOR")


@contextmanager
def edited(text: str, command: str, out: Output) -> Iterator[str]:
    """What the user makes of `text`. When the body fails, the file stays and is named: nobody should have to write it again."""
    descriptor, name = tempfile.mkstemp(prefix="memdir-", suffix=".md")
    file = Path(name)
    keep = False
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        status = subprocess.run(["sh", "-c", f'{command} "$@"', command, name], check=False).returncode
        if status:
            raise UsageError(f"the editor ({command}) ended with {status}", hint="nothing was changed; set VISUAL or EDITOR")
        changed = file.read_bytes().decode("utf-8", "replace")
        try:
            yield changed
        except BaseException:
            keep = bool(changed.strip())
            if keep:
                out.note(f"what you wrote is kept in {file}")
            raise
    finally:
        if not keep:
            file.unlink(missing_ok=True)
