"""`python -m memdir.cli.docs`: write docs/cli.md from the `--help` of every command, so that the two cannot differ.

`--check` writes nothing and fails when the file is not what would be written; a test calls it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memdir.cli.main import ALIASES, all_commands, load_command, overview

DEFAULT_FILE: Final = Path(__file__).resolve().parents[3] / "docs" / "cli.md"
"""In a checkout; an installed package has no docs folder and needs the FILE argument."""


def render() -> str:
    """The whole page."""
    parts = [
        "# The command line",
        "",
        "This page is made from `--help` by `python -m memdir.cli.docs`; do not edit it.",
        "",
        "Data goes to standard output, talk to standard error. Every command takes `--json` and prints one JSON document then,",
        'for an error `{"error": …, "hint": …}`. `NO_COLOR` and `MEMDIR_DEBUG=1` are honoured; `MEMDIR_HOME` moves everything',
        "that memdir keeps below one folder; `MEMDIR_SERVER_URL` with `MEMDIR_API_KEY` names another server.",
        "Ctrl-C ends a command with exit code 130.",
        "",
        "```",
        overview(),
        "```",
        "",
        "Other spellings: " + ", ".join(f"`{alias}` for `{name}`" for alias, name in ALIASES.items()) + ".",
    ]
    for name in all_commands():
        parts += ["", f"## memdir {name}", "", "```", load_command(name).parser().format_help().rstrip(), "```"]
    return "\n".join(parts) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the page. Exit code 1 when it is out of date."""
    parser = argparse.ArgumentParser(prog="python -m memdir.cli.docs", description="Write docs/cli.md from --help.")
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE)
    parser.add_argument("--check", action="store_true", help="fail when the file is out of date, write nothing")
    args = parser.parse_args(argv)
    text = render()
    if args.check:
        if args.file.exists() and args.file.read_text(encoding="utf-8") == text:
            return 0
        print(f"{args.file} is out of date; run `python -m memdir.cli.docs`", file=sys.stderr)
        return 1
    args.file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
