"""The checker finds what it is there for, in histories made by hand, and finds nothing in histories in order."""

from __future__ import annotations

import pytest

from tests.checker.history import EMPTY, SERVER, History, Look, Op, Step, check, digest, story

ONE, TWO, THREE = (digest(text) for text in (b"one", b"two", b"three"))
PATH = "/team/f"


def op(
    machine: str, at_s: float, puts: dict[str, str] | None = None, removes: dict[str, str | None] | None = None, **more: object
) -> Op:
    return Op(
        machine=machine, what="write", started_s=at_s, ended_s=at_s + 0.5, puts=puts or {}, removes=removes or {}, **more  # type: ignore[arg-type]
    )  # fmt: skip


def look(machine: str, at_s: float, found: str | None, path: str = PATH) -> Look:
    return Look(machine=machine, path=path, started_s=at_s, ended_s=at_s + 0.1, found=found)


def put(seq: int, found: str, path: str = PATH) -> Step:
    return Step(seq=seq, kind="put", path=path, found=found)


def ended(tree: dict[str, str], **more: dict[str, str]) -> dict[str, dict[str, str]]:
    return {SERVER: tree, "a": dict(tree), "b": dict(tree), **more}


def rules(history: History) -> set[str]:
    return {finding.rule for finding in check(history)}


def test_a_history_in_order_has_no_findings() -> None:
    history = History(
        ops=[
            op("a", 1, {PATH: ONE}),
            op("b", 3, {PATH: TWO}, {PATH: ONE}),
            op("b", 5, {"/team/g": TWO}, {PATH: TWO}),
            op("a", 7, {"/own-a/x": THREE}),
        ],
        looks=[look("a", 2, ONE), look("b", 2.5, ONE), look("a", 4, TWO), look("a", 6, None), look("a", 8, THREE, "/own-a/x")],
        steps=[put(1, ONE), put(2, TWO), Step(seq=3, kind="move", path="/team/g", source=PATH), put(4, THREE, "/own-a/x")],
        finals=ended({"/team/g": TWO, "/own-a/x": THREE}),
    )
    assert check(history) == []


@pytest.mark.parametrize("steps", [[], [put(1, ONE)], [put(1, ONE), Step(seq=2, kind="delete", path=PATH)]])
def test_a_write_that_is_nowhere_is_lost(steps: list[Step]) -> None:
    assert "lost" in rules(History(ops=[op("a", 1, {PATH: ONE})], steps=steps, finals=ended({})))


def test_a_write_without_an_answer_may_be_lost() -> None:
    assert rules(History(ops=[op("a", 1, {PATH: ONE}, answered=False)], finals=ended({}))) == set()


def test_a_delete_from_before_the_write_does_not_excuse_its_loss() -> None:
    ops = [op("b", 1, {PATH: ONE}), op("b", 2, {}, {PATH: ONE}), op("a", 5, {PATH: TWO})]
    steps = [put(1, ONE), put(2, TWO), Step(seq=3, kind="delete", path=PATH)]
    assert rules(History(ops=ops, steps=steps, finals=ended({}))) == {"lost"}
    late = [*ops[:2], op("a", 2.2, {PATH: TWO})]
    assert rules(History(ops=late, steps=steps, finals=ended({}))) == set(), "they were at it at the same time"


def test_older_contents_over_newer_ones_are_stale() -> None:
    ops = [op("b", 1, {PATH: ONE}), op("a", 5, {PATH: TWO})]
    steps = [put(1, TWO), put(2, ONE)]
    assert rules(History(ops=ops, steps=steps, finals=ended({PATH: ONE}))) == {"lost", "stale"}
    kept = ended({PATH: ONE, "/team/f (conflict)": TWO})
    assert rules(History(ops=ops, steps=steps, finals=kept)) == set(), "the other is kept beside it"
    at_once = [op("b", 4.8, {PATH: ONE}), op("a", 5, {PATH: TWO})]
    assert rules(History(ops=at_once, steps=steps, finals=ended({PATH: ONE}))) == set()


def test_what_was_deleted_does_not_come_back() -> None:
    ops = [op("a", 1, {PATH: ONE}), op("b", 3, {}, {PATH: ONE})]
    assert rules(History(ops=ops, steps=[put(1, ONE)], finals=ended({PATH: ONE}))) == {"resurrected"}
    again = [*ops, op("a", 2.9, {PATH: ONE}, {"/team/g": ONE})]
    assert rules(History(ops=again, finals=ended({PATH: ONE}))) == set(), "it was renamed back at that time"


def test_what_was_deleted_is_not_seen_again() -> None:
    ops = [op("a", 1, {PATH: ONE}), op("a", 3, {}, {PATH: ONE})]
    looks = [look("b", 2, ONE), look("b", 5, None), look("b", 6, ONE)]
    assert rules(History(ops=ops, looks=looks, steps=[put(1, ONE)], finals=ended({}))) == {"backwards"}


def test_nobody_goes_back_to_an_older_version() -> None:
    ops = [op("a", 1, {PATH: ONE}), op("a", 3, {PATH: TWO}, {PATH: ONE})]
    finals = ended({PATH: TWO})
    forwards = [look("b", 2, ONE), look("b", 4, TWO), look("b", 5, TWO)]
    assert rules(History(ops=ops, looks=forwards, finals=finals)) == set()
    assert rules(History(ops=ops, looks=[*forwards, look("b", 6, ONE)], finals=finals)) == {"backwards"}
    assert rules(History(ops=ops, looks=[look("a", 6, ONE)], finals=finals)) == {"backwards"}, (
        "its own newer write counts as seen"
    )


