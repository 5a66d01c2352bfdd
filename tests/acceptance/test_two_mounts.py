"""A memory mounted at several places of one machine: each has its own data and daemon, all show the same, and each is meant
by its place where the name could mean any."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, eventually, is_mounted, kill, tree_of

pytestmark = pytest.mark.mount
VISIBLE_S = 2.0


@pytest.fixture
def places(memdir: Memdir, name: str) -> Iterator[tuple[Path, Path]]:
    first, second = (memdir.mount(name, "--path", memdir.folder / f"{name}-{letter}") for letter in "ab")
    yield first, second
    memdir.run("unmount", name, "--all", "--force", expect=(0, 1, 2))


def pid_of(memdir: Memdir, place: Path) -> int:
    answer = memdir.status(str(place))["pid"]
    assert isinstance(answer, int)
    return answer


def mounted_as(memdir: Memdir, name: str) -> dict[Path, str]:
    """The running and crashed mounts of a name: where they are, and which folder of data they have."""
    return {Path(row["path"]): row["id"] for row in memdir.run("list", "--json").json() if row["name"] == name}


def equal(first: Path, second: Path) -> bool:
    return tree_of(first) == tree_of(second)


def seen_within(check: Callable[[], bool]) -> float:
    """Poll without a pause; how long it took."""
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < 20
    return time.monotonic() - began


@pytest.mark.promise("sync.two-mounts")
def test_what_is_done_at_one_place_is_seen_at_the_other(memdir: Memdir, places: tuple[Path, Path]) -> None:
    first, second = places
    assert len(set(mounted_as(memdir, first.name[:-2]).values())) == 2
    (first / "plan.md").write_text("We meet on Friday.\n")
    times = [seen_within((second / "plan.md").exists)]
    assert (second / "plan.md").read_text() == "We meet on Friday.\n"
    (second / "plan.md").write_text("We meet on Monday.\n")
    times.append(seen_within(lambda: (first / "plan.md").read_text() == "We meet on Monday.\n"))
    (first / "folder").mkdir()
    (first / "folder" / "a.md").write_text("a")
    times.append(seen_within((second / "folder" / "a.md").exists))
    (second / "folder").rename(second / "moved")
    times.append(seen_within(lambda: (first / "moved" / "a.md").exists() and not (first / "folder").exists()))
    (first / "moved" / "a.md").unlink()
    times.append(seen_within(lambda: not (second / "moved" / "a.md").exists()))
    assert sorted(times)[len(times) // 2] < VISIBLE_S, times
    assert (first / "profile.md").read_bytes() == (second / "profile.md").read_bytes()


def test_a_new_mount_has_all_names_when_its_command_ends(memdir: Memdir, name: str) -> None:
    """A script goes on with the files."""
    first = memdir.mount(name, "--path", memdir.folder / f"{name}-a")
    try:
        for number in range(400):
            folder = first / f"d{number % 7}"
            folder.mkdir(exist_ok=True)
            (folder / f"f{number}.md").write_text(f"{number}\n")
        memdir.run("sync", str(first))
        names = {path.relative_to(first) for path in first.rglob("*.md")}
        second = memdir.mount(name, "--path", memdir.folder / f"{name}-b")
        assert {path.relative_to(second) for path in second.rglob("*.md")} == names
        assert len(names) > 400  # and profile.md
    finally:
        memdir.run("unmount", name, "--all", "--force", expect=(0, 1, 2))


@pytest.mark.promise("sync.two-mounts")
def test_both_work_at_once_while_a_third_comes_and_goes(memdir: Memdir, name: str, places: tuple[Path, Path]) -> None:
    stop = threading.Event()

    def work(place: Path, who: str) -> None:
        number = 0
        while not stop.wait(0.01):
            (place / f"{who}-{number % 7}.md").write_text(f"{who} {number}\n")
            with (place / f"{who}.log").open("a") as log:
                log.write(f"{number}\n")
            (place / f"{who}-{number % 7}.md").rename(place / f"{who}-kept-{number % 5}.md")
            number += 1

    workers = [threading.Thread(target=work, args=(place, f"w{at}")) for at, place in enumerate(places)]
    for worker in workers:
        worker.start()
    try:
        third = memdir.mount(name, "--path", memdir.folder / f"{name}-c")
        (third / "third.md").write_text("only while I am here")
        memdir.run("unmount", third)
    finally:
        stop.set()
        for worker in workers:
            worker.join(30)
    for place in places:
        memdir.run("sync", place, "--wait")
    eventually(lambda: equal(*places), "both places show the same")
    left = tree_of(places[0])
    assert left["third.md"] == b"only while I am here"
    assert not [path for path in left if "conflict" in path], "nobody touched the files of the other"
    for who in ("w0", "w1"):
        lines = left[f"{who}.log"].decode().split()
        assert lines == [str(number) for number in range(len(lines))]


def test_where_the_name_could_mean_any_the_place_decides(memdir: Memdir, name: str, places: tuple[Path, Path]) -> None:
    first, second = places
    (first / "here.md").write_text("the night train to Vienna\n")
    memdir.run("sync", first, "--wait")
    for command in ("status", "unmount", "sync", "queue", "retry", "logs"):
        refused = memdir.run(command, name, expect=2)
        assert str(first) in refused.err, command
        assert str(second) in refused.err, command
    for place in places:
        assert memdir.run("status", "--json", ".", cwd=place).json()["path"] == str(place)
        assert memdir.run("grep", "night train", cwd=place).out == "here.md:1:the night train to Vienna\n"
        assert memdir.run("queue", cwd=place, expect=1).err == f"memdir: nothing waits in {name}\n"
        memdir.run("retry", cwd=place, expect=1)
        assert f"mounted at {place}" in memdir.run("logs", cwd=place).out
    refused = memdir.run("fsck", name, expect=2)
    assert f"`memdir unmount {first}`" in refused.err or f"`memdir unmount {second}`" in refused.err
    again = memdir.run("mount", name, "--path", second)
    assert again.out == f"{name} is already mounted at {second}\n"
    rows = {row["path"] for row in memdir.run("list", "--json").json() if row["name"] == name}
    assert rows == {str(first), str(second)}
    memdir.run("unmount", second)
    assert is_mounted(first)
    assert memdir.run("fsck", name).out == f"{name}: clean\n", "the mounted one is left out"
    assert memdir.status(name)["path"] == str(first), "now the name is enough"
    memdir.run("mount", name, "--path", second)
    gone = memdir.run("unmount", name, "--all", "--json").json()
    assert {row["path"] for row in gone} == {str(first), str(second)}
    assert memdir.run("unmount", name, "--all", expect=1).err == f"memdir: {name} was not mounted\n"


def test_after_a_crash_each_place_goes_on_with_its_own_data(memdir: Memdir, name: str, places: tuple[Path, Path]) -> None:
    first, second = places
    before = mounted_as(memdir, name)
    for place in places:
        kill(pid_of(memdir, place))
    memdir.mount(name, "--path", second)
    third = memdir.mount(name, "--path", memdir.folder / f"{name}-c")
    memdir.mount(name, "--path", first)
    after = mounted_as(memdir, name)
    assert {place: after[place] for place in places} == before
    assert after[third] not in before.values(), "a crashed mount's folder waits for the mount that comes back"
    for place in (first, second, third):
        memdir.run("unmount", place)
    assert memdir.run("fsck", name).out.count(": clean\n") == 3


def test_a_crashed_mount_that_goes_on_elsewhere_leaves_no_dead_place(memdir: Memdir, name: str) -> None:
    old = memdir.mount(name, "--path", memdir.folder / f"{name}-old", "--no-sync")
    (old / "only-here.md").write_text("never synced")
    kill(pid_of(memdir, old))
    new = memdir.mount(name, "--path", memdir.folder / f"{name}-new", "--no-sync")
    assert (new / "only-here.md").read_text() == "never synced"
    assert not is_mounted(old)
    assert not old.exists(), "memdir had made it"
    memdir.run("unmount", new)
