"""`memdir bench sync`: that it measures what it says, on real mounts of a real server."""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir_bench.figures import Figure
from memdir_bench.report import table
from memdir_bench.session import BenchError
from memdir_bench.sync import command, flow, wire
from memdir_bench.sync.fixtures import Fixture, fixture
from memdir_bench.sync.goals import GOALS, figure
from memdir_bench.sync.proxy import Traffic, counting_proxy

SIZES = flow.Sizes(small=40, large=1, large_mib=2, edits=3, contents=10, idle_s=0.3, grow=(5, 12), grow_idle_s=0.2)
SCRIPT = Path(__file__).parents[2] / "scripts" / "sync_figures.py"


@pytest.fixture(scope="module")
def one() -> Iterator[Fixture]:
    with fixture() as running:
        yield running


def named(figures: Iterator[Figure]) -> dict[str, Figure]:
    return {made.name: made for made in figures}


@pytest.mark.long
@pytest.mark.mount
@pytest.mark.promise("flow.bench")
def test_everything_that_is_promised_is_measured_on_real_mounts(one: Fixture) -> None:
    found: dict[str, Figure] = {}
    for part in command.PARTS.values():
        found |= named(part(one, SIZES))
    assert found.keys() >= GOALS.keys()
    assert found["untar_rate"].samples == SIZES.small
    assert found["visible_p50"].value <= found["visible_max"].value
    for name in ("push_large_rate", "pull_large_rate", "pull_names_rate", "pull_read_rate", "prefetch_rate", "follow_rate"):
        assert found[name].value > 0, name
    assert found["small_edit_wire"].value > 100
    assert found["append_1m_wire"].value > found["small_edit_wire"].value
    assert found["touch_wire"].value == 0
    assert {f"{name}_{size}_rate" for name in ("push", "follow") for size in SIZES.grow} <= found.keys()
    assert found["status_12"].value > 0
    with one.client() as client:
        assert sum(entry.kind == "file" for entry in client.list_files("grown").entries) == max(SIZES.grow)
        assert len(client.list_files("pushed").entries) >= SIZES.small


def test_the_proxy_counts_what_goes_through_it() -> None:
    """Two requests on one connection, the end of the first line cut in two."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        got: list[bytes] = []

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                while b"GET /b" not in b"".join(got) or not got[-1].endswith(b"\r\n\r\n"):
                    got.append(connection.recv(100))
                connection.sendall(b"12345")

        thread = threading.Thread(target=answer)
        thread.start()
        with counting_proxy(f"http://127.0.0.1:{server.getsockname()[1]}") as proxy:
            port = int(proxy.url.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as near:
                sent = (b"GET /a HTTP/1.1", b"\r\n\r\n", b"GET /b HTTP/1.1\r\n\r\n")
                for piece in sent:
                    near.sendall(piece)
                assert near.recv(5, socket.MSG_WAITALL) == b"12345"
            thread.join()
            assert b"".join(got) == b"".join(sent)
            assert proxy.traffic() - Traffic(requests=1) == Traffic(
                sent_bytes=sum(map(len, sent)), received_bytes=5, requests=1
            )  # fmt: skip


def test_a_part_that_cannot_be_measured_stops_none_of_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(_: Fixture, sizes: flow.Sizes) -> Iterator[Figure]:
        yield figure("visible_max", sizes.edits, "ms")
        raise BenchError("the other mount never showed it")

    class Nothing:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(command, "fixture", lambda _: Nothing())
    monkeypatch.setattr(
        command, "PARTS", {"visible": broken, "idle": lambda *_: iter([figure("idle_1_requests", 2, "1/min")]), "grow": broken}
    )
    report = command.run(argparse.Namespace(part=[], grow=False, quick=True, files=None, dir=None))
    assert [one["name"] for one in report["figures"]] == ["visible_max", "idle_1_requests"]
    assert report["failed"] == {"visible": "the other mount never showed it"}
    assert "not measured: visible" in table(report)


def test_changes_say_what_they_changed() -> None:
    assert all(change.changed_bytes > 0 for change in wire.changes())
    assert figure("visible_max", 2001, "ms").met is False
    assert figure("untar_rate", 200, "files/s").met is True


def test_a_recorded_run_is_written_into_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import sync_figures

    run = tmp_path / "run.json"
    made = [
        figure("visible_max", 2500, "ms", note="slow").as_json(), figure("chmod_wire", 1500, "bytes").as_json(),
        figure("push_100_rate", 300, "files/s").as_json(), figure("status_100", 1.5, "ms").as_json(),
        figure("idle_1_requests", 2.4, "1/min").as_json(), figure("push_large_rate", 50, "MB/s").as_json(),
    ]  # fmt: skip
    run.write_text(json.dumps({"figures": made, "machine": {"cpus": 2, "kernel": "6.18-x", "python": "3.11", "load_1m": 1}}))
    (tmp_path / "benchmarks.md").write_text(f"before\n{sync_figures.BEGIN}\nold\n<!-- end -->\nafter\n")
    monkeypatch.setattr(sync_figures, "DOCS", tmp_path)
    assert sync_figures.main([str(run)]) == 0
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| `visible_max` | 2,500 ms | 2,000 | no | slow |" in page
    assert "| `idle_1_requests` | 2.4 1/min |  |  |  |" in page
    assert "| 100 | 300 |  |  |  |  | 1.5 |  |" in page
    assert "`push_100_rate`" not in page
    assert "old" not in page
    assert subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, check=False).returncode == 2