def test_a_look_during_a_write_may_see_what_was_before() -> None:
    ops = [op("a", 1, {PATH: ONE}), op("a", 3, {PATH: TWO}, {PATH: ONE})]
    looks = [look("a", 3.45, ONE), look("a", 4, TWO)]
    assert rules(History(ops=ops, looks=looks, finals=ended({PATH: TWO}))) == set()


def test_the_view_may_go_where_the_servers_renames_go() -> None:
    ops = [op("a", 1, {PATH: ONE}), op("a", 2, {"/team/g": ONE}, {PATH: ONE}), op("a", 3, {PATH: TWO}, {"/team/g": ONE})]
    looks = [look("b", 4, ONE), look("b", 5, None), look("b", 6, ONE), look("b", 7, TWO)]
    there, back = (Step(seq=2, kind="move", path="/team/g", source=PATH), Step(seq=3, kind="move", path=PATH, source="/team/g"))
    history = History(ops=ops, looks=looks, steps=[put(1, ONE), there, back, put(4, TWO)], finals=ended({PATH: TWO}))
    assert rules(history) == set()
    history.steps = [put(1, ONE), there, put(4, TWO)]
    assert rules(history) == {"backwards"}


def test_a_rename_is_seen_before_what_was_written_into_the_file_in_the_meantime() -> None:
    other = "/team/g"
    ops = [op("a", 1, {PATH: ONE}), op("a", 2, {PATH: TWO}, {PATH: ONE}), op("a", 3, {other: TWO}, {PATH: TWO})]
    ops += [op("a", 4, {PATH: TWO}, {other: TWO})]
    looks = [look("b", 1.5, ONE), look("b", 5, None), look("b", 6, ONE), look("b", 7, TWO)]
    there, back = (Step(seq=3, kind="move", path=other, source=PATH), Step(seq=4, kind="move", path=PATH, source=other))
    steps = [put(1, ONE), put(2, TWO), there, back]
    assert rules(History(ops=ops, looks=looks, steps=steps, finals=ended({PATH: TWO}))) == set()
    assert rules(History(ops=ops, looks=looks, steps=steps[:2], finals=ended({PATH: TWO}))) == {"backwards"}


def test_torn_and_foreign_contents_are_found() -> None:
    torn = digest(b"onetwo")
    history = History(ops=[op("a", 1, {PATH: ONE}, in_place=True)], finals=ended({PATH: ONE}))
    history.looks = [look("b", 2, EMPTY), look("b", 3, ONE)]
    assert rules(history) == set(), "a file is empty between its truncation and the write"
    history.looks.append(look("b", 2.5, torn))
    assert rules(history) == {"foreign"}
    assert rules(History(finals=ended({PATH: torn}))) == {"foreign"}


def test_a_renamed_file_keeps_its_contents() -> None:
    ops = [op("a", 1, {PATH: ONE}), op("a", 3, {"/team/g": ONE}, {PATH: ONE})]
    steps = [put(1, ONE), Step(seq=2, kind="delete", path=PATH)]
    assert rules(History(ops=ops, steps=[*steps, put(3, ONE, "/team/g")], finals=ended({"/team/g": ONE}))) == set()
    # The server's delete has a cause, and what it deleted was to be somewhere else afterwards.
    assert rules(History(ops=ops, steps=steps, finals=ended({}))) == {"lost"}


def test_the_only_writer_of_a_path_reads_what_it_wrote_over_a_kill_too() -> None:
    path = "/own-a/x"
    ops = [op("a", 1, {path: ONE}), op("a", 3, {path: TWO}, answered=False)]
    for found, broken in ((ONE, set()), (TWO, set()), (None, {"own"})):
        looks = [look("a", 5, found, path)]
        assert rules(History(ops=ops, looks=looks, finals=ended({path: ONE}))) == broken
    ops.append(op("a", 6, {path: THREE}))
    assert "own" in rules(History(ops=ops, finals=ended({path: ONE, "/elsewhere": THREE})))


def test_lines_are_there_and_in_order() -> None:
    ops = [op("a", at, removes={"/logs/own-a.log": None}, line=f"a {at}") for at in (1, 2, 3)]
    ops += [op(who, 4, removes={"/logs/shared.log": None}, line=f"{who} shared") for who in "ab"]
    lines = {
        "/logs/own-a.log": ["a 1", "a 2", "a 3"],
        "/logs/shared.log": ["a shared"],
        "/logs/shared (conflict).log": ["b shared"],
    }
    assert rules(History(ops=ops, lines=lines)) == set()
    assert rules(History(ops=ops, lines=lines | {"/logs/own-a.log": ["a 1", "a 3"]})) == {"line"}
    assert rules(History(ops=ops, lines=lines | {"/logs/own-a.log": ["a 1", "a 3", "a 2"]})) == {"line"}
    assert rules(History(ops=ops, lines=lines | {"/logs/shared.log": []})) == {"line"}
    assert rules(History(ops=ops, lines=lines | {"/logs/own-a.log": ["a 1", "a 2", "a 3", "a 1a 2"]})) == {"foreign", "line"}


def test_mounts_that_differ_at_the_end_are_found() -> None:
    history = History(ops=[op("a", 1, {PATH: ONE})], finals=ended({PATH: ONE}, c={}))
    assert rules(history) == {"apart"}


def test_a_story_tells_what_happened_to_a_path() -> None:
    ops = [op("a", 1, {PATH: ONE}), op("b", 3, {}, {}, below="/team"), op("b", 3, {"/other": TWO})]
    told = story(
        History(ops=ops, looks=[look("b", 2, ONE)], steps=[put(1, ONE), Step(seq=2, kind="delete", path="/team")]), PATH
    )
    assert [line.split()[-1] for line in told] == [ONE[:8], ONE[:8], "write", ONE[:8], "nothing"]
