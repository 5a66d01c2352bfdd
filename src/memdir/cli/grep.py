"""`memdir grep`: ranked lines of a mount, or of a container on the server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.text import one_line, shortened
from memdir.core.errors import NotFoundError, UsageError
from memdir.core.limits import QUERY_MAX_CHARS, SEARCH_LIMIT_MAX

if TYPE_CHECKING:
    from memdir.cli.output import Output
    from memdir.daemon.registry import MountRecord, MountRegistry

_LIMIT_DEFAULT: Final = 10
_WAIT_MS: Final = 2500
_ANSWER_TIMEOUT_S: Final = 60.0
"""How long the search itself may take, on top of the wait."""
_TERMINAL_TEXT_MAX_CHARS: Final = 240


def _configure(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", help="what to look for, in your own words; with --literal the exact text")
    parser.add_argument("path", metavar="PATH", nargs="?", help="a folder or file in a mount (default: the whole memory)")
    parser.add_argument("-k", dest="limit", metavar="N", type=bounded_int(1, SEARCH_LIMIT_MAX), help=_LIMIT_HELP)
    parser.add_argument("--literal", action="store_true", help="find exact bytes, like grep -rnF, in path order")
    parser.add_argument(
        "--container", metavar="NAME", help="search a memory on the server, mounted or not; PATH is then a path in it"
    )
    parser.add_argument("--no-wait", action="store_true", help="do not wait for fresh changes to become searchable")
    parser.add_argument("--explain", action="store_true", help="show scores, and the signals they were made of")


_LIMIT_HELP: Final = (
    f"at most N results, 1 to {SEARCH_LIMIT_MAX} (default: {_LIMIT_DEFAULT}; with --literal {SEARCH_LIMIT_MAX})"
)


def _run(args: argparse.Namespace, out: Output) -> int:
    _check_query(args.query, literal=args.literal)
    limit = args.limit or (SEARCH_LIMIT_MAX if args.literal else _LIMIT_DEFAULT)
    if args.container is not None:
        answer, shown = _search_container(args, limit, out)
    else:
        answer, shown = _search_mount(args, limit)
    hits: list[dict[str, Any]] = answer.get("hits") or []
    _print_notes(answer, out, full=args.literal and len(hits) >= limit, limit=limit)
    rows = [_row(hit, shown(str(hit["path"])), explain=args.explain) for hit in hits]
    if out.json:
        out.document(rows)
    else:
        for row in rows:
            _print_row(row, out, explain=args.explain)
    return EXIT_OK if rows else EXIT_NOTHING


def _check_query(query: str, *, literal: bool) -> None:
    if not query or (not literal and not query.strip()):
        raise UsageError("the query is empty", hint='for example: memdir grep "what did we decide about the launch"')
    if len(query) > QUERY_MAX_CHARS:
        raise UsageError(f"the query has {len(query)} characters, at most {QUERY_MAX_CHARS} are allowed")
    if not literal and any("\ud800" <= character <= "\udfff" for character in query):
        raise UsageError("the query is not valid UTF-8", hint="use --literal to look for raw bytes")


def _search_mount(args: argparse.Namespace, limit: int) -> tuple[dict[str, Any], Callable[[str], str]]:
    from memdir.cli.targets import control, open_registry

    registry = open_registry()
    record, inside = _resolve(registry, args.path)
    wait_ms = 0 if args.no_wait else _WAIT_MS

    def ask(scope: str) -> dict[str, Any]:
        return control(record).call(
            "grep",
            wait_ms / 1000 + _ANSWER_TIMEOUT_S,
            q=args.query,
            path=scope,
            limit=limit,
            mode="literal" if args.literal else "semantic",
            explain=args.explain,
            wait_ms=wait_ms,
        )

    answer = ask(inside)
    if not answer.get("hits") and args.path is not None:
        followed = _follow(registry, record, args.path, inside)
        if followed != inside:
            inside, answer = followed, ask(followed)
    return answer, _namer(record, args.path, inside)


def _resolve(registry: MountRegistry, path: str | None) -> tuple[MountRecord, str]:
    """The running mount and the scope in it."""
    from pathlib import Path

    from memdir.cli.targets import current_folder, describe_mounts, find_mount, require_running

    if path == "":
        raise UsageError("the path is empty", hint="leave it out to search the whole memory")
    if path is None:
        return require_running(find_mount(registry, None)), "/"
    absolute = Path(path) if path.startswith("/") else Path(current_folder(), path)
    found = registry.find_by_path(absolute)
    if found is None:
        raise UsageError(
            f"{path} is not inside a mounted memory",
            hint=f"give a path in a mount, or use --container NAME; {describe_mounts(registry)}",
        )
    require_running(found[0])
    return found


def _follow(registry: MountRegistry, record: MountRecord, path: str, inside: str) -> str:
    """Nothing was found: tell a missing path from an empty result, and follow symlinks inside the mount."""
    from pathlib import Path

    full = record.path.rstrip("/") + inside
    try:
        resolved = os.path.realpath(full, strict=True)
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    found = registry.find_by_path(Path(resolved))
    if found is None or found[0].id != record.id:
        raise UsageError(f"{path} is a link that leads out of the mount, to {resolved}", hint="search the folder it leads to")
    return found[1]


def _namer(record: MountRecord, given: str | None, inside: str) -> Callable[[str], str]:
    """How paths in the mount are shown: relative to the current directory when that is inside the mount; else below the path
    that was given, or absolute."""
    from pathlib import Path

    from memdir.cli.targets import current_folder
    from memdir.daemon.registry import resolve_outside

    root = record.path.rstrip("/")
    here = resolve_outside(Path(current_folder()), {record.path})
    if here == record.path or here.startswith(root + "/"):
        return lambda path: os.path.relpath(root + path, here)
    if given is None:
        return lambda path: root + path
    base = given.rstrip("/")

    def below_given(path: str) -> str:
        if path == inside:
            return base
        below = path[len(inside.rstrip("/")) :] if path.startswith(inside.rstrip("/") + "/") else None
        return base + below if below is not None else root + path

    return below_given


def _search_container(args: argparse.Namespace, limit: int, out: Output) -> tuple[dict[str, Any], Callable[[str], str]]:
    from memdir.cli.remote import search_container
    from memdir.cli.targets import check_container_name
    from memdir.fs.path import checked

    name = check_container_name(args.container)
    answer = search_container(
        name,
        query=args.query,
        scope=checked(args.path or "/"),
        limit=limit,
        literal=args.literal,
        explain=args.explain,
        wait_ms=0 if args.no_wait else _WAIT_MS,
        note=out.note,
    )
    return answer, lambda path: path


def _row(hit: dict[str, Any], path: str, *, explain: bool) -> dict[str, Any]:
    row = {
        "path": path,
        "start_line": hit["start_line"],
        "end_line": hit["end_line"],
        "text": hit["text"],
        "score": hit["score"],
        "kind": hit["kind"],
        "document_id": hit.get("document_id"),
    }
    if explain:
        row["signals"] = hit.get("signals") or {}
    return row


def _print_row(row: dict[str, Any], out: Output, *, explain: bool) -> None:
    first, last = row["start_line"], row["end_line"]
    lines = f"{first}" if last <= first else f"{first}-{last}"
    text = one_line(row["text"])
    if out.is_terminal:
        text = shortened(text, _TERMINAL_TEXT_MAX_CHARS)
    out.line(f"{out.style(out.name(row['path']), 'path')}:{out.style(lines, 'line')}:{text}")
    if explain:
        signals = " ".join(f"{name}={value:.3f}" for name, value in sorted(row["signals"].items()))
        out.line(out.style(f"    {row['kind']} score={row['score']:.3f} {signals}".rstrip(), "dim"))


def _print_notes(answer: dict[str, Any], out: Output, *, full: bool, limit: int) -> None:
    if answer.get("note"):
        out.note(str(answer["note"]))
    elif answer.get("pending"):
        count = len(answer["pending"])
        if count == 1:
            out.note("1 file is not searchable by meaning yet and was searched by words only")
        else:
            out.note(f"{count} files are not searchable by meaning yet and were searched by words only")
    if full:
        out.note(f"these are the first {limit} matches, there may be more")


COMMAND = Command(
    name="grep",
    usage="[OPTIONS] QUERY [PATH]",
    description=(
        "Search the files of a memory by meaning; best lines first, as path:line:text.\n"
        "What was written a moment ago is found too: changes under PATH are pushed first, and waited for."
    ),
    examples=[
        ('memdir grep "why did we leave the old supplier"', "in the mount around you, or the only one"),
        ('memdir grep -k 3 "flight to Oslo" notes/mail', "in one folder, three results"),
        ('memdir grep --literal "TODO(" notes', "exact bytes, like grep -rnF"),
        ('memdir grep --container notes "renewal date" --json', "without a mount, for programs"),
    ],
    exit_codes=[(0, "something was found"), (1, "nothing was found")],
    configure=_configure,
    run=_run,
)
