"""`memdir memory edit|tag|delete`: changing an agent's memories from the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.editor import edited, editor
from memdir.cli.memory.options import (
    NONE,
    add_container,
    checked_id,
    memories_of,
    project_name,
    read_text,
    tag_list,
    text_of,
    there,
    told_project,
)  # fmt: skip
from memdir.cli.text import visible
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.agents.service import AgentMemories
    from memdir.cli.output import Output

_ID: Final = "01JD3Y6T0V8Q9W3N5K7M1P2R4S"


def _configure_edit(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", type=checked_id, help="the id, as `memdir memory list` shows it")
    parser.add_argument("text", metavar="TEXT", nargs="*", help="what it says from now on; '-' reads standard input")
    parser.add_argument("--file", metavar="FILE", type=Path, help="what it says from now on is in this file")
    parser.add_argument(
        "--move", metavar="PROJECT", type=project_name, help=f"the project it belongs to from now on; '{NONE}' for none"
    )
    parser.add_argument("--redact", action="store_true", help="replace secrets in it; else a text that holds one is refused")
    add_container(parser)


def _edit(args: argparse.Namespace, out: Output) -> int:
    content = _given(args)
    if content is None and args.move is None:
        return _edit_by_hand(args, editor(), out)
    return _write(args, memories_of(args, out), content, out)


def _given(args: argparse.Namespace) -> str | None:
    """The text of the command line, or of --file; None where there is none."""
    if args.file is None:
        content = text_of(args.text) if args.text else None
    elif args.text:
        raise UsageError("TEXT and --file are two texts for one memory", hint="give one of them")
    else:
        try:
            with open(args.file, "rb") as stream:
                content = read_text(stream, str(args.file))
        except OSError as error:
            raise UsageError(f"{args.file} cannot be read: {error.strerror}", hint="give a file with the new text") from None
    return None if content is None else _some(content)


def _some(content: str) -> str:
    if not content.strip():
        raise UsageError("a memory needs some text", hint="`memdir memory delete` takes a memory away")
    return content


def _edit_by_hand(args: argparse.Namespace, command: str, out: Output) -> int:
    memories = memories_of(args, out)
    before = there(lambda: memories.get(args.id))
    with edited(before["content"] + "\n", command, out) as text:
        if _some(text).strip() == before["content"].strip():
            out.note("nothing was changed")
            return EXIT_NOTHING
        if there(lambda: memories.get(args.id))["updatedAt"] != before["updatedAt"]:
            raise UsageError("the memory was changed meanwhile", hint=f"see `memdir memory show {args.id}`, and edit it again")
        return _write(args, memories, text, out)


def _write(args: argparse.Namespace, memories: AgentMemories, content: str | None, out: Output) -> int:
    from memdir.agents.service import stored_by

    secrets = "redact" if args.redact else "refuse"
    project = told_project(args.move)
    by = stored_by()
    memory = there(lambda: memories.edit(args.id, content=content, project=project, stored_by=by, secrets=secrets))
    if out.json:
        out.document(memory)
    else:
        out.line(f"{memory['id']}  {out.name(memory['path'])}")
    return EXIT_OK


def _configure_tag(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", type=checked_id, help="the id, as `memdir memory list` shows it")
    parser.add_argument("add", metavar="TAG", nargs="*", help="a tag to add, or several with commas")
    parser.add_argument(
        "-r",
        "--remove",
        metavar="TAG",
        action="extend",
        type=tag_list,
        default=[],
        help="a tag to take off, or several with commas",
    )
    add_container(parser)


def _tag(args: argparse.Namespace, out: Output) -> int:
    memories = memories_of(args, out)
    memory = there(lambda: memories.get(args.id))
    tags = [tag for tag in dict.fromkeys([*memory["tags"], *tag_list(",".join(args.add))]) if tag not in args.remove]
    if tags != memory["tags"]:
        memory = there(lambda: memories.edit(args.id, tags=tags))
    if out.json:
        out.document(memory)
    else:
        out.line(visible(", ".join(memory["tags"]) or NONE))
    return EXIT_OK


def _configure_delete(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="+", type=checked_id, help="the ids, as `memdir memory list` shows them")
    add_container(parser)


def _delete(args: argparse.Namespace, out: Output) -> int:
    from memdir.client.light import LightCallError

    memories = memories_of(args, out)
    gone: list[str] = []
    missing: list[str] = []
    for memory_id in args.id:
        try:
            memories.delete(memory_id)
            gone.append(memory_id)
        except LightCallError as error:
            if error.status != 404:
                raise
            missing.append(memory_id)
    if out.json:
        out.document({"deleted": gone, "missing": missing})
    else:
        for memory_id in gone:
            out.line(memory_id)
        for memory_id in missing:
            out.note(f"there is no memory {memory_id}")
    return EXIT_OK if gone and not missing else EXIT_NOTHING


EDIT = Command(
    name="memory edit",
    usage="[OPTIONS] ID [TEXT ...]",
    description=(
        "Change what a memory says, or its project; without TEXT and options in your editor (VISUAL, EDITOR). What it said\n"
        "before stays in the history of its file."
    ),
    examples=[
        (f"memdir memory edit {_ID}", "in your editor"),
        (f"memdir memory edit {_ID} 'Auth uses EdDSA now'", "another text"),
        (f"memdir memory edit {_ID} --move platform", "another project"),
    ],
    exit_codes=[(0, "it was changed"), (1, "the editor changed nothing"), (2, "there is no such memory, or another error")],
    configure=_configure_edit,
    run=_edit,
)

TAG = Command(
    name="memory tag",
    usage="[OPTIONS] ID [TAG ...]",
    description="Add tags to a memory, or take some off. Without tags: show them.",
    examples=[(f"memdir memory tag {_ID} auth backend -r draft", "two more, one less")],
    exit_codes=[(0, "these are its tags"), (2, "there is no such memory, or another error")],
    configure=_configure_tag,
    run=_tag,
)

DELETE = Command(
    name="memory delete",
    usage="[OPTIONS] ID ...",
    description="Delete memories for good: file, record, index and history.",
    examples=[(f"memdir memory delete {_ID}", "one memory")],
    exit_codes=[(0, "all of them are gone"), (1, "some were not there")],
    configure=_configure_delete,
    run=_delete,
)
