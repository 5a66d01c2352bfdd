"""`memdir hook`: the help of it. The work is `agents.hook`, where `cli.main` goes before anything is parsed."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from memdir.agents import hook
from memdir.agents.hosts import HOSTS
from memdir.cli.command import Command, Parser
from memdir.cli.memory.options import add_container

if TYPE_CHECKING:
    from memdir.cli.output import Output


def _configure(parser: Parser) -> None:
    parser.add_argument("--host", choices=HOSTS, help="who asks (default: told from what it sends)")
    parser.add_argument(
        "--tag", choices=hook.TAGS, default=hook.TAGS[0], help="what the block is called (default: %(default)s)"
    )
    add_container(parser)
    parser.add_argument("--plain", action="store_true", help="print the block itself and not JSON (Claude Code, Codex)")


def _run(_args: argparse.Namespace, _out: Output) -> int:
    hook.main(sys.argv[2:])


COMMAND = Command(
    name="hook",
    usage="[--host HOST] [--tag TAG] [--container NAME] [--plain]",
    description=(
        "Read the JSON of an agent host's hook on standard input, and print the memories that belong to the prompt, in the\n"
        "host's shape. `memdir init --agent` sets hosts up to call it, by a shorter way into the same code.\n"
        "It never fails a prompt: whatever is wrong, it prints nothing, exits with 0 within 3 s of its start, and says why\n"
        "in one line of hook.log in the state folder. A server that does not run is started, and not waited for."
    ),
    examples=[
        ("memdir hook --host claude-code < prompt.json", "what Claude Code would be given"),
        ("memdir hook --plain --tag supermemory < prompt.json", "the block alone, under the other name"),
    ],
    exit_codes=[(0, "always"), (2, "never: hosts would keep the prompt from the model")],
    configure=_configure,
    run=_run,
)
