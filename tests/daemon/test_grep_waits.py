"""How long a search waits for what was saved before it."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memdir.api.search import SearchHit, SearchResponse
from memdir.api.v1 import SearchRequest
from memdir.daemon.grep import Grep
from memdir.daemon.syncing import Syncing
from memdir.fs.memory import MemoryFs

OLD, NEW = "The boiler was serviced in May.", "Root canal on 20 November."


def hit(text: str, *, weak: bool = False) -> SearchHit:
    return SearchHit(
        path="/health.md", document_id="d", kind="chunk", start_line=1, end_line=1, start_byte=0, end_byte=len(text), text=text,
        score=0.6, weak=weak or None,
    )  # fmt: skip


class SlowServer:
    """An engine whose server finds a text of the file's former content until it is given the time to read the new one."""

    def __init__(self, first: list[SearchHit], *, pushed: bool, in_words: bool, imported: int = 0) -> None:
        self.first = first
        self.imported = imported
        self.pushed = pushed
        self.in_words = in_words
        self.waits_s: list[float] = []
        self.last_pushed_seq = 1
        self.link = SimpleNamespace(state=lambda: SimpleNamespace(online=True), call=lambda call: call(self))

    def on_their_way(self) -> int:
        return 1 + self.imported

    def flush(self, folder: str, wait_s: float) -> list[str]:
        del folder
        self.waits_s.append(wait_s)
        return ["/health.md"] if not self.pushed and len(self.waits_s) == 1 else []

    def parked_rows(self, limit: int) -> list[Any]:
        del limit
        return []

    def search(self, request: SearchRequest) -> SearchResponse:
        assert request.wait_seq == 1
        assert (request.wait_ms > 0) is (not self.imported or len(self.waits_s) > 1)
        late = len(self.waits_s) > 1
        return SearchResponse(
            results=[hit(NEW)] if late else self.first,
            total=1,
            pending=([] if late or self.in_words else ["/health.md"]) + [f"/{one}.txt" for one in range(self.imported)],
            half_read=None if late else 1,
            timing_ms=1.0,
        )


@pytest.mark.parametrize("imported", [0, 40])
@pytest.mark.parametrize(
    ("first", "pushed", "in_words", "waits"),
    [
        ([hit(OLD)], False, False, True), ([hit(OLD)], True, False, True), ([hit(NEW, weak=True)], True, False, True),
        ([], True, True, True), ([hit(NEW, weak=True)], True, True, True), ([hit(NEW)], True, False, False),
    ],
)  # fmt: skip
def test_an_answer_that_shows_nothing_sure_waits_for_an_edit(
    first: list[SearchHit], pushed: bool, in_words: bool, waits: bool, imported: int
) -> None:
    tree = MemoryFs(uid=os.getuid(), gid=os.getgid())
    tree.put_file("/health.md", [NEW.encode() + b"\n"], mode=0o644, mtime_ns=0, expected=None)
    engine = SlowServer(first, pushed=pushed, in_words=in_words, imported=imported)
    engine_of: Callable[[float], SlowServer] = lambda _: engine  # noqa: E731
    syncing = SimpleNamespace(
        wait_engine=engine_of, enabled=True, error=None, bring_server=lambda _: False, profile_text="", siblings=None
    )
    answer = Grep("n", tree, cast(Syncing, syncing)).run({"q": "tooth treatment", "paths": ["/"], "limit": 2})
    assert [one["text"] for one in answer["hits"]] == [NEW]
    assert (len(engine.waits_s) == 2) is waits
    assert sum(engine.waits_s) <= 2.5
