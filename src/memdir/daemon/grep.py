"""Search from the mount's side: read-your-writes, and an answer without a server.

Before a search by meaning, what is dirty under its scope is pushed and waited for, within a bound. What could not be waited for
(or everything, with the server away) is searched here by words and marked as pending. For exact text see `daemon.exact`.
"""

from __future__ import annotations

import logging
import os
import posixpath
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from memdir.core.errors import UsageError
from memdir.core.limits import (
    EXACT_LIMIT_MAX,
    MIB,
    QUERY_MAX_CHARS,
    SEARCH_LIMIT_MAX,
    SEARCH_PATHS_MAX,
    SEARCH_PENDING_MAX,
)
from memdir.core.patterns.matcher import Matcher, Pattern, is_binary
from memdir.core.patterns.select import Choice
from memdir.core.patterns.whole_words import check_texts
from memdir.core.search_waits import SEARCH_WAIT_FILES_MAX, SEARCH_WAIT_SOON_MS, is_worth_waiting
from memdir.core.siblings import ERROR, first_lines, sibling_of, source_of, source_path
from memdir.daemon.deadlines import HangingError, Patience, in_background
from memdir.daemon.exact import Elsewhere, ExactSearch
from memdir.daemon.line_positions import placed
from memdir.daemon.syncing import Syncing
from memdir.daemon.word_search import (
    BESIDE_S,
    PROFILE_PATH,
    Readable,
    WithViews,
    WordSearch,
    contents_of,
    entries_below,
    scope_files,
)
from memdir.fs.path import checked, encode, is_within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memdir.api.search import SearchHit
    from memdir.api.v1 import SearchResponse
    from memdir.fs.tree import SyncTree
    from memdir.fs.types import LocalFact
    from memdir.sync.engine import Engine

log = logging.getLogger(__name__)

Json = dict[str, Any]
R = TypeVar("R")

WAIT_MS: Final = 2500
"""The longest that an answer of nothing waits for what was saved before it."""
_WAIT_MAX_MS: Final = 30_000
_WAITING_MAX: Final = 1000
"""With more files that are not on the server as they are here, an exact search reads everything here."""
_CHECKED_MAX_BYTES: Final = 4 * MIB
_KEPT_MAX: Final = 200
_KEPT_MAX_BYTES: Final = MIB
"""Parked files that are searched in place with every grep: how many at most, and of what size."""
_CHOICES: Final = ("invert", "only_matching", "before", "after", "max_count", "files_only", "count")
PROFILE_NOTE: Final = "profile.md is made from the files under memory/ and user/; it was searched by words"
NO_SYNC_NOTE: Final = "this mount does not sync: searched by words in the local files"


