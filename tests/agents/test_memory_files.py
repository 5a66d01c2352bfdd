"""`memdir memory`, `memdir export`, `import` and `cost`, against a real server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.cli.main import main
from tests.server.test_search_http import done
from tests.servers import ServerProcess, start

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = start(tmp_path_factory.mktemp("home"), "--port", "0")
    yield server
    assert server.stop() == 0


@pytest.fixture
def run(running: ServerProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command line in this process, with the server."""
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMDIR_SERVER_URL", running.url)
    monkeypatch.setenv("MEMDIR_API_KEY", running.key)
    monkeypatch.delenv("MEMDIR_AGENT_CONTAINER", raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


MEMORIES = [
    {
        "content": f"Fact {number} about the cache: it holds {number * 7} entries.\n\n- and a list",
        "tags": ["cache", f"t{number}"],
        "project": "shop" if number % 2 else None, "createdAt": f"2026-0{1 + number % 9}-11T10:00:00Z", "accessCount": number,
        "metadata": {"n": number},
    }
    for number in range(130)
]  # fmt: skip


def filled(running: ServerProcess, container: str) -> None:
    with running.client() as client:
        answer = client.post("/v1/agents/memories:import", json={"containerTag": container, "items": MEMORIES})
    assert answer.json()["created"] == len(MEMORIES)


def standing(running: ServerProcess, container: str) -> list[dict[str, Any]]:
    """What people would miss, in an order of its own."""
    found: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    with running.client() as client:
        while True:
            page = client.get("/v1/agents/memories", params={"containerTag": container, "limit": "100", **after}).json()
            found += page["memories"]
            if not page["nextAfter"]:
                break
            after = {"after": page["nextAfter"]}
    kept = ("content", "tags", "project", "createdAt", "accessCount", "metadata")
    return sorted(({name: one[name] for name in kept} for one in found), key=lambda one: str(one["content"]))


def test_a_memory_can_leave_its_project_and_those_of_none_are_listed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    here = ("--container", "moved")
    monkeypatch.setenv("MEMDIR_PROJECT", "told")
    assert "/memory/told/" in run("memory", "store", "The environment names the project", *here)[1]
    code, out, err = run("memory", "store", "--project", "shop", "The cart is kept in Redis", *here)
    assert code == 0, err
    memory_id = out.split()[0]
    assert run("memory", "list", "--project", "-", *here)[0] == 1
    assert "/memory/the-cart-is-kept" in run("memory", "edit", memory_id, "--move", "-", *here)[1]
    assert memory_id in run("memory", "list", "--project", "-", *here)[1]
    assert (
        "/memory/project/"
        in run("memory", "store", "--project", "/", "Nothing may be called as what stands for none", *here)[1]
    )
    assert run("memory", "tag", memory_id, "cart,redis", "shop", *here)[1] == "cart, redis, shop\n"
    assert run("memory", "tag", memory_id, "-r", "cart,shop", *here)[1] == "redis\n"
    assert run("memory", "tag", memory_id, "Bug-Fix", *here)[1] == "redis, Bug-Fix\n"
    assert "Bug-Fix 1, redis 1" in run("memory", "stats", *here)[1], "as a list can be asked for them"


def test_a_memory_is_edited_in_the_users_editor_and_no_text_is_lost(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    memory_id = run("memory", "store", "The cart is kept in Redis")[1].split()[0]
    monkeypatch.delenv("VISUAL", raising=False)
    for command, code, said in (
        ("sed -i s/Redis/Valkey/", 0, memory_id), ("true", 1, "nothing was changed"), ("false", 2, "ended with 1"),
        ("truncate -s 0", 2, "needs some text"), ("no-such-editor --wait", 2, "ended with 127"),
    ):  # fmt: skip
        monkeypatch.setenv("EDITOR", command)
        done, out, err = run("memory", "edit", memory_id)
        assert (done, list(tmp_path.glob("memdir-*.md"))) == (code, [])
        assert said in out + err
    assert "kept in Valkey" in run("memory", "show", memory_id)[1]

    monkeypatch.setenv("VISUAL", "sed -i 's/$/; the password is hunter" + "2x/'")
    code, _, err = run("memory", "edit", memory_id)
    (kept,) = tmp_path.glob("memdir-*.md")
    assert (code, "holds a secret" in err, str(kept) in err) == (2, True, True)
    assert "Valkey; the password" in kept.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("search", ""), "there is nothing to look for"),
        (("show", "../../x"), "is no id of a memory"),
        (("delete", ""), "is no id of a memory"),
        (("store", "--project", " ", "text"), "a project has a name"),
        (("export", "gone/m.json"), "there is no folder for gone/m.json"),
        (("edit", "01JD3Y6T0V8Q9W3N5K7M1P2R4S", ""), "a memory needs some text"),
        (("edit", "01JD3Y6T0V8Q9W3N5K7M1P2R4S", "--file", "gone.md"), "gone.md cannot be read: No such file"),
        (("edit", "01JD3Y6T0V8Q9W3N5K7M1P2R4S", "--file", "."), ". cannot be read: Is a directory"),
        (("edit", "01JD3Y6T0V8Q9W3N5K7M1P2R4S", "--file", "/dev/zero"), "/dev/zero holds more than 1 MiB"),
    ],
)
def test_what_is_typed_wrong_is_told_with_what_to_do(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run("memory", *arguments)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.promise("agent.export")
@pytest.mark.parametrize("name", ["m.json", "m.md"])
def test_every_memory_comes_over_once(running: ServerProcess, run: Run, tmp_path: Path, name: str) -> None:
    source, target = f"from-{name[2:]}", f"to-{name[2:]}"
    filled(running, source)
    code, _, err = run("memory", "export", name, "--container", source)
    assert (code, "130 memories written" in err) == (0, True)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert run("memory", "import", name, "--container", target)[:2] == (0, f"{target}: 130 new\n")
    assert standing(running, target) == standing(running, source)
    assert run("memory", "import", name, "--container", target)[:2] == (0, f"{target}: 130 there already\n")
    assert len(standing(running, target)) == 130
    assert run("memory", "export", f"again-{name}", "--container", target)[0] == 0
    assert _without_names(tmp_path / f"again-{name}") == _without_names(tmp_path / name)
    assert _without_names(tmp_path / name).index("Fact 0 ") < _without_names(tmp_path / name).index("Fact 9 ")


def _without_names(file: Path) -> str:
    """An export without what no two of them share: ids, the container and the moment."""
    return re.sub(r'"id": "\w+"|"?(container|exported|exportedAt)"?: \S+', "", file.read_text())


def test_export_and_import_without_a_name_are_about_memories(
    running: ServerProcess, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_AGENT_CONTAINER", "plain")
    filled(running, "plain")
    code, out, err = run("export")
    assert (code, err) == (0, "")
    assert len(json.loads(out)["memories"]) == 130
    assert run("export", "some.md")[0] == 0
    assert run("export", "some.md")[0] == 2, "it exists"
    assert run("import", "some.md")[:2] == (0, "plain: 130 there already\n")
    assert run("export", "notes")[0] == 2, "neither an archive nor a file of memories"
    assert run("import", "some.md", "--merge", "skip")[0] == 2
    assert not (tmp_path / "notes").exists()


def test_a_project_or_a_tag_is_exported_alone(running: ServerProcess, run: Run) -> None:
    filled(running, "some")
    found = json.loads(run("memory", "export", "--container", "some", "--project", "shop")[1])["memories"]
    assert {one["project"] for one in found} == {"shop"}
    assert len(json.loads(run("memory", "export", "--container", "some", "--tag", "t7")[1])["memories"]) == 1


def test_a_bad_entry_refuses_the_whole_file_and_may_be_left_out(running: ServerProcess, run: Run, tmp_path: Path) -> None:
    rows = [{"content": "good"}, {"content": ""}, {"content": "fine", "createdAt": "never"}]
    lines = ",\n".join(map(json.dumps, rows))
    (tmp_path / "bad.json").write_text('{"format": "memdir-memories", "version": 1, "memories": [\n' + lines + "]}")
    code, out, err = run("memory", "import", "bad.json", "--container", "bad")
    assert (code, out) == (2, "")
    assert "nothing was imported: bad.json: line 3: there is no text (and 1 more)" in err
    assert standing(running, "bad") == []
    code, out, err = run("memory", "import", "bad.json", "--container", "bad", "--skip-bad")
    assert (code, out) == (1, "bad: 1 new, 2 bad\n")
    assert "line 4: 'never' is no time" in err
    code, out, _ = run("memory", "import", "bad.json", "--container", "bad", "--skip-bad", "--dry-run", "--json")
    assert (code, json.loads(out)["memories"], json.loads(out)["bad"]) == (1, 1, 2)


def test_secrets_are_replaced_and_projects_given(running: ServerProcess, run: Run, tmp_path: Path) -> None:
    key = "AKIA" + "Z7Q2M4X9K1P3W5R8"
    entity = {"type": "entity", "name": "deploy", "entityType": "key", "observations": [f"uses {key} on Mondays"]}
    (tmp_path / "memory.jsonl").write_text(json.dumps(entity) + "\n")
    assert run("memory", "import", "memory.jsonl", "--container", "graph", "--project", "shop")[0] == 0
    (found,) = standing(running, "graph")
    assert key not in found["content"]
    assert found["content"].startswith("deploy: uses ")
    assert (found["project"], found["tags"]) == ("shop", ["key"])
    code, _, err = run("memory", "import", "memory.jsonl", "--container", "graph2", "--secrets", "refuse")
    assert code == 1
    assert key not in err
    assert "memdir: line 1: " in err


def test_nothing_to_export_is_said_and_is_exit_code_1(run: Run, tmp_path: Path) -> None:
    code, _, err = run("memory", "export", "none.json", "--container", "nobody")
    assert (code, "0 memories written" in err) == (1, True)
    assert json.loads((tmp_path / "none.json").read_text())["memories"] == []


def test_a_server_that_is_gone_is_an_error_and_leaves_no_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_SERVER_URL", "http://127.0.0.1:9")
    assert run("memory", "export", "gone.json")[0] == 2
    assert not (tmp_path / "gone.json").exists()


@pytest.mark.promise("agent.cost")
def test_cost_counts_what_was_really_injected(running: ServerProcess, run: Run) -> None:
    filled(running, "counted")
    with running.client() as client:
        done(client, "counted")
        for session in ("a", "b"):
            body = {
                "containerTag": "counted",
                "prompt": "how many entries does the cache hold",
                "sessionId": session,
                "limit": 2,
            }
            told = client.post("/v1/agents/context", json=body).json()
            assert len(told["memoryIds"]) == 2
    report = json.loads(run("cost", "--container", "counted", "--json")[1])
    assert report["usage"]["sessions"] == 2
    assert report["usage"]["injections"] == 2
    assert report["usage"]["injected_memories"] == 4
    assert report["model"]["measured"] == {"top_k": True, "chunk_tokens": True}
    assert report["model"]["top_k"] == 2
    assert report["break_even"] == pytest.approx(1 + 2 * report["model"]["chunk_tokens"] / 1000, abs=0.01)
    assert report["stored"]["memories"] == 130
    assert "last   7 days    2 blocks in 2 sessions" in run("cost", "--container", "counted")[1]
