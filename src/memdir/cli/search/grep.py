"""`memdir grep`: ranked lines of mounts, or of a container on the server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_ERROR, EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.search.hits import Page
from memdir.cli.text import plural
from memdir.core.errors import MemdirError, UsageError
from memdir.core.limits import (
    EXACT_LIMIT_MAX,
    EXACT_LINE_MAX_BYTES,
    INT64_MAX,
    QUERY_MAX_CHARS,
    SEARCH_LIMIT_MAX,
    SEARCH_PENDING_MAX,
)
from memdir.core.patterns.whole_words import check_texts

if TYPE_CHECKING:
    from memdir.cli.output import Output
    from memdir.cli.search.grep_places import Place

_LIMIT_DEFAULT: Final = 10
_WAIT_MS: Final = 2500
_NEAREST: Final = 5
"""Hits that are shown when none is sure enough."""
_ANSWER_TIMEOUT_S: Final = 60.0
"""How long the search itself may take, on top of the wait."""
_LEFT_OUT_SHOWN: Final = 3
_CONTEXT_MAX: Final = 100
_BUDGET_MAX: Final = 1_000_000
_LIMIT_HELP: Final = (
    f"at most N results, 1 to {SEARCH_LIMIT_MAX} (default: {_LIMIT_DEFAULT}); with -F or -E lines, up to {EXACT_LIMIT_MAX:,} "
    f"(default: {SEARCH_LIMIT_MAX}, with -l or -c {EXACT_LIMIT_MAX:,})"
)


class _GrepParser(Parser):
    """Options and words in any order, and `-e` takes what begins with a dash, as people know it of grep."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        given = list(args or ())
        words: list[str] = []
        at = 0
        while at < len(given):
            if given[at] == "--":
                given, words = given[:at], given[at + 1 :]
            elif given[at] in ("-e", "--regexp") and at + 1 < len(given):
                given[at : at + 2] = [f"--regexp={given[at + 1]}"]
            at += 1
        parsed: argparse.Namespace = self.parse_intermixed_args(given, namespace)
        parsed.words = [*parsed.words, *words]
        return parsed


def _configure(parser: Parser) -> None:
    add = parser.add_argument
    add("words", metavar="QUERY [PATH...]", nargs="*", help=_WORDS_HELP)
    add("-k", dest="limit", metavar="N", type=bounded_int(1, EXACT_LIMIT_MAX), help=_LIMIT_HELP)
    exact = parser.add_mutually_exclusive_group()
    exact.add_argument("-F", "--literal", action="store_true", help="find exact bytes, like grep -rnF, in path order")
    exact.add_argument("-E", "--regex", action="store_true", help="a POSIX extended expression, like grep -rnE, in path order")
    add("-e", "--regexp", metavar="QUERY", action="append", help="a query that may begin with -; with -F or -E several")
    add("-i", "--ignore-case", action="store_true", help="with -F or -E, as all up to -m: letters in either case")
    add("-w", "--word-regexp", action="store_true", help="whole words only")
    add("-v", "--invert-match", action="store_true", help="the lines that do not match")
    add("-o", "--only-matching", action="store_true", help="the matches themselves, each on a line")
    add("-c", "--count", action="store_true", help="how many lines of each file match")
    add("-l", "--files-with-matches", action="store_true", help="only the names of the files")
    add("-h", "--no-filename", action="store_true", help="no names of files; alone: this help")
    add("-A", "--after-context", metavar="N", type=_CONTEXT, help=f"N lines after each, up to {_CONTEXT_MAX}")
    add("-B", "--before-context", metavar="N", type=_CONTEXT, help="N lines before each")
    add("-m", "--max-count", metavar="N", type=bounded_int(1, INT64_MAX), help="at most N lines of each file")
    add("-C", "--context", metavar="N", type=_CONTEXT, help=f"N lines around each hit, up to {_CONTEXT_MAX}")
    add("-n", "-r", "-H", dest="_always", action="store_true", help="line numbers, folders, names: always so")
    add("--budget", metavar="TOKENS", type=bounded_int(1, _BUDGET_MAX), help="the most useful lines that fit so many tokens")
    add("--containing", metavar="TEXT", action="append", default=[], help=_CONTAINING_HELP)
    add("--threshold", metavar="SCORE", type=_score, help="leave out hits below this score, 0 to 1")
    add("--rerank", action="store_true", help="the best 50 in the order of the reranker that the server was given")
    add("--container", metavar="NAME", help="search a memory on the server, mounted or not; PATHs are then paths in it")
    add("--no-wait", action="store_true", help="do not wait for fresh changes to become searchable")
    add("--explain", action="store_true", help="show scores, what they are made of, and where the time went")


