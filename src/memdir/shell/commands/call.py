"""One call of a command of ours, and how it is made one of the interpreter's."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from memdir.core.errors import UsageError
from memdir.fs.errors import FsError
from memdir.shell.commands.namespace import Namespace

if TYPE_CHECKING:
    from memdir.shell.files import Files

_OUTPUT_MAX_CHARS: Final = 16 << 20
"""A command that would say more ends."""


class OutputFullError(Exception):
    """More was printed than one command may."""


class Call:
    """Arguments and streams of one call."""

    def __init__(self, name: str, args: list[str], stdin: str | None, env: Mapping[str, str], space: Namespace) -> None:
        self.name = name
        self.args = args
        self.stdin = stdin or ""
        self.env = env
        self.space = space
        self.out: list[str] = []
        self.err: list[str] = []
        self.status = 0
        self._length = 0

    def say(self, text: str, end: str = "\n") -> None:
        """Print on standard output."""
        self._length += len(text) + len(end)
        if self._length > _OUTPUT_MAX_CHARS:
            raise OutputFullError
        self.out.append(text + end)

    def fail(self, text: str, status: int = 1) -> None:
        """Print on standard error, and end with `status` later."""
        self.err.append(f"{self.name}: {text}\n")
        self.status = max(self.status, status)

    def read(self, path: str) -> bytes:
        """The contents of a file; of `-` and /dev/stdin standard input."""
        if path in ("-", "/dev/stdin"):
            return self.stdin.encode()
        return self.space.read(path)


Command = Callable[[Call], None]


def builtins(
    commands: Mapping[str, Command], mounts: Mapping[str, Files], *, timeout_s: float
) -> dict[str, Callable[[Any], Any]]:
    """`commands` as the interpreter takes them; each has `timeout_s` for its work with files."""
    return {name: _builtin(name, command, mounts, timeout_s) for name, command in commands.items()}


def _builtin(name: str, command: Command, mounts: Mapping[str, Files], timeout_s: float) -> Callable[[Any], Any]:
    def run(context: Any) -> Any:
        from bashkit import BuiltinResult

        space = Namespace(mounts, context.fs, context.cwd, timeout_s=timeout_s)
        call = Call(name, list(context.argv), context.stdin, context.env, space)
        try:
            command(call)
        except UsageError as error:
            call.fail(error.message, _WRONG_USE.get(name, 1))
        except RecursionError:
            call.fail("the folders are nested too deep", 2)
        except OutputFullError:
            call.fail("the output is longer than 16 MiB", 2)
        except FsError as error:
            call.fail(error.message, 1)
        return BuiltinResult(stdout="".join(call.out), stderr="".join(call.err), exit_code=call.status)

    return run


_WRONG_USE: Final = {"ls": 2, "diff": 2, "cmp": 2, "patch": 2}


def joined(folder: str, name: str) -> str:
    """`folder/name` as typed, without a doubled slash."""
    return f"{folder}{name}" if folder.endswith("/") else f"{folder}/{name}"


def base(path: str) -> str:
    """The last name of `path`, of `a/` too."""
    return posixpath.basename(path.rstrip("/")) or "/"
