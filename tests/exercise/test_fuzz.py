"""Whatever arrives as a request: no exception, no hang, and a reply that the kernel takes, or silence where it expects none."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.fs.fuse import abi
from memdir.fs.fuse.abi import Op
from memdir.fs.types import ROOT_INO
from tests.exercise import fuzz
from tests.exercise.capture import load
from tests.exercise.fuzz import BY_HAND, FindingError, Target, reply_trouble, request
from tests.memory_folder import memory_folder


@pytest.fixture
def folder(caplog: pytest.LogCaptureFixture) -> Iterator[Path]:
    """In memory where there is a place for it, because FSYNC is a request like any other. Error lines are provoked here."""
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="memdir-fuzz-", dir=memory_folder()) as where:
        yield Path(where)
    logging.disable(logging.NOTSET)


def fuzzed(seed: int, rounds: int, *, within_s: float) -> dict[str, Any]:
    """What a process of its own tells that sent those requests.

    In a process of its own, because CPython 3.11 has hung four times in a long-lived one with many threads as soon as lines
    were traced, in C and with the GIL held, so that no timeout of Python's ended it. Should that happen here too, the requests
    are sent again without being guided by coverage: what they must not do is the same.
    """
    command = [sys.executable, "-m", "tests.exercise.fuzz", "--seed", str(seed), "--rounds", str(rounds), "--json"]
    for mode in ([], ["--blind"]):
        done = subprocess.run(
            [*command, "--within", str(within_s), *mode], capture_output=True, text=True, check=False, timeout=within_s + 60
        )
        if not done.stderr.startswith("Timeout (") or mode:
            break
    assert done.returncode == 0, done.stderr[-6000:]
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.timeout(900)
@pytest.mark.promise("exercise.requests-fuzzed")
def test_no_request_breaks_the_driver() -> None:
    told = fuzzed(1, 36, within_s=400)
    assert told["requests"] == 72_000
    if told["lines"]:
        assert told["found"] > 50  # coverage guides: inputs that reached new lines became seeds
        handlers = {"lookup", "batch_forget", "symlink", "mknod", "mkdir", "link", "unlink", "rmdir", "rename", "rename2"}
        assert handlers <= set(told["handlers"])


def test_the_captured_requests_hold_every_kind_that_a_handler_takes() -> None:
    for profile in ("fast", "observed"):
        kinds = {abi.IN_HEADER.unpack_from(message)[1] for message in [*load(profile), *BY_HAND]}
        assert {op for op in Op if op not in kinds} <= {Op.RELEASE, Op.SETLK, Op.IOCTL}


@pytest.mark.parametrize("profile", ["fast", "observed"])
def test_the_captured_requests_make_the_captured_tree_again(folder: Path, profile: str) -> None:
    target = Target("sqlite", profile, folder / "cache")
    try:
        names = sorted(entry.name for entry in target.fs.readdir(ROOT_INO))
        assert names == [b"c", b"d", b"hard", b"l2", b"mapped"] or names == [b"d", b"hard", b"l2", b"mapped"]
        assert target.dispatcher.failures == 0
    finally:
        target.close()


def test_the_fuzzer_sees_replies_that_the_kernel_would_refuse(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    getattr_ = request(Op.GETATTR, ROOT_INO, bytes(16))
    assert reply_trouble(getattr_, None) == "no reply"
    for reply, trouble in (
        (abi.OUT_HEADER.pack(16, -512, 77), "error -512"),
        (abi.OUT_HEADER.pack(16, 5, 77), "error 5"),
        (abi.OUT_HEADER.pack(20, -5, 77) + bytes(4), "with 4 bytes"),
        (abi.OUT_HEADER.pack(16, 0, 77), "0 bytes where 104 belong"),
        (abi.OUT_HEADER.pack(16, -5, 78), "unique 78"),
        (abi.OUT_HEADER.pack(17, -5, 77), "17 bytes of 16"),
    ):
        assert trouble in (reply_trouble(getattr_, reply) or "")
    read = request(Op.READ, 4, abi.READ_IN.pack(0, 0, 10, 0, 0, 0, 0))
    assert reply_trouble(read, abi.OUT_HEADER.pack(27, 0, 77) + bytes(11)) == "11 bytes for a buffer of 10"
    assert reply_trouble(request(Op.FORGET, 4, bytes(8)), abi.OUT_HEADER.pack(16, 0, 77)) == "a reply that nobody waits for"

    def broken(self: object, ino: int) -> object:
        raise ZeroDivisionError

    target = Target("memory", "fast", folder / "cache")
    monkeypatch.setattr(fuzz.ViewVfs, "statfs", broken)
    with pytest.raises(FindingError, match=r"a defect answered as EIO: (AttributeError|TypeError|ZeroDivisionError)"):
        target.ask(request(Op.STATFS, ROOT_INO))


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.promise("exercise.requests-fuzzed")
@pytest.mark.parametrize("seed", range(100, 110))
def test_no_request_breaks_the_driver_in_millions_more(seed: int) -> None:
    assert fuzzed(seed, 500, within_s=3000)["requests"] == 1_000_000
