"""A session in 17 numbers, all sessions together, and what is said of them."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from memdir.traces.consolidate import ATTRIBUTES, DIMENSIONS, MODES_SESSIONS_MAX, average_linkage, consolidate, tier_of
from memdir.traces.engram import EPISODES_MAX, FEATURES, Engram, engram, engrams
from memdir.traces.events import Event
from memdir.traces.habits import JSON_SESSIONS_MAX, SHOWN, as_json, bars, drift, markdown, working_style
from memdir.traces.plot import png, svg
from memdir.traces.suggest import PROCEDURES_MAX, procedures, skill, suggest

from .made import created, edited, event

SESSION = [
    event("file_browse", "/", at_ms=0),
    event("file_read", "/a.md", at_ms=1000, view_count=1),
    event("file_read", "/a.md", at_ms=2000, view_count=2),
    event("file_search", "/", at_ms=3000, query="x"),
    event("dir_create", "/work/out/deep", at_ms=4000),
    created("/work/out/deep/r.md", "# T\n\n| a | b |\n| 1 | 2 |\n" + "x" * 76, at_ms=5000),
    created("/work/data.csv", "a,b\n1,2\n", at_ms=6000),
    created("/work/plot.png", "", at_ms=7000),
    edited("/work/out/deep/r.md", 3, 2, at_ms=8000),
    edited("/work/out/deep/r.md", 20, 5, at_ms=9000),
    event("file_move", "/b.md", at_ms=10_000, old_path="/a/b.md", new_path="/b.md"),
    event("file_delete", "/tmp.md", at_ms=11_000),
    event("context_switch", "/b.md", at_ms=12_000),
    event("cross_file_ref", "/b.md", at_ms=12_000),
]
GOLDEN = {
    "search_ratio": 1 / 4, "browse_ratio": 1 / 4, "revisit_ratio": 1 / 2, "avg_output_length": 109 / 3, "files_created": 3,
    "total_output_chars": 109, "dirs_created": 1, "max_dir_depth": 3, "files_moved": 1, "total_edits": 2,
    "avg_lines_changed": 15,
    "small_edit_ratio": 1 / 2, "total_deletes": 1, "delete_to_create": 1 / 3, "structured_files": 1, "md_table_rows": 2,
    "image_files": 1,
}  # fmt: skip
KINDS = st.sampled_from(["file_read", "file_browse", "file_search", "dir_create", "file_move", "file_delete", "file_rename"])


@st.composite
def sessions(draw: st.DrawFn) -> list[Event]:
    made: list[Event] = []
    for number in range(draw(st.integers(0, 7))):
        for at, kind in enumerate(draw(st.lists(KINDS, max_size=8))):
            path = draw(st.sampled_from(["/a", "/a/b", "/a/b/c/d.md"]))
            made.append(event(kind, path, at_ms=number * 10**7 + at * 1000, session=f"s{number}", old_path="/x", new_path=path))
        for at, size in enumerate(draw(st.lists(st.integers(0, 5000), max_size=3))):
            made.append(created(f"/n{at}.md", "x" * size, at_ms=number * 10**7 + at, session=f"s{number}"))
        for at, lines in enumerate(draw(st.lists(st.integers(0, 60), max_size=3))):
            made.append(edited("/n0.md", lines, lines // 2, at_ms=number * 10**7 + at, session=f"s{number}"))
    return made


@pytest.mark.promise("traces.fingerprint")
def test_all_seventeen_numbers_are_as_the_table_says() -> None:
    assert engram("s", SESSION).features == pytest.approx(GOLDEN)
    assert tuple(GOLDEN) == FEATURES


def test_a_session_of_nothing_is_all_zeros_and_tells_nothing() -> None:
    empty = engram("s", [])
    assert set(empty.vector) == {0.0}
    assert (empty.has, empty.episodes) == (frozenset(), ())


@pytest.mark.promise("traces.consolidated")
@given(sessions(), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_a_removed_session_was_never_there(events: list[Event], chance: object) -> None:
    shuffled = list(events)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    memory = consolidate(engrams(events))
    assert consolidate(engrams(shuffled)) == memory
    assert consolidate(list(reversed(memory.engrams))) == memory
    if memory.engrams:
        gone = memory.engrams[0].session
        left = consolidate([one for one in memory.engrams if one.session != gone])
        assert consolidate(engrams([one for one in events if one.session != gone])) == left
        assert gone not in markdown(left)


@pytest.mark.promise("traces.said")
@given(sessions())
def test_what_is_said_does_not_contradict_its_numbers(events: list[Event]) -> None:
    memory = consolidate(engrams(events))
    found = as_json(memory)
    text = markdown(memory)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Procedural Patterns", "## Semantic Content", "## Episodic Consistency",
    ]  # fmt: skip
    for trait in memory.traits:
        own = [one for one in memory.engrams if one.session in trait.sessions]
        assert {tier_of(trait.attribute, one) for one in own if one.session in trait.agreeing} <= {trait.tier}
        assert found["traits"][trait.attribute.name]["says"] == trait.says
        assert 0 < trait.confidence < 1
    for letter, (title, name) in DIMENSIONS.items():
        line = next((line for line in text.splitlines() if line.startswith(f"- **{letter} {title}**")), "")
        told = found["traits"].get(name)
        assert (told["says"] in line) if told is not None else (not line or "nothing tells" in line)
    for shift in memory.shifts:
        assert shift.usual != shift.then
    flagged = {*memory.anomalies, *memory.robust}
    assert all(f" — {one.session}, by " in text for one in memory.engrams[-SHOWN:] if one.session in flagged)
    assert sum(len(mode) for mode in memory.modes) == len(memory.engrams)
    assert len(memory.modes) <= 3
    for one in memory.engrams:
        assert len(one.episodes) <= EPISODES_MAX
        edges = [(part.first, part.last) for part in one.episodes]
        assert [last for _, last in edges[:-1]] == [first for first, _ in edges[1:]]


def usual(number: int) -> list[Event]:
    base = number * 10**7
    name = f"s{number}"
    made = [event("file_read", f"/in{at}.md", at_ms=base + at, session=name, view_count=1) for at in range(5 + number % 2)]
    made += [created(f"/out{number}.md", "word " * 100, at_ms=base + 20, session=name)]
    return [*made, *(edited(f"/out{number}.md", 2, 1, at_ms=base + 30 + at, session=name) for at in range(3))]


def test_a_session_that_is_otherwise_is_found_with_its_dimension_and_direction() -> None:
    events = [one for number in range(9) for one in usual(number)]
    odd = [event("file_delete", f"/x{at}.md", at_ms=9 * 10**7 + at, session="odd") for at in range(12)]
    odd += [created("/y.md", "word " * 100, at_ms=9 * 10**7 + 50, session="odd")]
    memory = consolidate(engrams([*events, *odd]))
    assert memory.anomalies == ("odd",)
    (shift,) = [one for one in memory.shifts if one.session == "odd"]
    assert (shift.dimension, shift.usual, shift.then) == ("E", "R", "L")
    assert "+total_deletes" in shift.features
    assert "curation never delete → aggressive cleanup — odd" in markdown(memory)


def test_with_four_sessions_the_rule_cannot_fire_and_says_so() -> None:
    memory = consolidate(engrams([one for number in range(4) for one in usual(number)]))
    assert memory.anomalies == ()
    assert "with four or fewer it cannot fire" in markdown(memory)
    assert not as_json(memory)["anomaly_rule_can_fire"]


def test_every_attribute_has_its_tiers_and_every_dimension_one_definition() -> None:
    assert len(ATTRIBUTES) == 16
    assert all(len(one.tiers) == 3 and set(one.dimensions) <= set(DIMENSIONS) for one in ATTRIBUTES)
    names = {one.name: one for one in ATTRIBUTES}
    assert all(letter in names[name].dimensions for letter, (_, name) in DIMENSIONS.items())


def test_a_profile_says_what_most_sessions_agree_on_and_names_them() -> None:
    assert working_style(consolidate(engrams([one for number in range(2) for one in usual(number)]))) == []
    lines = working_style(consolidate(engrams([one for number in range(6) for one in usual(number)])))
    assert "Edit strategy: incremental edits (6 of 6 sessions: s3, s4, s5)" in lines


def test_a_question_chooses_what_is_shown() -> None:
    events = [
        created("/tax.md", "Value added tax of the second quarter. " * 3, session="a", at_ms=1),
        created("/garden.md", "Tomatoes and beans want water. " * 3, session="b", at_ms=2),
    ]
    memory = consolidate(engrams(events))
    assert as_json(memory, "tomatoes in the garden")["chunks"][0]["path"] == "/garden.md"
    assert as_json(memory, "quarter tax")["chunks"][0]["path"] == "/tax.md"


@given(st.integers(0, 10_000), st.integers(3, 24))
def test_groups_are_those_of_joining_the_nearest_two_again_and_again(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 5)) + 3 * rng.integers(0, 3, size=(count, 1))
    groups = [[at] for at in range(count)]
    wanted = {}
    while len(groups) > 1:
        pairs = [(a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))]
        means = [np.linalg.norm(rows[groups[a]][:, None] - rows[groups[b]][None], axis=2).mean() for a, b in pairs]
        first, second = pairs[int(np.argmin(means))]
        groups[first] += groups.pop(second)
        wanted[len(groups)] = sorted(map(sorted, groups))
    found = average_linkage(rows)
    assert [sorted(map(sorted, found[size])) for size in (1, 2)] == [wanted[1], wanted[2]]


def test_what_years_of_sessions_say_is_told() -> None:
    events = [one for number in range(3_000) for one in usual(number)]
    memory = consolidate(engrams(events))
    assert len(memory.engrams) == 3_000
    assert sum(map(len, memory.modes)) == MODES_SESSIONS_MAX
    assert memory.modes[0][-1] == memory.engrams[-1].session
    assert len(procedures(events)) <= PROCEDURES_MAX
    assert "2000 of 3000 sessions" in markdown(memory)


def test_what_few_sessions_have_is_otherwise_and_what_every_third_has_is_not() -> None:
    """Most have none of it: the median distance from none is none."""
    events = [one for number in range(90) for one in usual(number)]
    for number in range(0, 90, 3):
        for at in range(3):
            events += [event("file_delete", f"/x{at}.md", at_ms=number * 10**7 + 50 + at, session=f"s{number}")]
    assert consolidate(engrams(events)).robust == ()
    for at in range(30):
        events += [event("file_delete", f"/y{at}.md", at_ms=10**7 + 50 + at, session="s1")]
        events += [event("file_move", f"/z{at}.md", at_ms=10**7 + 50 + at, session="s1", old_path="/x", new_path="/y")]
    assert consolidate(engrams(events)).robust == ("s1",)


def test_of_many_sessions_that_are_otherwise_the_latest_are_told_and_how_many_there_are() -> None:
    events = [one for number in range(200) for one in usual(number)]
    for number in range(100, 160, 2):
        for at in range(40 + number):
            events += [event("file_delete", f"/x{at}.md", at_ms=number * 10**7 + 50 + at, session=f"s{number}")]
    memory = consolidate(engrams(events))
    odd = {*memory.anomalies, *memory.robust}
    assert len(odd) == 30
    text = markdown(memory)
    assert "Otherwise were 30 of 200 sessions" in text
    assert text.count("- Otherwise: ") == SHOWN
    assert "s158, by" in text
    found = as_json(memory)
    assert found["anomalies"]["count"] == len(memory.anomalies)
    assert len(found["shifts"]) == JSON_SESSIONS_MAX


def test_drift_is_drawn() -> None:
    memory = consolidate(engrams([one for number in range(6) for one in usual(number)]))
    days, values = drift(memory, "total_edits")
    assert values == [3.0] * 6
    assert len(days) == 6
    assert bars([0, 1, 2]) == "▁▅█"
    assert bars([]) == ""
    assert bars([0.0, 0.0] * 500 + [8.0] * 1000) == "▁" * 20 + "█" * 20
    picture = svg([("total_edits", values), ("reads", [1, 2, 3])], days)
    assert picture.startswith(b"<svg ")
    assert len(re.findall(b"<polyline", picture)) == 2
    image = Image.open(io.BytesIO(png([("total_edits", values), ("reads", [1, 2, 3])], days)))
    assert image.size == (1440, 336)
    assert len(image.convert("RGB").getcolors(100_000) or ()) > 3


def test_a_new_file_goes_where_its_like_are_and_is_called_as_they_are() -> None:
    events = [
        created("/money/invoice-acme.md", "invoice for acme, hours of work", at_ms=1),
        created("/money/invoice-globex.md", "invoice for globex, hours of work", at_ms=2),
        created("/garden/beans.md", "beans want water", at_ms=3),
        event(
            "file_move", "/bills/invoice-acme.md", at_ms=4, old_path="/money/invoice-acme.md", new_path="/bills/invoice-acme.md"
        ),
        event("file_move", "/bills/invoice-globex.md", at_ms=5, old_path="/money/invoice-globex.md", new_path="/bills/x.md"),
    ]
    best = suggest(events, "Invoice Initech.md", "an invoice for initech: hours of work")[0]
    assert (best.folder, best.name) == ("/r/bills", "invoice-initech.md")
    assert best.evidence[0].startswith("/r/bills/invoice-")
    equally = [created("/a/beans.md", "dry", at_ms=1), replace(created("/a/beans.md", "dry", at_ms=2), root="/other")]
    assert [one.folder for one in suggest(equally, "beans.md")] == ["/other/a", "/r/a"]
    assert [one.folder for one in suggest(equally, "beans.md", named_folder="/r/a")] == ["/r/a", "/other/a"]
    assert suggest([], "x.md") == []


def test_what_is_done_again_and_again_is_a_draft() -> None:
    events = [
        one
        for number in range(3)
        for one in (
            event("file_read", "/template.md", at_ms=number * 10**7, session=f"s{number}"),
            created(f"/2026-11-0{number}.md", "x", at_ms=number * 10**7 + 1, session=f"s{number}"),
            event("file_edit", "/index.md", at_ms=number * 10**7 + 2, session=f"s{number}"),
        )
    ]
    (one,) = procedures(events)
    assert one.steps == ("read /template.md", "write /N-N-N.md", "edit /index.md")
    assert one.sessions == ("s0", "s1", "s2")
    assert "1. Read /template.md" in skill(one, 1)
    assert procedures(events[:6]) == []


def test_engrams_are_the_same_each_time() -> None:
    first, second = engram("s", SESSION), engram("s", list(reversed(SESSION)))
    assert first == second
    assert isinstance(first, Engram)
