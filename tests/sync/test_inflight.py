"""What becomes of files after the server took them."""

from __future__ import annotations

import pytest

from memdir.sync.push.processing import POLL_MAX_S
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer

POLL = "GET /v3/documents/processing"


def counts(mount: Mount) -> tuple[int, int]:
    status = mount.engine.status()
    return status.progress.files, status.failed


def test_one_question_follows_all_files_and_tells_which_are_done_and_which_failed(mount: Mount, server: FakeServer) -> None:
    for number in range(20):
        server.in_pipeline[f"/{number}"] = None
        mount.write(f"/{number}", str(number).encode())
    mount.sync()
    assert counts(mount) == (20, 0)
    for number in range(15):
        del server.in_pipeline[f"/{number}"]
    server.in_pipeline["/19"] = "no text in it"
    server.requests.clear()
    assert mount.engine.inflight.poll()
    assert server.requests == [POLL]
    assert counts(mount) == (4, 1)
    assert [(file.path, file.error) for file in mount.engine.inflight.failed()] == [("/19", "no text in it")]


def test_without_files_in_work_nothing_is_asked(mount: Mount, server: FakeServer) -> None:
    mount.write("/a", b"1")
    mount.sync()
    server.requests.clear()
    mount.clock.advance(3600)
    assert mount.engine.inflight.wait_s() is None
    assert not mount.engine.inflight.poll_if_due()
    assert server.requests == []


def test_questions_become_rare_and_soon_again_after_something_new(mount: Mount, server: FakeServer) -> None:
    server.in_pipeline |= {"/a": None, "/b": None}
    mount.write("/a", b"1")
    mount.sync()
    server.requests.clear()
    waits = []
    for _ in range(20):
        wait_s = mount.engine.inflight.wait_s()
        assert wait_s is not None
        waits.append(round(wait_s, 6))
        mount.clock.advance(wait_s)
        mount.engine.inflight.poll_if_due()
    assert waits == sorted(waits)
    assert waits[-1] == POLL_MAX_S
    assert server.requests.count(POLL) == 20
    mount.write("/b", b"1")
    mount.sync()
    assert (mount.engine.inflight.wait_s() or 0.0) < 1.0


def test_what_others_put_is_followed_as_well_and_forgotten_with_the_file(mount: Mount, server: FakeServer) -> None:
    mount.sync()
    server.in_pipeline |= {"/theirs": None, "/bad": "it is damaged", "/d/x": None}
    for path in ("/theirs", "/bad", "/d/x"):
        server.write(path, b"1")
    mount.sync()
    assert counts(mount) == (2, 1)
    server.rename("/d", "/e")
    server.remove("/theirs")
    mount.sync()
    assert counts(mount) == (1, 1)
    server.in_pipeline.pop("/bad")
    server.write("/bad", b"repaired")
    mount.sync()
    assert counts(mount) == (1, 0)


def test_a_retry_lets_the_server_try_again(mount: Mount, server: FakeServer) -> None:
    server.in_pipeline["/a"] = "out of memory"
    mount.write("/a", b"1")
    mount.sync()
    assert counts(mount) == (0, 1)
    assert mount.engine.retry("/a") == 1
    assert counts(mount) == (1, 0)
    del server.in_pipeline["/a"]
    mount.engine.inflight.poll()
    assert counts(mount) == (0, 0)
    assert mount.engine.retry(None) == 0


def test_what_was_in_work_is_asked_for_after_a_restart(mount: Mount, server: FakeServer) -> None:
    server.in_pipeline["/a"] = None
    mount.write("/a", b"1")
    mount.sync()
    mount.restart()
    del server.in_pipeline["/a"]
    mount.sync()
    assert mount.engine.inflight.wait_s() == 0
    mount.engine.inflight.poll()
    assert counts(mount) == (0, 0)


@pytest.mark.parametrize("status", [500, 404])
def test_a_server_that_does_not_say_leaves_what_is_known(mount: Mount, server: FakeServer, status: int) -> None:
    server.in_pipeline["/a"] = None
    mount.write("/a", b"1")
    mount.sync()
    server.fault("GET", "/v3/documents/processing", status=status, times=9)
    mount.clock.advance(1.0)
    assert not mount.engine.inflight.poll_if_due()
    assert counts(mount) == (1, 0)
