"""`memdir bench server`: that it measures what it says, on a real server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from memdir.cli.main import main
from memdir_bench.report import table
from memdir_bench.server import load, runs
from memdir_bench.server.fixtures import Fixture, fixture
from memdir_bench.server.goals import GOALS, figure
from memdir_bench.server.load import Load


async def answered(statuses: list[int], wanted: Load) -> load.Measured:
    """A server that answers with these statuses in turn, in two pieces, and then breaks the connection."""
    waiting = list(statuses)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while waiting:
                head = await reader.readuntil(b"\r\n\r\n")
                length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
                if length:
                    await reader.readexactly(int(length[0].split(b":")[1]))
                writer.write(b"HTTP/1.1 %d x\r\nContent-Length: 4\r\n\r\nab" % waiting.pop(0))
                await writer.drain()
                writer.write(b"cd")
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        return await load.run(Load(**{**vars_of(wanted), "urls": (f"http://127.0.0.1:{port}",)}))


def vars_of(wanted: Load) -> dict[str, object]:
    return {name: getattr(wanted, name) for name in Load.__dataclass_fields__}


@pytest.mark.parametrize("kind", ["put", "add", "get", "list", "search", "mixed"])
def test_errors_are_counted_and_are_no_samples(kind: str) -> None:
    wanted = Load(urls=(), key="k", kind=kind, clients=1, seconds=0.2)
    measured = asyncio.run(answered([200] * 3 + [503, 200, 429], wanted))
    assert measured.errors == {"503": 1, "429": 1, "0": 1}
    assert measured.count <= 4


def test_the_same_seed_sends_the_same_requests() -> None:
    for kind in ("put", "add", "get", "list", "search", "mixed"):
        makers = [load.requests(Load(urls=(), key="k", kind=kind, clients=1, seconds=1, seed=7), 3) for _ in range(2)]
        assert [makers[0]() for _ in range(20)] == [makers[1]() for _ in range(20)]


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> object:
    with fixture(tmp_path_factory.mktemp("stand") / "sqlite") as running:
        yield running


@pytest.mark.long
def test_what_is_measured_on_a_server_is_what_it_did(sqlite: Fixture) -> None:
    sizes = runs.Sizes(seconds=0.5, clients=(2,), documents=50, piped=5, deliveries=5, long_s=0.5, grow=(20, 40))
    found = {}
    for part in (runs.requests, runs.pipeline, runs.deliveries, runs.a_minute, runs.growth):
        found.update({made.name: made for made in part(sqlite, sizes)})
    for kind in runs.KINDS:
        assert found[f"sqlite.{kind}_2_rate"].value > 0
        assert found[f"sqlite.{kind}_2_p50"].value <= found[f"sqlite.{kind}_2_p99"].value
        assert found[f"sqlite.{kind}_2_server_cpu"].value > 0
        assert not found[f"sqlite.{kind}_2_rate"].note, "some requests were refused"
    assert found["sqlite.pipeline_rate"].value > 0
    assert found["sqlite.changes_delivered_p95"].samples == 5
    assert found["sqlite.minute_2_errors"].value == 0
    assert found["sqlite.get_40_rate"].samples > 0
    with sqlite.client() as client:
        there = client.post("/v3/documents/list", json={"containerTags": [f"{runs.TAG}-grow"]}).json()
    assert there["pagination"]["totalItems"] == 40


def test_a_server_that_cannot_start_is_a_failed_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path))
    arguments = [
        "bench",
        "server",
        "--store",
        "postgres",
        "--database-url",
        "postgresql://127.0.0.1:1/none",
        "--quick",
        "--json",
    ]
    assert main([*arguments, "--output", str(tmp_path / "out.json")]) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["failed"]["postgres"].startswith("the server did not start")
    assert json.loads((tmp_path / "out.json").read_text()) == report
    assert "not measured: postgres" in table(report)


def test_goals_belong_to_figures_of_both_stores() -> None:
    assert {figure(f"sqlite.{name}", 0, "x", samples=1).goal for name in GOALS} == {goal for goal, _ in GOALS.values()}
    assert figure("postgres.put_16_rate", 499, "1/s", samples=1).met is False
    assert figure("postgres.put_16_rate", 500, "1/s", samples=1).met is True
