"""`memdir grep`: ranked lines of a mount, or of a container on the server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.hits import Page
from memdir.cli.text import plural
from memdir.core.errors import NotFoundError, UsageError
from memdir.core.limits import QUERY_MAX_CHARS, SEARCH_LIMIT_MAX

if TYPE_CHECKING:
    from memdir.cli.output import Output
    from memdir.daemon.registry import MountRecord, MountRegistry

_LIMIT_DEFAULT: Final = 10
_WAIT_MS: Final = 2500
_ANSWER_TIMEOUT_S: Final = 60.0
"""How long the search itself may take, on top of the wait."""
_LEFT_OUT_SHOWN: Final = 3


def _configure(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", help="what to look for, in your own words; else the exact text or expression")
    parser.add_argument("path", metavar="PATH", nargs="?", help="a folder or file in a mount (default: the whole memory)")
    parser.add_argument("-k", dest="limit", metavar="N", type=bounded_int(1, SEARCH_LIMIT_MAX), help=_LIMIT_HELP)
    exact = parser.add_mutually_exclusive_group()
    exact.add_argument("-F", "--literal", action="store_true", help="find exact bytes, like grep -rnF, in path order")
    exact.add_argument("-E", "--regex", action="store_true", help="a POSIX extended expression, like grep -rnE, in path order")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="with -F or -E: letters in either case")
    parser.add_argument("-w", "--word-regexp", action="store_true", help="with -F or -E: whole words only")
    parser.add_argument("-l", "--files-with-matches", action="store_true", help="with -F or -E: only the names of the files")
    parser.add_argument(
        "-C", "--context", metavar="N", type=bounded_int(0, _CONTEXT_MAX), help=f"N lines around each hit, up to {_CONTEXT_MAX}"
    )
    parser.add_argument(
        "--budget", metavar="TOKENS", type=bounded_int(1, _BUDGET_MAX), help="the most useful lines that fit so many tokens"
    )
    parser.add_argument("--threshold", metavar="SCORE", type=_score, help="leave out hits below this score, 0 to 1")
    parser.add_argument(
        "--container", metavar="NAME", help="search a memory on the server, mounted or not; PATH is then a path in it"
    )
    parser.add_argument("--no-wait", action="store_true", help="do not wait for fresh changes to become searchable")
    parser.add_argument("--explain", action="store_true", help="show scores, what they are made of, and where the time went")


_CONTEXT_MAX: Final = 100
_BUDGET_MAX: Final = 1_000_000
_LIMIT_HELP: Final = f"at most N results, 1 to {SEARCH_LIMIT_MAX} (default: {_LIMIT_DEFAULT}; with -F or -E {SEARCH_LIMIT_MAX})"


def _score(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= value <= 1:  # also refuses nan
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def _run(args: argparse.Namespace, out: Output) -> int:
    exact = args.literal or args.regex
    _check_query(args.query, literal=args.literal)
    _check_options(args, exact=exact)
    limit = args.limit or (SEARCH_LIMIT_MAX if exact else _LIMIT_DEFAULT)
    if args.container is not None:
        answer, shown = _search_container(args, limit, out)
    else:
        answer, shown = _search_mount(args, limit)
    hits: list[dict[str, Any]] = answer.get("hits") or []
    binary = [shown(str(path)) for path in answer.get("binary") or ()]
    _print_notes(answer, out, full=exact and len(hits) >= limit, limit=limit)
    rows = [_row(hit, shown(str(hit["path"])), explain=args.explain) for hit in hits]
    if args.files_with_matches:
        _print_files([*dict.fromkeys(str(row["path"]) for row in rows), *binary], out)
    elif out.json:
        out.document(rows)
    else:
        Page(out, query=None if exact and args.regex else args.query, context=bool(args.context)).show(
            rows, explain=args.explain
        )
    if not args.files_with_matches:
        for path in binary:
            out.note(f"{path}: binary file matches")
    if args.explain:
        _print_stages(answer, out)
    return EXIT_OK if rows or binary else EXIT_NOTHING


def _print_files(paths: list[str], out: Output) -> None:
    if out.json:
        out.document(paths)
    else:
        for path in paths:
            out.line(out.style(out.name(path), "path"))


def _print_stages(answer: dict[str, Any], out: Output) -> None:
    stages = answer.get("stages_ms") or {}
    parts = [f"{name} {value:.1f}" for name, value in stages.items()]
    out.note(f"took {answer.get('timing_ms') or 0.0:.1f} ms" + (f", of these: {', '.join(parts)}" if parts else ""))


def _check_options(args: argparse.Namespace, *, exact: bool) -> None:
    """UsageError for options that mean nothing together."""
    for given, name in ((args.ignore_case, "-i"), (args.word_regexp, "-w"), (args.files_with_matches, "-l")):
        if given and not exact:
            raise UsageError(f"{name} is for --literal and --regex", hint="a search by meaning knows words in any form")
    for value, name in ((args.context, "--context"), (args.budget, "--budget"), (args.threshold, "--threshold")):
        if value is not None and exact:
            raise UsageError(f"{name} is for a search by meaning", hint="leave out --literal and --regex")


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """What was asked for, in the words of the daemon and the wire."""
    options: dict[str, Any] = {"mode": "literal" if args.literal else "regex" if args.regex else "semantic"}
    if args.explain:
        options["explain"] = True
    wanted = {
        "ignore_case": args.ignore_case,
        "whole_words": args.word_regexp,
        "files_only": args.files_with_matches,
        "context": args.context,
        "budget_tokens": args.budget,
    }
    options |= {name: value for name, value in wanted.items() if value}
    if args.threshold is not None:
        options["threshold"] = args.threshold
    return options


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
            wait_ms=wait_ms,
            **_options(args),
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
        wait_ms=0 if args.no_wait else _WAIT_MS,
        options=_options(args),
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
    if hit.get("matched"):
        row["matched"] = hit["matched"]
    if explain:
        row["signals"] = hit.get("signals") or {}
        row["why"] = hit.get("why")
    return row


def _print_notes(answer: dict[str, Any], out: Output, *, full: bool, limit: int) -> None:
    if answer.get("note"):
        out.note(str(answer["note"]))
    elif answer.get("pending"):
        count = len(answer["pending"])
        if count == 1:
            out.note("1 file is not searchable by meaning yet and was searched by words only")
        else:
            out.note(f"{count} files are not searchable by meaning yet and were searched by words only")
    left_out = answer.get("left_out")
    if left_out and left_out.get("count"):
        named = [str(path) for path in left_out.get("paths") or ()]
        some = f", in {', '.join(named[:_LEFT_OUT_SHOWN])}{' …' if len(named) > _LEFT_OUT_SHOWN else ''}" if named else ""
        out.note(f"about {answer.get('tokens')} tokens; {plural(left_out['count'], 'hit')} did not fit the budget{some}")
    if full:
        out.note(f"these are the first {limit} matches, there may be more")


COMMAND = Command(
    name="grep",
    usage="[OPTIONS] QUERY [PATH]",
    description=(
        "Search the files of a memory by meaning; best lines first, as path:line:text.\n"
        "What was written a moment ago is found too: changes under PATH are pushed first, and waited for.\n"
        "--literal and --regex give what grep -F and grep -E give, and read only files that can match. Expressions are POSIX\n"
        "extended with \\w \\W \\s \\S \\b \\B \\< \\>, without back-references; no expression can make the search hang."
    ),
    examples=[
        ('memdir grep "why did we leave the old supplier"', "in the mount around you, or the only one"),
        ('memdir grep -k 3 "flight to Oslo" notes/mail', "in one folder, three results"),
        ('memdir grep -C 2 --budget 2000 "parser decisions"', "lines around, about 2,000 tokens at most"),
        ('memdir grep --literal "TODO(" notes', "exact bytes, like grep -rnF"),
        ("memdir grep -E -i 'fix(me|ed) +#[0-9]+'", "a regular expression, in either case"),
        ('memdir grep --container notes "renewal date" --json', "without a mount, for programs"),
    ],
    exit_codes=[(0, "something was found"), (1, "nothing was found")],
    configure=_configure,
    run=_run,
)
