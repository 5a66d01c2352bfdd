"""Search engines as JSON clients: SearXNG, Brave, Tavily, Serper. Formats as their documentation gives them (November 2026).

SearXNG: https://docs.searxng.org/dev/search_api.html. Brave: https://api-dashboard.search.brave.com/app/documentation/web-search.
Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search. Serper: https://serper.dev (POST /search)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from memdir.core.errors import FetchError, UsageError
from memdir.core.web import Http
from memdir.research.archive import Page
from memdir.research.web.place import Found
from memdir.research.web.reader import fetched_page

_ANSWER_MAX_BYTES: Final = 4 << 20
_QUERY_MAX_CHARS: Final = 400
"""Brave's and Tavily's bound."""
ENGINES: Final = ("searxng", "brave", "tavily", "serper")
_KEYS: Final = {"searxng": "SEARXNG_URL", "brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY", "serper": "SERPER_API_KEY"}
_ADDRESSES: Final = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "tavily": "https://api.tavily.com/search",
    "serper": "https://google.serper.dev/search",
}


class Web:
    """The open web: pages by HTTP, found by one engine."""

    def __init__(self, engine: str, http: Http, *, address: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
        """`address` instead of the engine's own, for a proxy. UsageError when the key, or SearXNG's address, is missing."""
        key = environ.get(_KEYS[engine], "")
        if not key and not (engine == "searxng" and address):
            what = "the address of a SearXNG server" if engine == "searxng" else "a key"
            raise UsageError(f"a search by {engine} needs {what}", hint=f"set {_KEYS[engine]}, or use --offline DIR")
        self._engine = engine
        self._http = http
        self._key = key
        self._address = address or _ADDRESSES.get(engine) or key.rstrip("/") + "/search"

    @property
    def name(self) -> str:
        return f"web by {self._engine}"

    def has(self, url: str) -> bool:
        return url.startswith(("http://", "https://"))

    def fetch(self, url: str) -> Page:
        return fetched_page(self._http, url)

    def search(self, query: str, limit: int) -> list[Found]:
        ask: Callable[[str, int], list[Found]] = getattr(self, f"_{self._engine}")
        return [one for one in ask(query[:_QUERY_MAX_CHARS], limit) if one.url][:limit]

    def _searxng(self, query: str, _limit: int) -> list[Found]:
        answer = self._get({"q": query, "format": "json"}, {})
        return _listed(answer.get("results"), "url", "title", "content")

    def _brave(self, query: str, limit: int) -> list[Found]:
        headers = {"Accept": "application/json", "X-Subscription-Token": self._key}
        answer = self._get({"q": query, "count": str(min(limit, 20))}, headers)
        web = answer.get("web")
        return _listed(web.get("results") if isinstance(web, dict) else None, "url", "title", "description")

    def _tavily(self, query: str, limit: int) -> list[Found]:
        body = {"query": query, "max_results": min(limit, 20), "search_depth": "basic"}
        answer = self._get(None, {"Authorization": f"Bearer {self._key}"}, body)
        return _listed(answer.get("results"), "url", "title", "content")

    def _serper(self, query: str, limit: int) -> list[Found]:
        answer = self._get(None, {"X-API-KEY": self._key}, {"q": query, "num": min(limit, 20)})
        return _listed(answer.get("organic"), "link", "title", "snippet")

    def _get(self, params: Mapping[str, str] | None, headers: Mapping[str, str], body: Any = None) -> dict[str, Any]:
        # The engine is the user's own choice: SearXNG most often runs on this machine.
        _final, _kind, data = self._http.get(
            self._address, params=params, headers=headers, json=body, max_bytes=_ANSWER_MAX_BYTES, trusted=True
        )
        try:
            answer = json.loads(data)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            hint = "is `json` in search.formats of its settings?" if self._engine == "searxng" else ""
            raise FetchError(f"{self._engine} gave no JSON", hint=hint)
        return answer


def _listed(results: Any, url: str, title: str, snippet: str) -> list[Found]:
    """The results that are well formed; what else an engine puts between them (news, videos) is passed over."""
    if not isinstance(results, list):
        return []
    return [
        Found(url=one[url], title=str(one.get(title) or ""), snippet=str(one.get(snippet) or ""))
        for one in results
        if isinstance(one, dict) and isinstance(one.get(url), str) and one[url].startswith(("http://", "https://"))
    ]
