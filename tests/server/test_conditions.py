"""Filters: the same answer in Python and from the index, on every engine."""

from __future__ import annotations

import random
from typing import Any

import pytest

from memdir.api.v3 import Filters
from memdir.server.services.search.filters import DEPTH_MAX, LEAVES_MAX, condition_of, fits
from memdir.store.errors import InvalidError
from memdir.store.tree.documents import Listing
from memdir.store.tree.metadata_conditions import FACETS_MAX
from memdir.store.types import Container
from tests.server.conftest import AnyStore, Putting

KEYS = ("a", "b", "Straße", "key with 'quotes'")
VALUES: tuple[Any, ...] = (
    "x", "X", "xyz", "ÄÖ", "äö", "STRASSE", "straße", "", " ", "%", "_x", "1", "01", "1.0", "-3", "1e3", "true", "nan",
    "x" * 200, 1, 1.0, 2.5, -3, 10**20, True, False, None, [], ["x", "1", 1, True], ["ÄÖ"], {"deep": "x"},
)  # fmt: skip


def some_metadata(rng: random.Random) -> dict[str, Any]:
    return {key: rng.choice(VALUES) for key in KEYS if rng.random() < 0.7}


def some_leaf(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(("metadata", "numeric", "array_contains", "string_contains"))
    leaf = {"key": rng.choice(KEYS), "filterType": kind, "negate": rng.choice((True, False, "true", "false"))}
    if kind == "numeric":
        leaf |= {"value": rng.choice(("1", "2.5", "-3", "1e3", 0)), "numericOperator": rng.choice((">", "<", ">=", "<=", "="))}
    else:
        scalars = [value for value in VALUES if isinstance(value, (str, int, float, bool))]
        leaf |= {"value": rng.choice(scalars), "ignoreCase": rng.choice((True, False))}
    return leaf


def some_filter(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    if depth == 0 or rng.random() < 0.3:
        return some_leaf(rng)
    return {rng.choice(("AND", "OR")): [some_filter(rng, depth - 1) for _ in range(rng.randrange(4))]}


@pytest.mark.promise("api.filters", "store.one-contract")
def test_the_index_finds_what_the_definition_says(store: AnyStore, container: Container, put: Putting) -> None:
    rng = random.Random(4)
    documents = {f"/{n}": some_metadata(rng) for n in range(120)}
    for path, metadata in documents.items():
        put(path, metadata=metadata)
    chosen = 0
    for _ in range(300):
        condition = condition_of(Filters(AND=[some_filter(rng)]))
        query = Listing(container_ids=(container.id,), condition=condition)
        found = {document.path for document in store.documents.listing(query, limit=1000)}
        assert found == {path for path, metadata in documents.items() if fits(condition, metadata)}, condition
        assert store.documents.count(query) == len(found)
        chosen += 0 < len(found) < len(documents)
    assert chosen > 100, "the filters must tell documents apart"


@pytest.mark.promise("api.filters", "store.one-contract")
def test_what_is_chosen_for_a_search_is_what_fits_after_any_changes(
    store: AnyStore, container: Container, put: Putting
) -> None:
    rng = random.Random(7)
    conditions = [condition for _ in range(30) if (condition := condition_of(Filters(AND=[some_filter(rng)]))) is not None]
    documents: dict[str, dict[str, Any]] = {}
    ids: dict[str, str] = {}
    told_apart = 0
    for number in range(60):
        path = f"/{rng.randrange(40)}"
        metadata = some_metadata(rng) if rng.random() < 0.8 else {}
        if path in ids and rng.random() < 0.4:
            store.files.set_metadata(container, ids[path], metadata)
        else:
            document = put(path, metadata=metadata).document
            assert document is not None
            ids[path] = document.id
        documents[path] = metadata
        for condition in rng.sample(conditions, 5) if number % 10 else conditions:
            chosen = store.chooser.chosen(container.id, condition)
            found = {path for path, document_id in ids.items() if document_id in chosen}
            assert found == {path for path, metadata in documents.items() if fits(condition, metadata)}, condition
            assert store.chooser.chosen(container.id, condition) is chosen, "an index keeps what it made of the set"
            told_apart += 0 < len(found) < len(documents)
    assert told_apart > 50, "the filters must tell documents apart"


def test_filters_follow_a_change_of_the_metadata(store: AnyStore, container: Container, put: Putting) -> None:
    def found(value: str) -> list[str | None]:
        condition = condition_of(Filters(AND=[{"key": "a", "value": value}]))
        return [d.path for d in store.documents.listing(Listing(container_ids=(container.id,), condition=condition), limit=9)]

    document = put("/f", metadata={"a": "one"}).document
    assert document is not None
    assert (found("one"), found("two")) == (["/f"], [])
    put("/f", b"other bytes")
    assert found("one") == ["/f"]
    put("/f", metadata={"a": "two"})
    assert (found("one"), found("two")) == ([], ["/f"])
    store.files.set_metadata(container, document.id, {"a": "three"})
    assert (found("two"), found("three")) == ([], ["/f"])
    store.files.delete_container(container)
    assert found("three") == []


def test_another_container_is_not_looked_into(store: AnyStore, container: Container, put: Putting) -> None:
    put("/mine", metadata={"a": "x"})
    other = store.containers.ensure("local", "other")
    condition = condition_of(Filters(AND=[{"key": "a", "value": "x"}]))
    assert store.documents.count(Listing(container_ids=(other.id,), condition=condition)) == 0
    assert store.documents.count(Listing(container_ids=(container.id, other.id), condition=condition)) == 1


@pytest.mark.parametrize(
    "leaf",
    [
        {},
        {"key": "a"},
        {"key": 1, "value": "x"},
        {"key": "a", "value": None},
        {"key": "a", "value": ["x"]},
        {"key": "a", "value": "x", "filterType": "regex"},
        {"key": "a", "value": "x", "filterType": "numeric"},
        {"key": "a", "value": "nan", "filterType": "numeric"},
        {"key": "a", "value": "1", "filterType": "numeric", "numericOperator": "<>"},
        {"key": "a", "value": "x", "negate": "perhaps"},
        {"key": "a", "value": "x", "ignoreCase": 3},
        {"AND": {}},
        "x",
    ],
)
def test_what_is_no_condition_is_refused(leaf: Any) -> None:
    with pytest.raises(InvalidError):
        condition_of(Filters(AND=[leaf]))


def test_filters_are_bounded_in_depth_and_number(container: Container, put: Putting) -> None:
    deep: dict[str, Any] = {"key": "a", "value": "x"}
    for _ in range(DEPTH_MAX):
        deep = {"AND": [deep]}
    with pytest.raises(InvalidError, match="deep"):
        condition_of(Filters(AND=[deep]))
    with pytest.raises(InvalidError, match="at most"):
        condition_of(Filters(OR=[{"key": "a", "value": "x"}] * (LEAVES_MAX + 1)))
    with pytest.raises(InvalidError, match="values"):
        put("/f", metadata={"a": ["x"] * (FACETS_MAX + 1)})
    with pytest.raises(InvalidError, match="key"):
        put("/f", metadata={"k" * 513: 1})


def test_no_conditions_are_no_filter() -> None:
    assert condition_of(None) is None
    assert condition_of(Filters()) is None
    assert fits(condition_of(Filters(AND=[])), {})
    assert not fits(condition_of(Filters(OR=[])), {})
