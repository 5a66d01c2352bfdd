"""Two mounts change one file while the server is away: what can be merged is, what cannot is kept twice, listed and settled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, eventually, tree_of

pytestmark = pytest.mark.mount
BASE = "".join(f"line {number}\n" for number in range(8))


@pytest.fixture
def places(memdir: Memdir, name: str) -> Iterator[tuple[Path, Path]]:
    first, second = (memdir.mount(name, "--path", memdir.folder / f"{name}-{letter}") for letter in "ab")
    yield first, second
    memdir.run("unmount", name, "--all", "--force", expect=(0, 1, 2))


def settle(memdir: Memdir, places: tuple[Path, Path]) -> None:
    """Until both show the same and nothing waits."""

    def equal() -> bool:
        for place in places:
            memdir.run("sync", place, "--wait")
        return tree_of(places[0]) == tree_of(places[1])

    eventually(equal, "both places show the same")


@pytest.mark.promise("sync.merge")
@pytest.mark.promise("sync.conflicts-command")
def test_edits_of_both_are_merged_or_kept_twice_and_settled_by_commands(memdir: Memdir, places: tuple[Path, Path]) -> None:
    first, second = places
    (first / "plan.md").write_text(BASE)
    (first / "log.md").write_text(BASE)
    settle(memdir, places)
    memdir.run("server", "stop")
    (first / "plan.md").write_text(BASE.replace("line 1\n", "first\n"))
    (second / "plan.md").write_text(BASE.replace("line 6\n", "second\n"))
    (first / "log.md").write_text(BASE.replace("line 1\n", "first\n"))
    (second / "log.md").write_text(BASE.replace("line 1\n", "second\n"))
    settle(memdir, places)
    assert (first / "plan.md").read_text() == BASE.replace("line 1\n", "first\n").replace("line 6\n", "second\n")
    listed = [memdir.run("conflicts", place, "--json").json() for place in places]
    assert [[row["original"] for row in rows] for rows in listed] == [["/log.md"], ["/log.md"]]
    [row] = listed[0]
    assert listed[1][0]["copy"] == row["copy"]
    assert "memdir conflicts" in memdir.run("status", first).out
    assert memdir.status(str(second))["conflicts"] == 1
    copy = Path(f"{first}{row['copy']}")
    sides = {(first / "log.md").read_text(), copy.read_text()}
    assert sides == {BASE.replace("line 1\n", "first\n"), BASE.replace("line 1\n", "second\n")}
    shown = memdir.run("conflicts", "show", first / "log.md").out
    assert {"-first", "+second"} <= set(shown.splitlines()) or {"-second", "+first"} <= set(shown.splitlines())
    wanted = copy.read_text()
    memdir.run("conflicts", "resolve", second / "log.md", "--keep", "copy")
    settle(memdir, places)
    assert (first / "log.md").read_text() == wanted
    assert sorted(tree_of(first)) == ["log.md", "plan.md"]
    for place in places:
        assert "no file of" in memdir.run("conflicts", place, expect=1).err
        assert memdir.status(str(place))["conflicts"] == 0
    versions = memdir.run("versions", first / "log.md", "--json").json()
    assert len(versions) >= 2, "what went can come back"
