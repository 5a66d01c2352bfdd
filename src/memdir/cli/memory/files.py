"""`memdir memory export` and `memdir memory import`: an agent's memories as a file."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.memory.captured import SOURCES, take_captured
from memdir.cli.memory.options import add_container, memories_of, project_name, told_project
from memdir.cli.text import plural
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.agents.portable.item import Left
    from memdir.agents.portable.moving import Looked, Taken
    from memdir.agents.service import Memory
    from memdir.cli.output import Output

FORMS: Final = ("json", "markdown")
_SUFFIXES: Final = {".json": "json", ".md": "markdown", ".markdown": "markdown"}
_FROM: Final = ("memdir", "mcp-memory", "mem0", "basic-memory", "claude-mem")
_MANY: Final = "memories"


def form_of(file: str) -> str | None:
    """What a file's name says of its form."""
    return _SUFFIXES.get(Path(file).suffix.lower())


# --- export ------------------------------------------------------------------------------------------------------------


def _configure_export(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", default="-", help="where to write (default: standard output)")
    parser.add_argument("--format", choices=FORMS, help="default: what FILE ends in, else json")
    parser.add_argument("--project", metavar="NAME", type=project_name, help="only those of one project ('-': of none)")
    parser.add_argument("--tag", metavar="TAG", help="only those with this tag")
    add_container(parser)
    parser.add_argument("--force", action="store_true", help="replace FILE when it exists")


def export(args: argparse.Namespace, out: Output) -> int:
    """Write memories; `args` as `memdir memory export` has them."""
    from memdir.agents.portable import ours
    from memdir.cli.output import Progress
    from memdir.cli.target_file import check_target, write_target

    form = args.format or form_of(args.file) or "json"
    to_stdout = args.file == "-"
    if to_stdout and out.json and form != "json":
        raise UsageError("--json and Markdown on standard output do not go together", hint="give a FILE")
    check_target(args.file, force=args.force)
    server = memories_of(args, out)
    container = server.container
    memories = server.all(project=told_project(args.project), tag=args.tag, oldest_first=True)
    first = next(memories, None)  # what is wrong with the server is known before there is a file
    count = 0
    with Progress("exporting", noun="memory", many=_MANY) as progress:

        def counted() -> Iterator[Memory]:
            nonlocal count
            for memory in chain([first] if first is not None else [], memories):
                count += 1
                progress.update(count)
                yield memory

        write = ours.write_json if form == "json" else ours.write_markdown
        now = datetime.now(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
        pieces = (piece.encode() for piece in write(counted(), container=container, exported_at=now))
        size_bytes = write_target(args.file, pieces)
    if out.json and not to_stdout:
        out.document({"container": container, "file": args.file, "format": form, "memories": count, "size_bytes": size_bytes})
    elif not to_stdout or not count:
        out.note(f"{container}: {plural(count, 'memory', _MANY)} written" + ("" if to_stdout else f" to {args.file}"))
    return EXIT_OK if count else EXIT_NOTHING


EXPORT: Final = Command(
    name="memory export",
    usage="[OPTIONS] [FILE]",
    description=(
        "Write an agent's memories into one file: JSON with a version, or Markdown that people read. `memdir memory import`\n"
        "takes both back, with times, tags and projects. The file is readable by you only. `memdir export [FILE]` is the same."
    ),
    examples=[
        ("memdir memory export memories.json", "everything"),
        ("memdir memory export memories.md --project my-saas", "one project, to be read"),
        ("memdir memory export | jq '.memories[].content'", "on standard output"),
    ],
    exit_codes=[(0, "written"), (1, "there is no such memory; the file says so, too")],
    configure=_configure_export,
    run=export,
)


# --- import ------------------------------------------------------------------------------------------------------------


def _configure_import(parser: Parser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?",
        help="a file, a folder or zip of notes, - for standard input; with --from a host its transcripts (default: where it "
        "keeps them), with --from guides, adr or git the folder of a project (default: this one)",
    )  # fmt: skip
    parser.add_argument("--from", dest="form", choices=(*_FROM, *SOURCES), help="what it is (default: it is found out)")
    parser.add_argument("--keep", action="store_true", help="keep what sessions and projects say at once, not in the inbox")
    parser.add_argument("--project", metavar="NAME", type=project_name, help="of memories that name none")
    add_container(parser)
    parser.add_argument(
        "--secrets", choices=("redact", "refuse"), default="redact", help="what becomes of a secret (default: redact)"
    )
    parser.add_argument("--skip-bad", action="store_true", help="leave entries out that are no memories (default: refuse all)")
    parser.add_argument("--dry-run", action="store_true", help="look at the file and say what is in it; import nothing")


def take(args: argparse.Namespace, out: Output) -> int:
    """Read a file twice: first to know that it is sound, then to send it. `args` as `memdir memory import` has them."""
    if args.form in SOURCES:
        return take_captured(args, out)
    if args.file is None:
        raise UsageError("there is no FILE to import", hint="name one, or a source: --from claude-code, --from git")
    from memdir.agents.portable.item import Left, PortableError
    from memdir.agents.portable.moving import imported, looked_at
    from memdir.agents.portable.reading import read
    from memdir.agents.service import agent_container
    from memdir.cli.output import Progress

    with _spooled(args.file) as path:
        left = Left()
        with Progress("reading", noun="memory", many=_MANY) as progress:
            looked = looked_at(read(path, left, form=args.form), progress.update)
        if looked.bad and not args.skip_bad:
            others = f" (and {looked.bad - 1:,} more)" if looked.bad > 1 else ""
            raise PortableError(
                f"nothing was imported: {args.file}: {looked.first_bad[0]}{others}",
                hint="--skip-bad imports the rest; --dry-run --skip-bad lists what is wrong",
            )
        taken = None
        if looked.items and not args.dry_run:
            with Progress("importing", noun="memory", many=_MANY) as progress:
                taken = imported(
                    memories_of(args, out), read(path, Left(), form=args.form), project=told_project(args.project) or None,
                    secrets=args.secrets, told=lambda so_far: progress.update(so_far.sent, looked.items),
                )  # fmt: skip
    _report(agent_container(args.container), looked, left, taken, args, out)
    done = looked.items and not looked.bad and not (taken is not None and taken.refused)
    return EXIT_OK if done else EXIT_NOTHING


def _report(container: str, looked: Looked, left: Left, taken: Taken | None, args: argparse.Namespace, out: Output) -> None:
    if out.json:
        out.document({
            "container": container, "file": args.file, "dry_run": args.dry_run, "memories": looked.items,
            "created": taken.created if taken else 0, "duplicates": taken.duplicates if taken else 0,
            "refused": taken.refused if taken else [], "bad": looked.bad, "first_bad": list(looked.first_bad),
            "left_out": left.counts,
        })  # fmt: skip
        return
    for why in (*looked.first_bad, *(taken.refused if taken else ())):
        out.note(why)
    if looked.bad > len(looked.first_bad):
        out.note(f"and {looked.bad - len(looked.first_bad):,} more that are no memories")
    if left.counts:
        out.note("left out: " + ", ".join(f"{what} ({count:,})" for what, count in sorted(left.counts.items())))
    if taken is None:
        out.line(f"{args.file}: {plural(looked.items, 'memory', _MANY)}" + (", nothing imported" if args.dry_run else ""))
        return
    counts = [(taken.created, "new"), (taken.duplicates, "there already"), (len(taken.refused), "refused"), (looked.bad, "bad")]
    out.line(f"{container}: " + (", ".join(f"{count:,} {what}" for count, what in counts if count) or "nothing to do"))


@contextmanager
def _spooled(file: str) -> Iterator[Path]:
    """A path that can be read twice; standard input goes into a file that is gone afterwards."""
    if file != "-":
        if not os.path.exists(file):
            raise UsageError(f"there is no {file}", hint="give a file, a folder or zip of notes, or - for standard input")
        yield Path(file)
        return
    with tempfile.NamedTemporaryFile(prefix="memdir-import-") as target:
        shutil.copyfileobj(sys.stdin.buffer, target)
        target.flush()
        yield Path(target.name)


IMPORT: Final = Command(
    name="memory import",
    usage="[OPTIONS] [FILE]",
    description=(
        "Take memories over from a file: one that `memdir memory export` wrote, the file of the reference MCP memory server,\n"
        "what mem0's get_all answered and OpenMemory's backup, basic-memory's notes, claude-mem's export. The whole file is\n"
        "looked at first, and nothing is imported when an entry of it is no memory. What is there already is passed over, so\n"
        "an import may be repeated. `memdir import FILE` is the same.\n"
        "\n"
        "Or find what a later session should know in past sessions (--from claude-code, codex, gemini; of Claude Code\n"
        "also what it remembers of each project, `projects/*/memory/*.md`), in a project's guide files (guides), decision\n"
        "records (adr) and commits that say why (git): by rules, into an inbox that no prompt is given anything of before you\n"
        "keep it (`memdir memory review`) or it is said again in another session."
    ),
    examples=[
        ("memdir memory import memories.json", "from another machine"),
        ("memdir memory import ~/.memory.jsonl --project my-saas", "the reference server's file, into a project"),
        ("memdir memory import --from claude-code --dry-run", "what all sessions would bring"),
        ("memdir memory import --from git ~/src/shop", "commits of a project that say why"),
        ("memdir memory import ~/basic-memory --dry-run", "a folder of notes: what would be taken"),
    ],
    exit_codes=[(0, "everything is there"), (1, "nothing was in it, or some entries were refused")],
    configure=_configure_import,
    run=take,
)
