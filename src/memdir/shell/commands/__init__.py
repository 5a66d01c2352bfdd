"""Commands of the shell that are ours: those that the interpreter has not, or with too few of the options that agents use."""

from __future__ import annotations

from typing import Final

from memdir.shell.commands import changing, columns, comparing, describing, listing, patching
from memdir.shell.commands.call import Call, Command, builtins

__all__ = ["COMMANDS", "Call", "Command", "builtins"]

COMMANDS: Final[dict[str, Command]] = {
    "cmp": comparing.cmp,
    "column": columns.column,
    "cp": changing.cp,
    "date": describing.date,
    "diff": comparing.diff,
    "file": describing.file,
    "ln": changing.ln,
    "ls": listing.ls,
    "mkdir": changing.mkdir,
    "mv": changing.mv,
    "patch": patching.patch,
    "realpath": listing.realpath,
    "rm": changing.rm,
    "split": columns.split,
    "stat": listing.stat_command,
    "touch": changing.touch,
    "tree": listing.tree,
}
