"""What a command is, and the parser and help text that every command shares.

Imported before every command, so it needs argparse and nothing heavier (`memdir grep --help` has 150 ms, process included).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NoReturn

from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output

EXIT_OK: Final = 0
EXIT_NOTHING: Final = 1
EXIT_ERROR: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141
"""What a shell reports for a process that SIGPIPE ended."""

_HELP_WIDTH: Final = 100

ERROR_CODE: Final = (EXIT_ERROR, "an error; the message says what to do")


class Command:
    """One command: its help in pieces (so that docs and `--help` cannot differ), its options, and what it does."""

    __slots__ = ("configure", "description", "examples", "exit_codes", "name", "parser_type", "run", "usage")

    def __init__(
        self,
        *,
        name: str,
        usage: str,
        description: str,
        examples: Iterable[tuple[str, str]],
        exit_codes: Iterable[tuple[int, str]],
        configure: Callable[[Parser], None],
        run: Callable[[argparse.Namespace, Output], int],
        parser_type: type[Parser] | None = None,
    ) -> None:
        self.name = name
        self.usage = usage
        self.description = description
        self.examples = tuple(examples)
        given = tuple(exit_codes)
        self.exit_codes = given if any(code == EXIT_ERROR for code, _ in given) else (*given, ERROR_CODE)
        self.configure = configure
        self.run = run
        self.parser_type = parser_type or Parser

    def parser(self) -> Parser:
        """The parser of `memdir NAME`, with the options that every command has."""
        parser = self.parser_type(
            prog=f"memdir {self.name}",
            usage=f"memdir {self.name} {self.usage}".rstrip(),
            description=self.description,
            epilog=self._epilog(),
            formatter_class=HelpFormatter,
            add_help=False,
            allow_abbrev=False,
        )
        parser._positionals.title = "arguments"
        self.configure(parser)
        parser.add_argument(
            "--credentials", metavar="FILE", help="use the server and key of this file; 'local' for this user's own server"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document on standard output, errors too")
        parser.add_argument("--debug", action="store_true", help="show the Python traceback of an unexpected error")
        names = [name for name in ("-h", "--help") if name not in parser._option_string_actions]
        parser.add_argument(*names, action="help", help="show this help and exit")
        return parser

    def _epilog(self) -> str:
        width = max((len(line) for line, _ in self.examples), default=0)
        lines = ["examples:"]
        lines += [f"  {line:<{width}}  {meaning}".rstrip() for line, meaning in self.examples]
        lines += ["", "exit codes:"]
        lines += [f"  {code}  {meaning}" for code, meaning in self.exit_codes]
        return "\n".join(lines)


class Parser(argparse.ArgumentParser):
    """Reports a bad command line as a UsageError, so that it is printed like every other error (JSON included)."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see `{self.prog} --help`")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """The same text on every terminal and every supported Python, because docs/cli.md is made of it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=_HELP_WIDTH)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """`-n, --lines N`: Python 3.13 writes it so, 3.11 and 3.12 repeat the N."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def bounded_int(low: int, high: int) -> Callable[[str], int]:
    """An argparse type: a whole number from `low` to `high`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
        return value

    return parse


def seconds(high: float = 86_400.0) -> Callable[[str], float]:
    """An argparse type: seconds, from 0 to `high` (a day)."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
        if not 0 <= value <= high:  # also refuses nan
            raise argparse.ArgumentTypeError(f"{text} is not between 0 and {high:g} seconds")
        return value

    return parse


_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)
ALL: Final = -1
"""What `prefetch_bytes` makes of 'all'."""


def size_bytes(text: str) -> int:
    """An argparse type: bytes, such as 4096, 500M or 1.5GiB (powers of 1024)."""
    found = _SIZE.fullmatch(text.strip())
    value = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if not 1 <= value <= 1 << 60:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500M or 2G")
    return value


def prefetch_bytes(text: str) -> int:
    """An argparse type: a size, 'none' (0) or 'all' (ALL)."""
    if text in ("none", "0"):
        return 0
    return ALL if text == "all" else size_bytes(text)


def wants_json(argv: Iterable[str]) -> bool:
    """Whether errors have to be JSON, known even when the command line itself is wrong."""
    for argument in argv:
        if argument == "--":
            return False
        if argument == "--json":
            return True
    return False
