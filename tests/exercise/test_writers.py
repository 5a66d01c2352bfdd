"""Processes that write at the same time: nothing is lost, torn or done twice, and nobody waits for ever."""

from __future__ import annotations

import os
import selectors
import statistics
import time
from pathlib import Path

import pytest

from tests.exercise.difference import OwnMount
from tests.exercise.writers import STRIPE_BYTES, Team, fill, records, run

pytestmark = pytest.mark.mount

WRITERS = 4
_MIB = 1 << 20


@pytest.mark.promise("exercise.writers")
def test_appended_records_are_neither_lost_nor_torn(own: OwnMount) -> None:
    """Also those that one write(2) brings in several requests of the kernel."""
    sizes = [(size * 7919) % 5000 for size in range(150)] + [200_000, 131_072, 65_519, _MIB, 2 * _MIB + 12_345, 1]
    run("append", own.path, WRITERS, sizes=sizes)
    found = list(records((own.path / "log").read_bytes()))
    assert sorted(found) == [(writer, record) for writer in range(WRITERS) for record in range(len(sizes))]
    for writer in range(WRITERS):
        assert [record for who, record in found if who == writer] == list(range(len(sizes)))  # each in its own order


@pytest.mark.promise("exercise.writers")
def test_of_all_who_create_take_or_remove_a_name_exactly_one_succeeds(own: OwnMount) -> None:
    attempts = 60
    (own.path / "source").write_text("linked")
    for number in range(attempts):
        (own.path / f"doomed-{number}").touch()
        (own.path / f"token-{number}").write_text("token")
        (own.path / f"empty-{number}").mkdir()
    results = run("race", own.path, WRITERS, attempts=attempts)
    for kind in ("created", "folders", "unlinked", "taken", "given", "linked", "removed"):
        assert sorted(one for result in results for one in result[kind]) == list(range(attempts)), kind
    for number, result in enumerate(results):
        for one in result["created"]:
            assert (own.path / f"created-{one}").read_text() == str(number)
        for one in result["taken"]:
            assert (own.path / f"taken-{number}-{one}").read_text() == "token"
        for one in result["given"]:
            assert (own.path / f"given-{one}").read_text() == str(number)
    assert os.stat(own.path / "source").st_nlink == attempts + 1


@pytest.mark.promise("exercise.writers")
def test_writers_of_different_parts_of_a_file_do_not_disturb_each_other(own: OwnMount) -> None:
    count = 200
    (own.path / "striped").touch()
    run("stripes", own.path, WRITERS, total=count, writers=WRITERS)
    data = (own.path / "striped").read_bytes()
    assert len(data) == count * STRIPE_BYTES
    for stripe in range(count):
        part = data[stripe * STRIPE_BYTES : (stripe + 1) * STRIPE_BYTES]
        assert part == fill(stripe % WRITERS, stripe, STRIPE_BYTES), stripe


@pytest.mark.promise("exercise.writers")
@pytest.mark.parametrize("kind", ["flock", "fcntl"])
def test_a_lock_keeps_the_others_out(own: OwnMount, kind: str) -> None:
    (own.path / "counter").write_bytes(b"%020d" % 0)
    run("count_up", own.path, WRITERS, rounds=100, kind=kind)
    assert int((own.path / "counter").read_bytes()) == WRITERS * 100


@pytest.mark.promise("exercise.writers")
def test_readers_of_a_file_that_is_truncated_see_no_foreign_bytes(own: OwnMount) -> None:
    (own.path / "shrinking").write_bytes(b"A" * 150_000)
    results = run("truncate_and_read", own.path, WRITERS, rounds=150, size=150_000)
    assert any(result["read"] for result in results[1:])


@pytest.mark.promise("exercise.writers")
def test_readers_of_a_file_that_is_replaced_always_find_a_whole_one(own: OwnMount) -> None:
    for name in ("left", "right"):
        (own.path / name).write_text(name)
    run("replace_and_read", own.path, 1, rounds=1)  # the first `whole`
    run("replace_and_read", own.path, WRITERS, rounds=150)
    assert sorted((own.path / name).read_text() for name in ("left", "right")) == ["left", "right"]


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def soak(own: OwnMount, seconds: float, *, growth_max_bytes: int) -> None:
    """Eight writers; the serving process is measured whenever one of them reports."""
    (own.path / "shared").mkdir()
    pid = own.process.pid
    memory: list[int] = []
    descriptors: list[int] = []
    heard: dict[int, bytes] = {}
    with Team("soak", own.path, 8, seconds=seconds) as team:
        started_s = time.monotonic()
        team.go()
        with selectors.DefaultSelector() as selector:
            for child in team.children:
                assert child.stdout is not None
                selector.register(child.stdout, selectors.EVENT_READ)
            while time.monotonic() < started_s + seconds * 0.95:
                ready = selector.select(timeout=20.0)
                assert ready, "no writer went on for 20 s"
                for key, _ in ready:
                    heard[key.fd] = (heard.get(key.fd, b"") + os.read(key.fd, 65536))[-65536:]
                memory.append(_resident_bytes(pid))
                descriptors.append(_descriptors(pid))
        results = team.results(heard)
    assert all(result["count"] > 20 for result in results), results
    third = len(memory) // 3
    middle, last = statistics.median(memory[third : 2 * third]), statistics.median(memory[2 * third :])
    assert last - middle <= growth_max_bytes, f"{(last - middle) / _MIB:.1f} MiB more in the last third of the time"
    assert max(descriptors[2 * third :]) <= max(descriptors[: 2 * third]) + 2
    assert max(descriptors) < 200


@pytest.mark.promise("exercise.soak")
def test_eight_writers_neither_stop_nor_make_the_daemon_grow(own: OwnMount) -> None:
    soak(own, 3.0 if own.label != "fast" else 10.0, growth_max_bytes=12 * _MIB)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.promise("exercise.soak")
def test_eight_writers_for_a_minute(own: OwnMount) -> None:
    soak(own, 60.0, growth_max_bytes=6 * _MIB)
