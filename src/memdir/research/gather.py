"""Searches and fetches of a run: in parallel, each page archived and journalled before anybody sees it, none had twice."""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final
from urllib.parse import urljoin

from memdir.core.errors import FetchError, MemdirError
from memdir.llm.port import Model, ModelError
from memdir.research import digest
from memdir.research.agent import Result
from memdir.research.archive import Archive, Page, Source
from memdir.research.fence import fenced
from memdir.research.state import State, model_entry
from memdir.research.web.place import RESULTS_MAX, Place

_WORKERS: Final = 6
_LINKS_MAX: Final = 600
_SOURCES_MAX: Final = 2_000
_LINK: Final = re.compile(r"[a-z][a-z0-9+.-]*:[^\s<>\"'()\[\]`|]+", re.I)
_TARGET: Final = re.compile(r"\]\(<?([^()\s<>]{1,2000})>?(?:\s+\"[^\"]*\")?\)")


class Gatherer:
    """See `tools.Outside`. Not thread-safe; it runs threads of its own for the pages of one call."""

    def __init__(
        self,
        *,
        state: State,
        archive: Archive,
        places: Sequence[Place],
        record: Callable[[dict[str, Any]], None],
        now_ms: Callable[[], int],
        digester: Model | None,
    ) -> None:
        self._state = state
        self._archive = archive
        self._places = places
        self._record = record
        self._now_ms = now_ms
        self._digester = digester

    def search(self, query: str) -> Result:
        """The results of all places, one after the other in turn."""
        found, failed = [], []
        for place in self._places:
            try:
                found.append(place.search(query, RESULTS_MAX))
            except FetchError as error:
                failed.append(f"{place.name} failed: {error.message}")
        turns = [one for rank in range(RESULTS_MAX) for results in found for one in results[rank : rank + 1]]
        lines = [
            f"{number}. {one.title}\n   {one.url}{self._already(one.url)}\n   {' '.join(one.snippet.split())[:300]}"
            for number, one in enumerate(turns[: 2 * RESULTS_MAX], start=1)
        ]
        text = "\n".join(lines) if lines else "nothing found: try other words"
        said = fenced(text, "a search") + "".join(f"\n{one}" for one in failed)
        if turns:
            said += f"\nA search archives nothing. To read pages: fetch {json.dumps({'urls': [one.url for one in turns[:2]]})}"
        return Result(text=said, says=f"search {query!r}: {len(turns)} results", addresses=[one.url for one in turns])

    def _already(self, url: str) -> str:
        source = self._state.fetched.get(url)
        return f" (archived: {source})" if source else ""

    def fetch(self, urls: Sequence[str], question: str) -> Result:
        """Pages that the run has are shown again; an address that nothing named is refused."""
        urls = list(dict.fromkeys(urls))
        wanted = [url for url in urls if url not in self._state.fetched and not self._refusal(url)]
        self._fetch_all(wanted)
        shown, addresses = list[str](), set[str]()
        last: Source | None = None
        share = digest.SHOWN_MAX_CHARS * 2 // max(len(urls), 2)
        for url in urls:
            path = self._state.fetched.get(url)
            source = self._archive.get(path) if path else None
            if source is None:
                why = self._refusal(url) if url not in self._state.failed else self._state.failed[url]
                shown.append(f"{url}: not fetched: {why}")
                continue
            shown.append(f"{url} is archived as {source.path}, text in lines {source.first} to {len(source.lines)}")
            shown.append(fenced(self._seen(source, question, share), source.path))
            addresses.update(_links(source))
            last = source
        if last is not None:
            cited = f"[{last.path}#L{last.first}]"
            shown.append(
                f"Write what matters into knowledge_base/AREA/NAME.md; behind each sentence the lines that say it: {cited}"
            )
        ok = sum(url in self._state.fetched for url in urls)
        return Result(text="\n".join(shown), says=f"fetch {ok} of {len(urls)} pages", addresses=sorted(addresses))

    def _refusal(self, url: str) -> str:
        if not any(place.has(url) for place in self._places):
            return "none of the places has such an address"
        if len(self._state.fetched) >= _SOURCES_MAX:
            return f"there are {_SOURCES_MAX:,} sources; that is the most"
        said = [self._state.topic, *self._state.steering]
        if url in self._state.addresses or any(url in text for text in said):
            return ""
        # Otherwise a page could make the agent carry what it knows to an address of the page's choice.
        return "no search result, archived page or user named this address; search for it"

    def _fetch_all(self, urls: Sequence[str]) -> None:
        """Each page is archived and journalled as soon as it is there, so that a kill loses only what was on its way."""
        if not urls:
            return
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="fetch") as pool:
            futures = {pool.submit(self._page, url): url for url in urls}
            try:
                for future in as_completed(futures):
                    url, page = futures[future], future.result()
                    if isinstance(page, Page):
                        source = self._archive.add(page, self._now_ms())
                        self._record({"kind": "fetch", "url": url, "source": source.path, "chars": len(page.text)})
                    else:
                        self._record({"kind": "fetch", "url": url, "error": page})
            finally:
                for future in futures:
                    future.cancel()

    def _page(self, url: str) -> Page | str:
        """The page, or why there is none."""
        for place in self._places:
            if place.has(url):
                try:
                    return place.fetch(url)
                except MemdirError as error:
                    return error.message[:500]
        return "none of the places has such an address"

    def _seen(self, source: Source, question: str, share: int) -> str:
        asked = question or self._state.topic
        if self._digester is not None and len(source.text) > share:
            key = f"{source.path}\n{question}"
            if key not in self._state.digests:
                with contextlib.suppress(ModelError):  # then words decide
                    reply = digest.ask(self._digester, source, self._state.topic, question)
                    self._record(model_entry(reply, purpose="digest", of=key))
            seen = digest.shown(self._state.digests.get(key, ""), source)
            if seen is not None:
                return seen
        return digest.excerpt(source, asked, share)


def _links(source: Source) -> list[str]:
    """The addresses that a page names, relative ones made whole."""
    joined = (_whole(source.url, target.partition("#")[0]) for target in _TARGET.findall(source.text))
    written = (match.rstrip(".,;:!?") for match in _LINK.findall(source.text))
    return sorted({*joined, *written})[:_LINKS_MAX]


def _whole(base: str, target: str) -> str:
    if base.startswith(("http://", "https://")) or ":" in target:
        return urljoin(base, target)
    scheme, _colon, path = base.partition(":")
    return f"{scheme}:{posixpath.normpath(posixpath.join(posixpath.dirname(path), target))}"