_CONTAINING_HELP: Final = (
    "only lines that hold TEXT (a name, a number) as whole words, in any case, or stand under a heading that does; given "
    "several times: that hold all"
)
_CONTEXT: Final = bounded_int(0, _CONTEXT_MAX)
_WORDS_HELP: Final = (
    "what to look for, in your own words; else the exact text or expression; then folders and files in mounts (default: the "
    "whole memory)"
)


def _score(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= value <= 1:  # also refuses nan
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def _run(args: argparse.Namespace, out: Output) -> int:
    if args.no_filename and not args.words and not args.regexp:
        COMMAND.parser().print_help()
        return EXIT_OK
    query, paths = _query_and_paths(args)
    exact = args.literal or args.regex
    _check_query(query, exact=exact, literal=args.literal)
    _check_options(args, exact=exact)
    names_only = args.files_with_matches or args.count
    limit = args.limit or (_LIMIT_DEFAULT if not exact else EXACT_LIMIT_MAX if names_only else SEARCH_LIMIT_MAX)
    found = _Found(explain=args.explain)
    if args.container is not None:
        _search_container(args, query, paths, limit, found, out)
    else:
        _search_mounts(args, query, paths, limit, found, out)
    rows = found.best(limit, ranked=not exact)
    _print_notes(found, out)
    if exact and not names_only:
        _print_bounds(rows, limit, out)
    if args.files_with_matches:
        _print_names([*dict.fromkeys(str(row["path"]) for row in rows), *found.binary], limit, out, exact=exact)
    elif args.count:
        _print_counts(found.counts, out, names=not args.no_filename)
    elif out.json:
        out.document([{**row, "text": _as_utf8(row["text"])} for row in rows] if exact else rows)
    else:
        around = any(value is not None for value in (args.context, args.before_context, args.after_context))
        page = Page(out, query=None if args.regex else query, context=around, raw=exact, names=not args.no_filename)
        page.show(rows, explain=args.explain)
        for row in rows:
            if row.get("alike"):
                others = plural(int(row["alike"]), "other file says", "other files say")
                out.note(f"{row['path']}:{row['start_line']}: {others} the same")
    if not args.files_with_matches:
        for path in found.binary:
            out.note(f"{path}: binary file matches")
    if args.explain:
        for answer in found.answers:
            _print_stages(answer, out)
    if found.failed:
        return EXIT_ERROR
    return EXIT_OK if rows or found.binary or any(count for _, count in found.counts) else EXIT_NOTHING


class _Found:
    """The answers of all mounts that were asked, under the names that are shown."""

    def __init__(self, *, explain: bool) -> None:
        self._explain = explain
        self._rows: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.binary: list[str] = []
        self.counts: list[tuple[str, int]] = []
        self.failed = False
        """Whether a path could not be searched."""

    def add(self, answer: dict[str, Any], shown: Callable[[str], str]) -> None:
        self.answers.append(answer)
        self._rows += [_row(hit, shown(str(hit["path"])), explain=self._explain) for hit in answer.get("hits") or ()]
        self.binary += [shown(str(path)) for path in answer.get("binary") or ()]
        self.counts += [(shown(str(path)), int(count)) for path, count in answer.get("counts") or ()]

    def best(self, limit: int, *, ranked: bool) -> list[dict[str, Any]]:
        if ranked and len(self.answers) > 1:
            self._rows.sort(key=lambda row: -float(row["score"]))
        return self._rows[:limit]


def _print_names(paths: list[str], limit: int, out: Output, *, exact: bool) -> None:
    if exact:
        _print_bound(len(paths), limit, "files", out)
    if out.json:
        out.document(paths[:limit])
    else:
        for path in paths[:limit]:
            out.line(out.style(out.raw(path), "path"))


def _print_counts(counts: Iterable[tuple[str, int]], out: Output, *, names: bool) -> None:
    if out.json:
        out.document([{"path": path, "count": count} for path, count in counts])
    else:
        for path, count in counts:
            out.line(f"{out.style(out.raw(path), 'path')}:{count}" if names else str(count))


def _print_stages(answer: dict[str, Any], out: Output) -> None:
    stages = answer.get("stages_ms") or {}
    parts = [f"{name} {value:.1f}" for name, value in stages.items()]
    out.note(f"took {answer.get('timing_ms') or 0.0:.1f} ms" + (f", of these: {', '.join(parts)}" if parts else ""))


def _query_and_paths(args: argparse.Namespace) -> tuple[str, list[str]]:
    if args.regexp is None:
        if not args.words:
            raise UsageError("the following arguments are required: QUERY", hint="see `memdir grep --help`")
        return args.words[0], args.words[1:]
    if len(args.regexp) > 1 and not (args.literal or args.regex):
        raise UsageError("several -e are for --literal and --regex", hint="a search by meaning takes one question")
    return "\n".join(args.regexp), args.words


_EXAMPLE: Final = 'for example: memdir grep "what did we decide about the launch"'
_EXACT_ONLY: Final = (
    ("ignore_case", "-i"),
    ("word_regexp", "-w"),
    ("invert_match", "-v"),
    ("only_matching", "-o"),
    ("count", "-c"),
    ("files_with_matches", "-l"),
    ("after_context", "-A"),
    ("before_context", "-B"),
    ("max_count", "-m"),
)


def _check_options(args: argparse.Namespace, *, exact: bool) -> None:
    """UsageError for options that mean nothing together."""
    given = [name for field, name in _EXACT_ONLY if getattr(args, field) not in (None, False)]
    if given and not exact:
        hint = "-C shows lines around" if given[0] in ("-A", "-B") else "a search by meaning knows words in any form"
        raise UsageError(f"{given[0]} is for --literal and --regex", hint=hint)
    meaning = (("containing", "--containing"), ("budget", "--budget"), ("threshold", "--threshold"), ("rerank", "--rerank"))
    for field, name in meaning:
        if exact and getattr(args, field) not in (None, False, []):
            raise UsageError(f"{name} is for a search by meaning", hint="leave out --literal and --regex")
    check_texts(args.containing)
    if not exact and (args.limit or 0) > SEARCH_LIMIT_MAX:
        raise UsageError(f"argument -k: {args.limit} is not between 1 and {SEARCH_LIMIT_MAX}", hint=_LIMIT_HELP)
    around = {"-A", "-B", "-v"}.intersection(given) or args.context is not None
    if args.only_matching and around and not (args.count or args.files_with_matches):
        raise UsageError("-o prints matches by themselves", hint="leave out -v, and the lines around")


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """What was asked for, in the words of the daemon and the wire."""
    exact = args.literal or args.regex
    options: dict[str, Any] = {"mode": "literal" if args.literal else "regex" if args.regex else "semantic"}
    wanted = {
        "explain": args.explain,
        "ignore_case": args.ignore_case,
        "whole_words": args.word_regexp,
        "files_only": args.files_with_matches,
        "invert": args.invert_match,
        "only_matching": args.only_matching,
        "count": args.count and not args.files_with_matches,
        "rerank": args.rerank,
        "context": None if exact else args.context,
        "before": args.context if exact and args.before_context is None else args.before_context,
        "after": args.context if exact and args.after_context is None else args.after_context,
        "max_count": args.max_count,
        "budget_tokens": args.budget,
        "threshold": args.threshold,
        "containing": args.containing or None,
        "nearest": None if exact or args.threshold is not None else _NEAREST,
    }
    return options | {name: value for name, value in wanted.items() if value is not None and value is not False}


def _check_query(query: str, *, exact: bool, literal: bool) -> None:
    if not query or (not exact and not query.strip()):
        raise UsageError("the query is empty", hint=_EXAMPLE)
    if len(query) > QUERY_MAX_CHARS:
        raise UsageError(f"the query has {len(query)} characters, at most {QUERY_MAX_CHARS} are allowed")
    if not literal and any("\ud800" <= character <= "\udfff" for character in query):
        raise UsageError("the query is not valid UTF-8", hint="use --literal to look for raw bytes")


def _search_mounts(args: argparse.Namespace, query: str, paths: list[str], limit: int, found: _Found, out: Output) -> None:
    """One request for each mount, and another for what turned out to be a symlink."""
    from memdir.cli.search.grep_places import places_of
    from memdir.cli.targets import control, open_registry

    registry = open_registry()
    exact = args.literal or args.regex
    wait_ms = 0 if args.no_wait else _WAIT_MS
    options = _options(args)

    def ask(place: Place) -> list[str]:
        answer = control(place.record).call(
            "grep",
            wait_ms / 1000 + _ANSWER_TIMEOUT_S,
            q=query,
            paths=list(place.scopes),
            limit=limit,
            wait_ms=wait_ms,
            **options,
        )
        found.add(answer, lambda path: place.shown(path, as_given=exact))
        return answer.get("unresolved") or []

    for place in places_of(registry, paths):
        for missing in ask(place):
            try:
                ask(place.followed(registry, missing))
            except MemdirError as error:
                if len(paths) == 1:
                    raise
                out.note(error.message)
                found.failed = True


def _search_container(args: argparse.Namespace, query: str, paths: list[str], limit: int, found: _Found, out: Output) -> None:
    from memdir.cli.search.remote import search_container
    from memdir.cli.targets import check_container_name
    from memdir.fs.path import checked

    answer = search_container(
        check_container_name(args.container),
        query=query,
        scopes=[checked(path) for path in paths] or ["/"],
        limit=limit,
        wait_ms=0 if args.no_wait else _WAIT_MS,
        options=_options(args),
        note=out.note,
    )
    found.add(answer, str)
    for path in answer["missing"]:
        out.note(f"{path}: no such file or folder in {args.container}")
        found.failed = True


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
    if hit.get("alike"):
        row["alike"] = hit["alike"]
    if hit.get("weak"):
        row["weak"] = True
    if hit.get("matched"):
        row["matched"] = hit["matched"]
    if hit.get("sibling"):
        row["sibling"] = os.path.join(os.path.dirname(path), os.path.basename(hit["sibling"]))
        row["sibling_lines"] = hit["sibling_lines"]
        row["place"] = hit.get("place")
    if explain:
        row["signals"] = hit.get("signals") or {}
        row["why"] = hit.get("why")
    return row


def _print_notes(found: _Found, out: Output) -> None:
    for answer in found.answers:
        if answer.get("pending"):
            count = len(answer["pending"])
            files = plural(count, "file is", "files are") if count < SEARCH_PENDING_MAX else f"{count:,} or more files are"
            was = "was" if count == 1 else "were"
            if answer.get("searched_in_place", True):
                out.note(f"{files} not searchable by meaning yet and {was} searched by words only")
            else:
                out.note(f"{files} not searchable yet")
        if answer.get("note"):
            out.note(str(answer["note"]))
        if answer.get("not_reranked"):
            out.note(f"not reranked: {answer['not_reranked']}")
        left_out = answer.get("left_out")
        if left_out and left_out.get("count"):
            named = [str(path) for path in left_out.get("paths") or ()]
            some = f", in {', '.join(named[:_LEFT_OUT_SHOWN])}{' …' if len(named) > _LEFT_OUT_SHOWN else ''}" if named else ""
            out.note(f"about {answer.get('tokens')} tokens; {plural(left_out['count'], 'hit')} did not fit the budget{some}")


def _print_bound(count: int, limit: int, what: str, out: Output) -> None:
    if count >= limit:
        more = f"; -k {EXACT_LIMIT_MAX} shows more" if limit < EXACT_LIMIT_MAX else ""
        out.note(f"these are the first {limit:,} {what}, there may be more{more}")


def _print_bounds(rows: list[dict[str, Any]], limit: int, out: Output) -> None:
    """What of the exact lines is not shown."""
    _print_bound(sum(len(row.get("matched") or (1,)) for row in rows), limit, "matches", out)
    lines = (line for row in rows for line in str(row["text"]).split("\n"))
    cut = sum(len(line.encode("utf-8", "surrogateescape")) >= EXACT_LINE_MAX_BYTES for line in lines)
    if cut:
        out.note(f"of {plural(cut, 'line')} only {EXACT_LINE_MAX_BYTES:,} bytes are shown, around the match")


def _as_utf8(text: str) -> str:
    """For JSON, which has no bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


COMMAND = Command(
    name="grep",
    usage="[OPTIONS] QUERY [PATH...]",
    description=(
        "Search the files of a memory by meaning; best lines first, as path:line:text.\n"
        "What was written a moment ago is found too: changes under PATH are pushed first, and waited for.\n"
        "--literal and --regex give what grep -F and grep -E give, and read only files that can match. Expressions are POSIX\n"
        "extended with \\w \\W \\s \\S \\b \\B \\< \\>, without back-references; no expression can make the search hang."
    ),
    examples=[
        ('memdir grep "why did we leave the old supplier"', "in the mount around you, or the only one"),
        ('memdir grep -k 3 "flight to Oslo" notes/mail', "in one folder, three results"),
        ('memdir grep "when did she join us" --containing "Ana Ruiz"', "all that is said of her, what fits best first"),
        ('memdir grep -C 2 --budget 2000 "parser decisions"', "lines around, about 2,000 tokens at most"),
        ('memdir grep --literal "TODO(" notes', "exact bytes, like grep -rnF"),
        ("memdir grep -E -i 'fix(me|ed) +#[0-9]+' *.md", "a regular expression, in either case, in some files"),
        ("memdir grep -F -c -e TODO -e FIXME src", "how many lines of each file"),
        ('memdir grep --container notes "renewal date" --json', "without a mount, for programs"),
    ],
    exit_codes=[(0, "something was found"), (1, "nothing was found")],
    configure=_configure,
    run=_run,
    parser_type=_GrepParser,
)
