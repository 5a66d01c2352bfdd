"""What the commands for agents' memories share: their options, the container that is meant, texts that are given."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, BinaryIO, Final

from memdir.cli.command import Parser
from memdir.core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memdir.agents.service import AgentMemories, Memory
    from memdir.cli.output import Output

NONE: Final = "-"
"""How a command line says and shows that there is none: no project, no tags."""
_TEXT_MAX_BYTES: Final = 1 << 20
_ID_FORM: Final = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


def add_container(parser: Parser) -> None:
    """`--container`, for whatever asks for agents' memories."""
    parser.add_argument(
        "--container", metavar="NAME", help="the container of the memories (default: MEMDIR_AGENT_CONTAINER, or agents)"
    )


def add_project(parser: Parser) -> None:
    """`--project`, where that of the folder is meant otherwise: see `chosen_project`."""
    parser.add_argument(
        "--project", metavar="NAME", type=project_name,
        help=f"the project (default: MEMDIR_PROJECT, or that of this folder; '{NONE}' for none at all)",
    )  # fmt: skip


def project_name(text: str) -> str:
    """An argparse type."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"a project has a name (or '{NONE}' for none)")
    return text


def checked_id(text: str) -> str:
    """An argparse type: what may be an id, and so cannot lead elsewhere in an address."""
    if not _ID_FORM.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no id of a memory: `memdir memory list` shows them")
    return text


def tag_list(text: str) -> list[str]:
    """An argparse type: tags with commas between."""
    return [tag for tag in (part.strip() for part in text.split(",")) if tag]


def memories_of(args: argparse.Namespace, out: Output) -> AgentMemories:
    """The container that is meant, on the server, which is started when none runs."""
    from memdir.agents.service import AgentMemories, agent_container
    from memdir.client.local import ensure_server, running_server
    from memdir.core.paths import app_paths

    paths = app_paths()
    server = running_server(paths)
    if server is None:
        out.note("starting the local server")
        server = ensure_server(paths)
    return AgentMemories(server=server, container=agent_container(args.container))


def chosen_project(args: argparse.Namespace, memories: AgentMemories, *, remember: bool = False) -> str | None:
    """What `--project` says; else MEMDIR_PROJECT, else the project of the folder, as the server calls it (with `remember`:
    from now on). None for none."""
    from memdir.agents.project import current_project

    if args.project is not None:
        return told_project(args.project) or None
    try:
        project = current_project()
    except ValueError as error:
        raise UsageError(str(error), hint="mend that file, or name the project with --project") from None
    return memories.folder_of(project, remember=remember)


def told_project(name: str | None) -> str | None:
    """As the wire says it: '' for no project, None where nothing is said."""
    return "" if name == NONE else name


def text_of(words: list[str]) -> str:
    """The words of the command line; `-` alone, or nothing, reads standard input."""
    if words and words != ["-"]:
        return " ".join(words)
    return read_text(sys.stdin.buffer, "standard input")


def read_text(stream: BinaryIO, name: str) -> str:
    """All of it; UsageError for more than a text of a memory can be."""
    raw = stream.read(_TEXT_MAX_BYTES + 1)
    if len(raw) > _TEXT_MAX_BYTES:
        raise UsageError(f"{name} holds more than {_TEXT_MAX_BYTES >> 20} MiB", hint="a memory has at most 100,000 characters")
    return raw.decode("utf-8", "replace")


def there(ask: Callable[[], Memory]) -> Memory:
    """What `ask` answers; NotFoundError where the server knows no such memory."""
    from memdir.client.light import LightCallError

    try:
        return ask()
    except LightCallError as error:
        if error.status == 404:
            raise NotFoundError(error.message) from error
        raise
