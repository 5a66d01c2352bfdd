"""`memdir deinit`: agent hosts as they were."""

from __future__ import annotations

from memdir.cli.agents import setup as agent_setup
from memdir.cli.command import Command, Parser


def _configure(parser: Parser) -> None:
    agent_setup.add_choice(parser, every="all")


COMMAND = Command(
    name="deinit",
    usage="[--agent HOSTS] [--project | --user] [--yes | --dry-run]",
    description=(
        "Take out of agent hosts what `memdir init` put into them. A file that nobody changed since is again what it was,\n"
        "byte for byte; of one that was changed only our parts go; one that we made goes. Memories stay where they are."
    ),
    examples=[
        ("memdir deinit", "everything, after a look at it"),
        ("memdir deinit --agent codex --user --yes", "one host, without a question"),
    ],
    exit_codes=[(0, "done"), (1, "there was nothing to take out, or you said no")],
    configure=_configure,
    run=agent_setup.uninstall,
)