class Grep:
    """The `grep` operation."""

    def __init__(self, container: str, tree: SyncTree, syncing: Syncing) -> None:
        self._container = container
        self._tree = tree
        self._syncing = syncing

    def run(self, args: Json) -> Json:
        """`{q, paths, limit, mode, explain, wait_ms, …}` to `{hits, pending, offline, note, timing_ms, …}`. Paths that are not
        there, or are symlinks, come back as `unresolved` and are not searched."""
        started_s = time.monotonic()
        query, paths, limit = _checked_args(args)
        exact = args.get("mode", "semantic") != "semantic"
        views = self._with_views()
        if not exact:
            paths = [self._source_of(path) for path in paths]
        wait_ms = args.get("wait_ms", WAIT_MS)
        wait_s = (WAIT_MS if wait_ms is None else max(0, min(int(wait_ms), _WAIT_MAX_MS))) / 1000
        scopes = [path for path in paths if path == "/" or _is_searched(views.fact(path))]
        if not scopes:
            answer: Json = {"hits": [], "pending": [], "offline": False, "note": None}
        elif exact:
            answer = self._exact(query, scopes, limit, wait_s, views, args)
        elif scopes == [PROFILE_PATH]:
            answer = self._in_place(query, scopes, limit, _options(args), PROFILE_NOTE, offline=False)
        else:
            beside = [text for scope in scopes if (text := sibling_of(scope)) is not None and self._is_file(text)]
            places = [scope for scope in dict.fromkeys((*scopes, *beside)) if scope != PROFILE_PATH]
            answer = self._semantic(query, places, limit, wait_s, _options(args))
        answer["unresolved"] = [path for path in paths if path not in scopes]
        answer["timing_ms"] = round((time.monotonic() - started_s) * 1000, 3)
        return answer

    def _source_of(self, path: str) -> str:
        """The file that a text beside it was read from; other paths as they are."""
        source = source_path(path)
        return path if source is None or self._tree.fact(path) is not None else source

    def _exact(self, query: str, scopes: list[str], limit: int, wait_s: float, views: WithViews, args: Json) -> Json:
        """In files and in the texts beside them: who names a file means its text, too."""
        pattern = Pattern(
            text=query,
            regex=args["mode"] == "regex",
            ignore_case=bool(args.get("ignore_case")),
            whole_words=bool(args.get("whole_words")),
        )
        choice = Choice(**{name: args[name] for name in _CHOICES if args.get(name) is not None})
        entries = [entry for scope in scopes if (entry := views.fact(scope)) is not None]
        stored = [entry.path for entry in entries if not views.is_view(entry.path)]
        elsewhere = self._asked_for_exact(pattern, choice, stored, limit, wait_s, views) if stored else None
        search = ExactSearch(views, pattern, choice, elsewhere)
        named = [one.path for entry in entries for one in (entry, views.text_of(entry)) if one is not None]
        hits = search.run(entries_below(views, named), limit)
        return {
            "hits": hits,
            "counts": search.counts,
            "pending": [],
            "offline": False,
            "note": search.note,
            "binary": search.binary,
        }

    def _asked_for_exact(
        self, pattern: Pattern, choice: Choice, scopes: list[str], limit: int, wait_s: float, views: WithViews
    ) -> Elsewhere | None:
        """What the server found; None when it cannot say all: everything is read here then."""
        from memdir.api.v1 import SearchRequest
        from memdir.client.errors import ClientError

        engine = self._syncing.wait_engine(0.001)
        if engine is None or not engine.link.state().online or any("\ud800" <= one <= "\udfff" for one in pattern.text):
            return None
        waiting = engine.flush(os.path.commonpath(scopes), wait_s, limit=_WAITING_MAX + 1)
        if len(waiting) > _WAITING_MAX:
            return None
        request = SearchRequest(
            container_tag=self._container,
            q=pattern.text,
            **_places(scopes),
            limit=limit,
            mode="regex" if pattern.regex else "literal",
            ignore_case=pattern.ignore_case,
            whole_words=pattern.whole_words,
            **{name: getattr(choice, name) for name in _CHOICES},
            texts=self._syncing.siblings is not None,
        )
        search = in_background(lambda: engine.link.call(lambda client: client.search(request)))
        try:
            response = Patience().result(search)
        except (HangingError, ClientError) as error:  # it may be busy: unlike a search by meaning, this one may take long
            log.info("an exact search reads every file here: %s", error)
            return None
        if response.note is not None:
            return None
        parked = [row.path for row in engine.parked_rows(_WAITING_MAX)]
        late, matcher = {*waiting, *parked}, Matcher(pattern)

        def is_unknown(path: str) -> bool:
            if not views.is_view(path):
                return path in late or self._tree.is_local_only(path)
            source, kind = source_of(path) or (None, None)
            if source is None or kind == ERROR or matcher.matches(encode(first_lines(posixpath.basename(source)))):
                return True  # profile.md, and what stands in no text of the server's
            return source in late or self._tree.is_local_only(source) or not _is_inside(source, scopes)

        return Elsewhere.of(response, is_unknown)

    def _semantic(self, query: str, scopes: list[str], limit: int, wait_s: float, options: Json) -> Json:
        engine = self._syncing.wait_engine(max(wait_s, 0.001))
        if engine is None:
            note = NO_SYNC_NOTE if not self._syncing.enabled else self._syncing.error or "sync is still starting"
            return self._in_place(query, scopes, limit, options, note, offline=False)
        from memdir.client.errors import ClientError

        limits = Patience()
        search = in_background(lambda: self._reached_and_asked(engine, query, scopes, limit, wait_s, options, limits))
        try:
            waiting, response = limits.result(search)
        except HangingError as error:
            engine.link.fail(error.told)
            note = f"searched by words in the local files, because {error}"
            return self._in_place(query, scopes, limit, options, note, offline=True)
        except ClientError as error:
            note = f"searched by words in the local files, because the server was not reached: {error.message}"
            return self._in_place(query, scopes, limit, options, note, offline=True)
        here = self._word_search(self._tree, query, options)
        return self._merged(here, scopes, limit, response, waiting, self._kept_here(engine, scopes))

    def _reached_and_asked(
        self, engine: Engine, query: str, scopes: list[str], limit: int, wait_s: float, options: Json, limits: Patience
    ) -> tuple[list[str], SearchResponse]:
        """What could not be pushed, and the server's answer: after SEARCH_WAIT_SOON_MS, or, if that is nothing and few files
        are on their way, after `wait_s`. A local server that is stopped is started. ClientError."""
        from memdir.client.errors import OfflineError

        ask = partial(self._pushed_and_asked, engine, query, scopes, limit)
        soon_s = min(wait_s, SEARCH_WAIT_SOON_MS / 1000 if engine.on_their_way() <= SEARCH_WAIT_FILES_MAX else 0.0)
        try:
            if not engine.link.state().online and self._syncing.bring_server(limits.starting):
                limits.starting()
            waiting, response = ask(soon_s, options)
        except OfflineError:  # it went away a moment ago
            if not self._syncing.bring_server(limits.starting):
                raise
            waiting, response = ask(soon_s, options)
        is_worth_it = is_worth_waiting(len(waiting), len(response.pending), response.half_read or 0)
        if wait_s > soon_s and is_worth_it and not self._is_sure(response, waiting):
            limits.more(wait_s)
            return ask(wait_s - soon_s, options)
        return waiting, response

    def _is_sure(self, response: SearchResponse, waiting: list[str]) -> bool:
        """Whether a hit that is more than weak will be shown: the server's text of a file that changed since will not be."""
        hits = (hit for hit in response.results if not hit.weak and hit.path not in waiting)
        return any(self._place_of(hit) is not None for hit in hits)

    def _pushed_and_asked(
        self, engine: Engine, query: str, scopes: list[str], limit: int, wait_s: float, options: Json
    ) -> tuple[list[str], SearchResponse]:
        deadline_s = time.monotonic() + wait_s
        waiting = engine.flush(os.path.commonpath(scopes), wait_s)
        left_ms = max(1, int((deadline_s - time.monotonic()) * 1000)) if wait_s else 0
        return waiting, self._ask(engine, query, scopes, limit, left_ms, options)

    def _ask(self, engine: Engine, query: str, scopes: list[str], limit: int, wait_ms: int, options: Json) -> SearchResponse:
        from memdir.api.v1 import SearchRequest

        request = SearchRequest(
            container_tag=self._container,
            q=query,
            **_places(scopes),
            limit=limit,
            wait_seq=engine.last_pushed_seq,
            wait_ms=wait_ms,
            **options,
        )
        return engine.link.call(lambda client: client.search(request))

    def _kept_here(self, engine: Engine, scopes: list[str]) -> list[str]:
        """Small files that the server cannot take, such as one whose name is not UTF-8: it will never find them, so they are
        searched here each time."""
        paths = sorted(row.path for row in engine.parked_rows(_KEPT_MAX) if _is_inside(row.path, scopes))
        facts = ((path, self._tree.fact(path)) for path in paths)
        return [path for path, fact in facts if fact is not None and fact.kind == "file" and fact.size <= _KEPT_MAX_BYTES]

    def _merged(
        self,
        search: WordSearch,
        scopes: list[str],
        limit: int,
        response: SearchResponse,
        waiting: list[str],
        kept_here: list[str],
    ) -> Json:
        """The server's hits, but for what is newer or gone here, and what is searched here instead."""
        dirty = set(waiting)
        pending = self._newest_first(path for path in {*waiting, *response.pending} if _is_inside(path, scopes))
        clean = (hit for hit in response.results if hit.path not in dirty)
        current = (one for hit in clean if (one := self._as_it_is_now(hit)) is not None)
        hits = list({(one["path"], one["start_line"], one["kind"]): one for one in reversed([*current])}.values())[::-1]
        note = response.note
        if pending or kept_here:
            found = search.run(dict.fromkeys((*pending, *kept_here)), limit, limit_s=BESIDE_S)
            note = "; ".join(filter(None, (note if not found else None, search.note))) or None
            hits = sorted((*hits, *found), key=lambda hit: -float(hit["score"]))[:limit]
        left_out = response.left_out
        return {
            "hits": hits,
            "pending": pending[:SEARCH_PENDING_MAX],
            "offline": False,
            "note": note,
            "stages_ms": response.stages_ms,
            "tokens": response.tokens,
            "left_out": None if left_out is None else {"count": left_out.count, "paths": left_out.paths},
            "not_reranked": response.reranking.reason if response.reranking is not None else None,
        }

    def _as_it_is_now(self, hit: SearchHit) -> Json | None:
        """A hit whose lines are those of the file as it is here, or of the text beside it; None when the text is in neither."""
        place = self._place_of(hit)
        if place is None:
            return None
        path, start, end = place
        return {
            "path": path,
            "document_id": hit.document_id,
            "kind": hit.kind,
            "start_line": start,
            "end_line": end,
            "text": hit.text,
            "score": hit.score,
            "title": hit.title,
            "signals": hit.signals,
            "why": hit.why,
            "weak": bool(hit.weak),
            "alike": hit.alike,
            "sibling": hit.sibling,
            "sibling_lines": [hit.start_line, hit.end_line],
            "place": hit.place,
            "matched": None
            if hit.matched is None
            else [[one.start_line + start - hit.start_line, one.end_line + start - hit.start_line] for one in hit.matched],
        }

    def _place_of(self, hit: SearchHit) -> tuple[str, int, int] | None:
        """What is not here, very large, or no text and has none beside it, is taken as the server says."""
        if hit.sibling is not None:
            return self._place_in_source(hit)
        sibling = sibling_of(hit.path)
        entries = [self._tree.fact(path) for path in (sibling, hit.path) if path is not None]
        if entries[-1] is None:
            return None
        for entry in entries:
            if entry is None:
                continue
            if entry.kind != "file" or entry.absent_hash is not None or entry.size > _CHECKED_MAX_BYTES:
                return entry.path, hit.start_line, hit.end_line
            data = contents_of(self._tree, entry)
            lines = None if data is None else placed(data, hit.text, hit.start_line, hit.end_line)
            if lines is not None:
                return entry.path, *lines
        return (
            (hit.path, hit.start_line, hit.end_line) if sibling is not None and data is not None and is_binary(data) else None
        )

    def _place_in_source(self, hit: SearchHit) -> tuple[str, int, int] | None:
        """Of a page or a mail, whose text stands in it word for word, the lines there; else those of the text beside it."""
        entry = self._tree.fact(hit.path)
        if entry is None:
            return None
        readable = entry.kind == "file" and entry.absent_hash is None and entry.size <= _CHECKED_MAX_BYTES
        if readable and str(hit.sibling).endswith((".web-transcription.md", ".mail-transcription.md")):
            data = contents_of(self._tree, entry)
            lines = None if data is None or is_binary(data) else placed(data, hit.text, hit.start_line, hit.end_line)
            if lines is not None:
                return hit.path, *lines
        return hit.path, hit.start_line, hit.end_line

    def _in_place(self, query: str, scopes: list[str], limit: int, options: Json, note: str, *, offline: bool) -> Json:
        views = self._with_views()
        search = self._word_search(views, query, options)
        files = (path for path in scope_files(views, scopes) if path != PROFILE_PATH or scopes == [PROFILE_PATH])
        hits = search.run(files, limit)
        return {
            "hits": hits,
            "pending": [],
            "offline": offline,
            "note": f"{note}; {search.note}" if search.note else note,
        }

    def _word_search(self, tree: Readable, query: str, options: Json) -> WordSearch:
        return WordSearch(tree, query, containing=options.get("containing", ()))

    def _with_views(self) -> WithViews:
        return WithViews(self._tree, self._syncing.profile_text.encode("utf-8", "surrogateescape"), self._syncing.siblings)

    def _newest_first(self, paths: Iterable[str]) -> list[str]:
        """Those that are files here, by when they were changed."""
        facts = [fact for path in paths if (fact := self._tree.fact(path)) is not None and fact.kind == "file"]
        return [fact.path for fact in sorted(facts, key=lambda fact: (-fact.mtime_ns, fact.path))]

    def _is_file(self, path: str) -> bool:
        entry = self._tree.fact(path)
        return entry is not None and entry.kind == "file"


