"""Pages of documents while others come and go."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from memdir.core.errors import MemdirError
from memdir.server.http.pages import WALK_S, WALKS_MAX, Place, Walker, Walks, cursor_of, place_of

LIMIT = 7
Answer = dict[str, Any]


def add(client: httpx.Client, tag: str, count: int) -> list[str]:
    """Documents; their ids."""
    ids: list[str] = []
    while len(ids) < count:
        contents = [f"text {number}" for number in range(min(100, count - len(ids)))]
        answer = client.post("/v3/documents/batch", json={"contents": contents, "containerTag": tag}).json()
        ids += [item["id"] for item in answer["results"]]
    return ids


def by_number(client: httpx.Client, body: Answer) -> Iterator[Answer]:
    """Pages as a client asks that knows nothing but page numbers, until the server says that this was the last."""
    for page in itertools.count(1):
        answer = client.post("/v3/documents/list", json=body | {"page": page}).json()
        yield answer
        if page >= answer["pagination"]["totalPages"]:
            return


def by_cursor(client: httpx.Client, body: Answer) -> Iterator[Answer]:
    cursor = None
    while True:
        answer = client.post("/v3/documents/list", json=body | ({"cursor": cursor} if cursor else {})).json()
        yield answer
        cursor = answer["pagination"]["nextCursor"]
        if cursor is None:
            return


@pytest.mark.promise("api.pages")
@pytest.mark.parametrize("walk", [by_number, by_cursor])
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("filters", [None, {"AND": [{"key": "none", "value": "x", "negate": True}]}])
def test_pages_neither_skip_nor_repeat_what_stood_there_all_the_time(
    client: httpx.Client, tag: str, walk: Callable[..., Iterator[Answer]], order: str, filters: Answer | None
) -> None:
    random_ = random.Random(f"{order}{filters}")
    ids = add(client, tag, 60)
    doomed = random_.sample(ids, 25)
    staying = set(ids) - set(doomed)
    seen: list[str] = []
    body = {"containerTags": [tag], "limit": LIMIT, "order": order} | ({"filters": filters} if filters else {})
    for answer in walk(client, body):
        seen += [document["id"] for document in answer["memories"]]
        assert len(answer["memories"]) <= LIMIT
        gone, doomed = doomed[:5], doomed[5:]
        if gone:
            client.request("DELETE", "/v3/documents/bulk", json={"ids": gone})
            add(client, tag, 3)
        assert len(seen) < 200, "the listing has no end"
    assert len(seen) == len(set(seen))
    assert staying <= set(seen)


@pytest.mark.promise("api.pages")
def test_a_walk_survives_another_one_of_the_same_key(client: httpx.Client, tag: str) -> None:
    ids = add(client, tag, 30)
    body = {"containerTags": [tag], "limit": LIMIT}
    seen: list[str] = []
    other = httpx.Client(base_url=client.base_url, headers=client.headers, trust_env=False)
    with other:
        for answer in by_number(client, body):
            seen += [document["id"] for document in answer["memories"]]
            add(client, tag, 2)
            for _ in by_number(other, body):
                pass
    assert set(ids) <= set(seen)
    assert len(seen) == len(set(seen))


def test_totals_say_how_many_there_are_and_the_last_page_says_so(client: httpx.Client, tag: str) -> None:
    add(client, tag, 20)
    body = {"containerTags": [tag], "limit": LIMIT}
    pages = list(by_number(client, body))
    assert [page["pagination"]["currentPage"] for page in pages] == [1, 2, 3]
    assert {(page["pagination"]["totalItems"], page["pagination"]["totalPages"]) for page in pages} == {(20, 3)}
    assert [bool(page["pagination"]["nextCursor"]) for page in pages] == [True, True, False]
    jump = client.post("/v3/documents/list", json=body | {"page": 3, "order": "asc"}).json()
    assert (len(jump["memories"]), jump["pagination"]["totalItems"]) == (6, 20)
    beyond = client.post("/v3/documents/list", json=body | {"page": 9}).json()
    assert (beyond["memories"], beyond["pagination"]["nextCursor"]) == ([], None)


@pytest.mark.parametrize("cursor", ["x", "", "ä", "A" * 501, "bm9uZQ", "WzEsMiwzXQ", "W10", "e30", "WyJ4IiwxLCJhIiwxXQ"])
def test_a_cursor_that_was_not_made_here_is_a_400(client: httpx.Client, tag: str, cursor: str) -> None:
    answer = client.post("/v3/documents/list", json={"containerTags": [tag], "cursor": cursor})
    assert (answer.status_code, "cursor" in answer.text) == (400, True)


def test_a_cursor_of_another_order_is_refused() -> None:
    place = Place(at_ms=5, id="a", seen=3)
    assert place_of(cursor_of(place, "createdAt asc"), "createdAt asc") == place
    with pytest.raises(MemdirError, match="another order"):
        place_of(cursor_of(place, "createdAt asc"), "updatedAt asc")


def test_what_is_remembered_of_walks_is_bounded_and_does_not_last() -> None:
    now = [0.0]
    walks = Walks(lambda: now[0])
    walker = Walker(walks=walks, key_id="k", connection="c")
    place = Place(at_ms=1, id="a", seen=7)
    walker.keep("q", 1, place)
    assert walker.end_of("q", 1) == place
    assert Walker(walks=walks, key_id="k", connection="other").end_of("q", 1) == place
    assert Walker(walks=walks, key_id="other", connection="c").end_of("q", 1) is None
    now[0] = WALK_S + 1
    assert walker.end_of("q", 1) is None
    for number in range(WALKS_MAX + 10):
        walks.keep("w", "q", number, place)
    assert walks.end_of("w", "q", 9) is None
    assert walks.end_of("w", "q", WALKS_MAX) == place
