"""Entries in JSON of somebody else: in, out, and not a byte of anything else changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.agents.installers.jsontext import JsonTextError, parse, put, take_out

SERVER = {"command": "memdir", "args": ["mcp", "--stdio"]}

spaces = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", " // note\n", " /* a\n b */ ", "\n  // } , ]\n  "])
scalars = st.sampled_from(['"a"', '"// no comment"', '"\\"{"', "1", "-2.5e3", "true", "null", '"日本"', '""'])


def _object(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = st.sampled_from(['"hooks"', '"mcpServers"', '"a"', '"b"', '"memdir"', '"日"'])
    pair = st.tuples(spaces, names, spaces, spaces, children, spaces).map(lambda t: f"{t[0]}{t[1]}{t[2]}:{t[3]}{t[4]}{t[5]}")
    return st.tuples(st.lists(pair, max_size=3), spaces, st.booleans()).map(
        lambda t: "{" + ",".join(t[0]) + ("," if t[2] and t[0] else "") + t[1] + "}"
    )


def _array(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    item = st.tuples(spaces, children, spaces).map("".join)
    return st.tuples(st.lists(item, max_size=3), spaces, st.booleans()).map(
        lambda t: "[" + ",".join(t[0]) + ("," if t[2] and t[0] else "") + t[1] + "]"
    )


values = st.recursive(scalars, lambda inner: _object(inner) | _array(inner), max_leaves=8)
texts = st.tuples(spaces, _object(values), spaces).map("".join)
places = st.sampled_from(
    [((), "memdir-new"), (("mcpServers",), "memdir-new"), (("hooks", "a"), None), (("hooks", "a", "b"), "x")]
)


def _ours(value: Any) -> bool:
    return bool(value == SERVER)


@given(text=texts, place=places)
@settings(max_examples=100)
def test_put_in_and_taken_out_the_text_is_what_it_was(text: str, place: tuple[tuple[str, ...], str | None]) -> None:
    path, key = place
    try:
        longer, done = put(text, path, key, SERVER)
    except JsonTextError:
        return  # something else stands there: see below
    assert take_out(longer, done, _ours) == text


@given(text=texts, places_=st.lists(places, min_size=2, max_size=4, unique=True))
@settings(max_examples=50)
def test_several_entries_go_in_reverse_order_without_a_trace(
    text: str, places_: list[tuple[tuple[str, ...], str | None]]
) -> None:
    longer, dones = text, []
    try:
        for path, key in places_:
            longer, done = put(longer, path, key, SERVER)
            dones.append(done)
    except JsonTextError:
        return
    for done in reversed(dones):
        longer = take_out(longer, done, _ours)
    assert longer == text


@given(text=texts)
@settings(max_examples=50)
def test_what_somebody_added_meanwhile_stays(text: str) -> None:
    try:
        longer, done = put(text, ("mcpServers",), "memdir-new", SERVER)
    except JsonTextError:
        return
    both, _ = put(longer, ("mcpServers",), "other", {"url": "x"})
    both, _ = put(both, (), "more", [1])
    rest = parse(take_out(both, done, _ours)).value
    expected = parse(both).value
    del expected["mcpServers"]["memdir-new"]
    assert rest == expected


def test_the_style_of_the_text_is_kept() -> None:
    four = '{\n    "a": 1, // one\n    "b": 2 // two\n}\n'
    assert put(four, (), "m", [1])[0] == (
        '{\n    "a": 1, // one\n    "b": 2, // two\n    "m": [\n        1\n    ]\n}\n'
    )  # fmt: skip
    assert put('{"a": 1}', (), "m", {"x": 1})[0] == '{"a": 1, "m": {"x": 1}}'
    assert put('{\r\n\t"a": {}\r\n}', ("a",), "m", 1)[0] == '{\r\n\t"a": {\r\n\t\t"m": 1\r\n\t}\r\n}'
    assert put('{\n  "a": [\n    1,\n  ],\n}', ("a",), None, 2)[0] == '{\n  "a": [\n    1,\n    2,\n  ],\n}'
    assert put("{}", ("hooks", "Stop"), None, 1)[0] == '{\n  "hooks": {\n    "Stop": [\n      1\n    ]\n  }\n}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "value is missing"), ("{", "name in double quotes"), ('{"a" 1}', "colon"), ('{"a": 1 "b": 2}', "comma or }"),
        ("[1 2]", "comma or ]"), ("{} {}", "something follows"), ("{'a': 1}", "name in double quotes"),
        ('{"a": nope}', "value is missing"), ('{"a": "\\x"}', "JSON"), ('{"a": 1,, }', "name in double quotes"),
        ("/* {}", "value is missing"), ("[" * 200 + "]" * 200, "nested deeper"), ('{"a": 01}', "comma or }"),
        ('{"a": "b\nc"}', "value is missing"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused_and_the_place_told(text: str, said: str) -> None:
    with pytest.raises(JsonTextError) as refused:
        put(text, (), "m", 1)
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("text", "path", "key"),
    [("[]", (), "m"), ('{"hooks": []}', ("hooks",), "m"), ('{"h": {}}', ("h",), None), ("7", (), "m"),
     ('{"hooks": null}', ("hooks", "x"), None)],
)  # fmt: skip
def test_what_is_something_else_is_not_replaced(text: str, path: tuple[str, ...], key: str | None) -> None:
    with pytest.raises(JsonTextError, match=r"is no (object|list)"):
        put(text, path, key, 1)


@given(text=texts)
@settings(max_examples=40)
def test_plain_json_is_read_as_the_standard_library_reads_it(text: str) -> None:
    value = parse(text).value
    assert parse(json.dumps(value, ensure_ascii=False)).value == value
