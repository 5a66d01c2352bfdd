"""Runs scripts that want out, want all, or want to stay for ever, in a process of their own, which a crash would end.

`python -m tests.shell.hostile SECRET_FILE [EVERY]` runs each of `hostile.txt` (or each EVERY-th), and ways to read the file,
and writes a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Final

from memdir.fs.memory import MemoryFs
from memdir.shell import Shell, ShellLimits
from memdir.shell.files import Files
from memdir_bench.posix.clocks import resident_mib

TIMEOUT_S: Final = 1.0
_TEXTS: Final = Path(__file__).with_suffix(".txt")
_REPEATED: Final = re.compile(r"⟦([^⟧]*)⟧(\d+)⟧")
_UP: Final = "../" * 30
_PLACES: Final = (
    "{secret}", "{up}{secret_below_root}", "/proc/self/root{secret}", "/proc/1/root{secret}", "/notes/{up}{secret_below_root}",
    "file://{secret}",
)  # fmt: skip
_WAYS: Final = (
    "cat @", "cp @ got; cat got", "ln -s @ l; cat l", "head -1 < @", "source @", "diff @ /dev/null", "tar cf - @ | tar xOf -",
    "grep -r . @",
)  # fmt: skip


def scripts(secret: str) -> list[str]:
    """All of them; `secret` is a file of this machine that none may read. `⟦text⟧N⟧` is `text` N times."""
    texts = _TEXTS.read_text(encoding="utf-8").rstrip("\n").split("\n%%\n")
    texts += [way.replace("@", place) for place in _PLACES for way in _WAYS]
    places = {"{secret}": secret, "{secret_below_root}": secret[1:], "{up}": _UP, "{name}": os.path.basename(secret)}
    found = []
    for text in texts:
        for name, place in places.items():
            text = text.replace(name, place)  # noqa: PLW2901
        found.append(_REPEATED.sub(lambda match: match[1] * int(match[2]), text))
    return found


def main(secret: str, every: int) -> None:
    """Run them."""
    for script in scripts(secret)[::every]:
        files = Files(MemoryFs(sync=False))
        files.write("/README", b"a b\n")
        began_s = time.monotonic()
        with Shell.over(files, name="notes", limits=ShellLimits(timeout_s=TIMEOUT_S)) as shell:
            done = shell.run_sync(script)
            took_s = time.monotonic() - began_s
            after = shell.run_sync("echo still here")
        row = {
            "script": script[:200],
            "took_s": took_s,
            "exit_code": done.exit_code,
            "said": done.stdout + done.stderr,
            "after": after.stdout,
            "rss_mib": int(resident_mib(os.getpid(), peak=True)),
        }
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
