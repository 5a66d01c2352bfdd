"""A small offline place with facts, and runs over it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memdir.core.clock import FakeClock
from memdir.core.errors import FetchError
from memdir.research.archive import Page
from memdir.research.run import Means, Run
from memdir.research.state import Settings, State
from memdir.research.web.local_index import Entry, LocalIndex
from memdir.research.web.place import Found
from memdir.research.workspace import Workspace
from memdir_bench.research.policy import Policy

PAGES = {
    "book:ants": (
        "Weaver ants",
        "# Weaver ants\n\nThe weaver ant builds nests from living leaves.\nA colony holds 500,000 workers.\n",
    ),
    "book:bees": (
        "Honey bees",
        "# Honey bees\n\nA honey bee queen lays 1,500 eggs a day.\nWorkers live six weeks in summer.\n",
    ),
    "book:crows": (
        "Crows",
        "# Crows\n\nThe New Caledonian crow makes hooks from twigs since 1996 studies.\nCrows remember faces for five years.\n",
    ),
    "book:dogs": ("Dogs", "# Dogs\n\nThe basenji dog does not bark; it yodels.\nA greyhound runs 72 km an hour.\n"),
}
TOPIC = """Animals
- From what does the weaver ant build nests?
- How many eggs does a honey bee queen lay?
- What does the New Caledonian crow make from twigs?
- How fast does a greyhound run in an hour?
"""


class Book:
    """See `Place`. Counts what it is asked."""

    name = "a book"

    def __init__(self, pages: dict[str, tuple[str, str]] | None = None) -> None:
        self.pages = PAGES if pages is None else pages
        self.searched: list[str] = []
        self.fetched: list[str] = []
        self._index = LocalIndex(Entry(key=url, title=title, text=text) for url, (title, text) in self.pages.items())

    def search(self, query: str, limit: int) -> list[Found]:
        self.searched.append(query)
        return [Found(url=one.key, title=one.title, snippet=line) for one, line in self._index.search(query, limit)]

    def has(self, url: str) -> bool:
        return url.startswith("book:")

    def fetch(self, url: str) -> Page:
        self.fetched.append(url)
        if url not in self.pages:
            raise FetchError(f"{url}: no such page")
        title, text = self.pages[url]
        return Page(url=url, title=title, media_type="text/markdown", text=text)


def researched(
    root: Path,
    *,
    model: Any = None,
    book: Any = None,
    topic: str = TOPIC,
    settings: Settings | None = None,
    watch: Callable[[State], None] = lambda _state: None,
    digester: Any = None,
) -> State:
    """A whole run, or what a failure left of it."""
    means = Means(model=model or Policy(), places=[book or Book()], digester=digester)
    with Run(Workspace(root), means, clock=FakeClock(), watch=watch) as run:
        run.start(topic, settings or Settings())
        run.go()
        return run.state


def resumed(root: Path, *, model: Any, book: Any, settings: Settings | None = None, digester: Any = None) -> State:
    with Run(Workspace(root), Means(model=model, places=[book], digester=digester), clock=FakeClock()) as run:
        run.resume(settings or Settings())
        run.go()
        return run.state


def contents(root: Path) -> dict[str, str]:
    """Every file of a workspace but the journal."""
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".memdir-research" not in path.parts
    }


def cited_paths(text: str) -> Sequence[str]:
    return re.findall(r"\[(sources/\S+?\.md)#L", text)
