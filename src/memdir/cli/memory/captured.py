"""`memdir memory import --from claude-code|codex|gemini|guides|adr|git`: what sessions, guide files, decision records and
commits say, into the inbox."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK
from memdir.cli.memory.options import chosen_project, memories_of, told_project
from memdir.cli.text import plural, visible
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.agents.capture.run import Captured
    from memdir.agents.capture.sources import Found
    from memdir.agents.service import AgentMemories
    from memdir.cli.output import Output
    from memdir.memory.agent_sessions import Candidate

HOSTS: Final = ("claude-code", "codex", "gemini")
SOURCES: Final = (*HOSTS, "guides", "adr", "git")
_PLACES: Final = {
    "claude-code": ("CLAUDE_CONFIG_DIR", "~/.claude", "projects/**/*.jsonl"),
    "codex": ("CODEX_HOME", "~/.codex", "sessions/**/rollout-*.jsonl"),
    "gemini": ("GEMINI_CLI_HOME", "~/.gemini", "tmp/*/chats/*.json*"),
}
_MANY: Final = "memories"


def take_captured(args: argparse.Namespace, out: Output) -> int:
    """`args` as `memdir memory import` has them, with a `form` of SOURCES."""
    if args.form in HOSTS:
        found, captured = _sessions(args, out)
    else:
        found, captured = _project(args, out)
    if out.json:
        out.document({
            "from": args.form, "dry_run": args.dry_run, "found": [{"kind": one.kind, "content": one.content} for one in found],
            "created": captured.created, "kept": captured.kept, "refused": list(captured.refused),
        })  # fmt: skip
        return EXIT_OK if found else EXIT_NOTHING
    for one in found:
        out.line(f"{one.kind}: {visible(one.content)}")
    for why in captured.refused:
        out.note(why)
    if args.dry_run or not found:
        out.note(plural(len(found), "memory", _MANY) + (", nothing imported" if args.dry_run else ""))
    else:
        known = len(found) - captured.created - captured.kept - len(captured.refused)
        into = "new" if args.keep else "in the inbox: `memdir memory review`"
        said = [(captured.created, into), (captured.kept, "said before, and kept"), (known, "there already")]
        out.note(", ".join(f"{count} {what}" for count, what in said if count) or "nothing new")
    return EXIT_OK if found else EXIT_NOTHING


def _sessions(args: argparse.Namespace, out: Output) -> tuple[list[Candidate], Captured]:
    from memdir.agents.capture.candidates import candidates
    from memdir.agents.capture.run import Captured, capture
    from memdir.agents.capture.transcripts import read_transcript
    from memdir.cli.output import Progress
    from memdir.core.errors import BusyError
    from memdir.core.paths import app_paths

    files = list(_transcripts(args))
    found: list[Candidate] = []
    result = Captured()
    memories = None if args.dry_run else memories_of(args, out)
    state = app_paths().state_dir
    with Progress("reading", noun="session") as progress:
        for number, file in enumerate(files, 1):
            if memories is None:
                found += candidates(read_transcript(file).turns)
            else:
                try:
                    captured, some = capture(memories, file, state=state, keep=args.keep)
                except BusyError as error:
                    out.note(error.message)
                    continue
                found += some
                result += captured
            progress.update(number, len(files))
    if args.form == "claude-code":
        for folder in _memory_folders(args):
            some, captured = _host_memories(folder, memories, args, out)
            found += some
            result += captured
    return found, result


def _host_memories(
    folder: Path, memories: AgentMemories | None, args: argparse.Namespace, out: Output
) -> tuple[list[Candidate], Captured]:
    """What Claude Code remembers of a project; the project is that of its last session."""
    from memdir.agents.capture.run import Captured, project_folder, propose
    from memdir.agents.capture.sources import host_memories
    from memdir.agents.capture.transcripts import read_transcript

    told = list(host_memories(folder))
    if memories is None or not told:
        return [one.candidate for one in told], Captured()
    sessions = sorted(folder.parent.glob("*.jsonl"))[-1:]
    cwd = read_transcript(sessions[0]).cwd if sessions else None
    if cwd is None:
        out.note(f"{folder}: of which project is not known, as no session of it is there; only preferences are taken")
        told = [one for one in told if one.candidate.kind == "preference"]
    project = None if cwd is None else project_folder(memories, cwd)
    return [one.candidate for one in told], propose(memories, told, source=args.form, project=project, keep=args.keep)


def _transcripts(args: argparse.Namespace) -> Iterator[Path]:
    """The file or the folder that is named; else where the host keeps all of them."""
    pattern = _PLACES[args.form][2]
    if args.file is None:
        yield from sorted(_home_of(args.form).glob(pattern))
        return
    place = Path(args.file)
    if not place.exists():
        raise UsageError(f"there is no {args.file}", hint="give a transcript, or a folder of them")
    yield from sorted(place.rglob(pattern.rpartition("/")[2])) if place.is_dir() else [place]


def _home_of(form: str) -> Path:
    """Where a host keeps what it writes."""
    variable, usual, _ = _PLACES[form]
    return Path(os.environ.get(variable, "") or usual).expanduser()


def _memory_folders(args: argparse.Namespace) -> Iterator[Path]:
    """Where Claude Code keeps what it remembers of projects."""
    if args.file is None:
        yield from sorted(_home_of(args.form).glob("projects/*/memory"))
    elif Path(args.file).is_dir():
        yield from sorted(Path(args.file).rglob("memory"))


def _project(args: argparse.Namespace, out: Output) -> tuple[list[Candidate], Captured]:
    from memdir.agents.capture import sources
    from memdir.agents.capture.run import Captured, project_folder, propose

    root = Path(args.file or ".").resolve()
    if not root.is_dir():
        raise UsageError(f"{args.file} is no folder", hint="give the folder of a project")
    read = {"guides": sources.guides, "adr": sources.decisions, "git": sources.commits}[args.form]
    found: list[Found] = list(read(root))
    some = [one.candidate for one in found]
    if args.dry_run or not found:
        return some, Captured(found=len(found))
    memories = memories_of(args, out)
    if args.project is not None:
        project = told_project(args.project) or None
    else:
        project = project_folder(memories, str(root)) if args.file else chosen_project(args, memories, remember=True)
    return some, propose(memories, found, source=args.form, project=project, keep=args.keep)
