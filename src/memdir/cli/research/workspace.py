"""`memdir research status|check|report|export|note|pause DIR`: everything about a research but running it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.text import plural
from memdir.core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output
    from memdir.research.state import State
    from memdir.research.workspace import Workspace

_FORMATS: Final = ("md", "html", "docx", "pdf")


def _dir(parser: Parser) -> None:
    parser.add_argument("dir", metavar="DIR", help="the workspace of a research")


def _opened(args: argparse.Namespace) -> tuple[Workspace, State]:
    from memdir.research.journal import entries
    from memdir.research.state import folded
    from memdir.research.workspace import Workspace

    workspace = Workspace(Path(args.dir))
    state = folded(entries(workspace.root))
    if not state.topic:
        raise NotFoundError(f"there is no research in {args.dir}", hint="memdir research TOPIC --workspace DIR begins one")
    return workspace, state


def _status(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.research.live import lines
    from memdir.research import outline, steering
    from memdir.research.run import summary
    from memdir.research.workspace import INDEX

    workspace, state = _opened(args)
    todos = outline.todos(workspace.read(INDEX) or "")
    if out.json:
        listed = [{"text": todo.text, "status": todo.status} for todo in todos]
        waiting = steering.notes(workspace.root)[len(state.steering) :]
        out.document(summary(state) | {"todos": listed, "notes_waiting": waiting, "actions": state.actions})
    else:
        for line in lines(state, todos, out.style):
            out.line(line)
    return EXIT_OK


def _check(args: argparse.Namespace, out: Output) -> int:
    from memdir.research.archive import Archive
    from memdir.research.checks import Checks
    from memdir.research.journal import entries
    from memdir.research.state import folded
    from memdir.research.workspace import INDEX, Workspace

    workspace = Workspace(Path(args.dir))
    if workspace.read(INDEX) is None:
        raise NotFoundError(f"{args.dir} is no workspace: there is no {INDEX}", hint="see docs/research.md for its files")
    written = folded(entries(workspace.root)).written
    found = Checks(workspace, Archive(workspace)).everything(written=written)
    if out.json:
        out.document({"findings": [one.as_json() for one in found]})
    for one in [] if out.json else found:
        where = out.style(out.name(str(Path(args.dir) / one.path)), "path")
        out.line(f"{where}:{one.line or 1}: {out.name(one.message)} [{one.check}]")
    if found:
        out.note(plural(len(found), "finding"))
    return EXIT_NOTHING if found else EXIT_OK


def _report(args: argparse.Namespace, out: Output) -> int:
    from memdir.research.workspace import REPORT

    workspace, state = _opened(args)
    report = workspace.read(REPORT)
    if report is None:
        out.note(f"no report yet: {state.outcome or 'the research goes on'}")
        return EXIT_NOTHING
    if out.json:
        from memdir.research.run import summary

        out.document(summary(state) | {"report": report})
    else:
        out.line(
            out.raw(report.rstrip("\n")) if not out.is_terminal else "\n".join(map(out.raw, report.rstrip("\n").split("\n")))
        )
    return EXIT_OK


def _configure_export(parser: Parser) -> None:
    _dir(parser)
    parser.add_argument(
        "--format", metavar="FORMAT", choices=_FORMATS, default="html", help=f"{', '.join(_FORMATS)} (default: html)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to; '-' for standard output (default: report.FORMAT here)"
    )
    parser.add_argument("-f", "--force", action="store_true", help="write over a file that is there")


def _export(args: argparse.Namespace, out: Output) -> int:
    from memdir.research.archive import Archive
    from memdir.research.workspace import REPORT

    workspace, state = _opened(args)
    report = workspace.read(REPORT)
    if report is None:
        out.note(f"no report yet: {state.outcome or 'the research goes on'}")
        return EXIT_NOTHING
    data = _made(args.format, report, Archive(workspace), state)
    if args.output == "-":
        sys.stdout.buffer.write(data)
        return EXIT_OK
    target = Path(args.output or f"report.{args.format}")
    if target.exists() and not args.force:
        raise UsageError(f"{target} exists", hint="-o FILE names another, --force writes over it")
    target.write_bytes(data)
    if out.json:
        out.document({"file": str(target), "bytes": len(data)})
    else:
        out.line(out.name(str(target)))
    return EXIT_OK


def _made(kind: str, report: str, archive: Any, state: State) -> bytes:
    from memdir.research import export
    from memdir.research.render import html_report
    from memdir.research.run import summary

    if kind == "html":
        return html_report(report, archive, summary(state)).encode()
    if kind == "md":
        return export.markdown(report, archive).encode()
    return export.docx(report, archive) if kind == "docx" else export.pdf(report, archive)


def _configure_note(parser: Parser) -> None:
    _dir(parser)
    parser.add_argument("text", metavar="TEXT", help="what the agents are to know or do from the next stage on")


def _note(args: argparse.Namespace, out: Output) -> int:
    from memdir.research import steering

    workspace, state = _opened(args)
    steering.add_note(workspace.root, args.text)
    if out.json:
        out.document({"notes": len(steering.notes(workspace.root))})
    else:
        out.note(
            "the research is over; --resume does not read it" if state.outcome else "it is read when the next stage begins"
        )
    return EXIT_OK


def _pause(args: argparse.Namespace, out: Output) -> int:
    from memdir.research import steering

    workspace, state = _opened(args)
    if state.outcome:
        out.note(f"the research is over: {state.outcome}")
        return EXIT_NOTHING
    steering.ask_pause(workspace.root)
    if out.json:
        out.document({"paused": True})
    else:
        out.note(f"it stops before its next answer; `memdir research --resume --workspace {args.dir}` goes on")
    return EXIT_OK


STATUS = Command(
    name="research status",
    usage="DIR",
    description="Show where a research stands: rounds, TODO list, sources, what it spent, and what it did last.",
    examples=(("memdir research status notes/research/lsm-trees", "one look"),),
    exit_codes=((EXIT_OK, "shown"),),
    configure=_dir,
    run=_status,
)
CHECK = Command(
    name="research check",
    usage="DIR",
    description=(
        "Run every check that needs no model: citations lead to lines that exist and hold the numbers, names and quotations of "
        "their sentence; the index equals the folders; names say what is in a file; sources are as they were fetched; the "
        "report has no factual sentence without a citation. Works on any folder of this form, whoever wrote it."
    ),
    examples=(("memdir research check notes/research/lsm-trees", "each finding as FILE:LINE"),),
    exit_codes=((EXIT_OK, "nothing was found wrong"), (EXIT_NOTHING, "there are findings")),
    configure=_dir,
    run=_check,
)
REPORT = Command(
    name="research report",
    usage="DIR",
    description="Print the report of a research as Markdown.",
    examples=(("memdir research report notes/research/lsm-trees | less", "read it"),),
    exit_codes=((EXIT_OK, "printed"), (EXIT_NOTHING, "there is none yet")),
    configure=_dir,
    run=_report,
)
EXPORT = Command(
    name="research export",
    usage="DIR [--format md|html|docx|pdf] [-o FILE]",
    description=(
        "Write a report as a file for others: HTML that stands alone and opens each citation at its lines, Markdown with "
        "footnotes, DOCX or PDF."
    ),
    examples=(
        ("memdir research export notes/research/lsm-trees -o lsm.html", "to send or publish"),
        ("memdir research export notes/research/lsm-trees --format pdf", "report.pdf"),
    ),
    exit_codes=((EXIT_OK, "written"), (EXIT_NOTHING, "there is no report yet")),
    configure=_configure_export,
    run=_export,
)
NOTE = Command(
    name="research note",
    usage="DIR TEXT",
    description="Tell a running research something: it is read when its next stage begins, and comes before everything else.",
    examples=(('memdir research note notes/research/lsm-trees "leave Cassandra out"', "steer it"),),
    exit_codes=((EXIT_OK, "noted"),),
    configure=_configure_note,
    run=_note,
)
PAUSE = Command(
    name="research pause",
    usage="DIR",
    description="Ask a running research to stop before its next paid answer. `memdir research --resume` goes on.",
    examples=(("memdir research pause notes/research/lsm-trees", "stop it"),),
    exit_codes=((EXIT_OK, "asked"), (EXIT_NOTHING, "it is over already")),
    configure=_dir,
    run=_pause,
)