def _places(scopes: list[str]) -> Json:
    """For the wire."""
    return {"filepath": os.path.commonpath(scopes), "filepaths": scopes if len(scopes) > 1 else None}


def _is_searched(entry: LocalFact | None) -> bool:
    return entry is not None and entry.kind in ("file", "dir")


def _is_inside(path: str, scopes: list[str]) -> bool:
    return any(is_within(path, scope) for scope in scopes)


def _options(args: Json) -> Json:
    """What goes to the server as it is; it refuses what is out of bounds."""
    options: Json = {"explain": bool(args.get("explain")), "rerank": bool(args.get("rerank"))}
    for name in ("context", "budget_tokens", "threshold", "nearest", "containing"):
        if args.get(name) is not None:
            options[name] = args[name]
    check_texts(options.get("containing", []))
    return options


def _checked_args(args: Json) -> tuple[str, list[str], int]:
    query, paths, limit = args.get("q"), args.get("paths", ["/"]), args.get("limit", 10)
    literal = args.get("mode") in ("literal", "regex")
    if not isinstance(query, str) or not (query if literal else query.strip()):
        raise UsageError("the query is empty")
    if len(query) > QUERY_MAX_CHARS:
        raise UsageError(f"the query is longer than {QUERY_MAX_CHARS} characters")
    if not isinstance(paths, list) or not 1 <= len(paths) <= SEARCH_PATHS_MAX:
        raise UsageError(f"give 1 to {SEARCH_PATHS_MAX:,} paths", hint="name the folder that they are in")
    if wrong := [path for path in paths if not isinstance(path, str) or not path.startswith("/")]:
        raise UsageError(f"{wrong[0]!r} is no path in the mount")
    most = EXACT_LIMIT_MAX if literal else SEARCH_LIMIT_MAX
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise UsageError(f"the limit must be from 1 to {most:,}")
    if args.get("mode", "semantic") not in ("semantic", "literal", "regex"):
        raise UsageError(f"unknown mode {args.get('mode')!r}")
    return query, list(dict.fromkeys(map(checked, paths))), limit
