"""`memdir research` as a user types it: a model endpoint and a web of real pages on loopback, and in a mount."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.research.archive import Archive
from memdir.research.checks import Checks
from memdir.research.journal import entries
from memdir.research.state import folded
from memdir.research.web.offline import Folder
from memdir.research.workspace import Workspace
from memdir_bench.research.policy import Policy
from tests.acceptance.driver import Memdir
from tests.research.endpoint import ChatEndpoint, Pages, served

MANUALS = (Path("/usr/share/doc/python3.11/html"), Path("/usr/share/doc/postgresql-doc-15/html"))
TOPIC = """What the manuals say
- What is the default timeout in seconds for new socket objects?
- How does the lru_cache maxsize work?
- What does VACUUM reclaim in PostgreSQL?
- Which level of compression does zlib use by default?
- What does the checkpoint_timeout parameter set?
- What does asyncio.gather return?
"""


@pytest.fixture
def endpoint() -> ChatEndpoint:
    return ChatEndpoint(Policy(questions_per_round=3))


@pytest.fixture
def researcher(memdir: Memdir, endpoint: ChatEndpoint) -> Iterator[Memdir]:
    """The command line with a model configured."""
    with served(endpoint) as address:
        changed = {"MEMDIR_MODEL": "openai:rules", "MEMDIR_MODEL_URL": f"{address}/v1", "OPENAI_API_KEY": ""}
        before = dict(memdir.env)
        memdir.env.update(changed)
        yield memdir
        memdir.env.clear()
        memdir.env.update(before)


@pytest.fixture(scope="module")
def manuals() -> dict[str, bytes]:
    """Pages of Debian's python3.11-doc and postgresql-doc-15, by their path on the loopback web."""
    pages = {
        f"/{root.parts[-2]}/{path.relative_to(root).as_posix()}": path.read_bytes()
        for root in MANUALS
        for path in root.rglob("*")
        if path.suffix in (".html", ".txt") and path.is_file()
    }
    if not pages:
        pytest.skip("apt-get install python3.11-doc postgresql-doc-15")
    return pages


@pytest.fixture(scope="module")
def manual_folder(manuals: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The same pages for the loopback web's search."""
    root = tmp_path_factory.mktemp("manuals")
    for path, data in manuals.items():
        at = root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(data)
    return Folder(root)


@pytest.fixture
def web(manuals: dict[str, bytes], manual_folder: Folder) -> Iterator[Pages]:
    def search(query: str) -> list[tuple[str, str, str]]:
        found = manual_folder.search(query, 8)
        return [(f"/{one.url.removeprefix('folder:')}", one.title, one.snippet) for one in found]

    pages = Pages(manuals, search)
    with served(pages) as address:
        pages.address = address
        yield pages


def by_web(researcher: Memdir, web: Pages, *arguments: str | Path, expect: int = 0) -> Any:
    researcher.env["SEARXNG_URL"] = web.address
    return researcher.run(
        "research", *arguments, "--search", "searxng", "--private-addresses", "--yes", "--json", expect=expect, limit_s=240
    )


@pytest.mark.promise("research.cites", "research.faults")
def test_two_thousand_real_pages_become_a_report_whose_citations_hold(
    researcher: Memdir, endpoint: ChatEndpoint, web: Pages, manual_folder: Folder, tmp_path: Path
) -> None:
    assert len(web.pages) >= 2000
    endpoint.failures = [429, 500, 503]
    first = manual_folder.search("default timeout in seconds for new socket objects", 1)[0]
    busy = f"/{first.url.removeprefix('folder:')}"
    whole = web.pages[busy]
    web.faults[busy] = [(429, {"Retry-After": "0"}, b""), (200, {"Content-Length": str(len(whole))}, whole[:500])]
    done = by_web(researcher, web, TOPIC, "--workspace", tmp_path / "ws").json()
    assert done["outcome"] in ("complete", "flagged")
    assert done["sources"] >= 6
    assert web.faults[busy] == []
    report = (tmp_path / "ws" / "report.md").read_text()
    assert "default timeout" in report
    workspace = Workspace(tmp_path / "ws")
    state = folded(entries(workspace.root))
    found = [one for one in Checks(workspace, Archive(workspace)).everything(written=state.written) if one.check != "todo"]
    assert [one for one in found if one.path in ("report.md", "report_outline.md") or one.path.startswith("sections/")] == []
    cited = re.findall(r"(sources/\S+?\.md)#L(\d+)-L(\d+)@([0-9a-f]{8})", report)
    assert len(cited) >= 6
    assert researcher.run("research", "report", tmp_path / "ws").out == report
    assert "Every citation was checked" in (tmp_path / "ws" / "report.html").read_text()


@pytest.mark.promise("research.resume")
def test_a_killed_research_goes_on_and_pays_for_nothing_twice(
    researcher: Memdir, endpoint: ChatEndpoint, web: Pages, tmp_path: Path
) -> None:
    """kill -9 after every few answers, until it is through; beside one that was never killed."""
    whole = tmp_path / "whole"
    by_web(researcher, web, TOPIC, "--workspace", whole)
    paid_whole, fetched_whole = endpoint.paid, [one for one in web.fetched if not one.startswith("/search")]
    endpoint.paid = 0
    web.fetched.clear()
    root = tmp_path / "killed"
    researcher.env["SEARXNG_URL"] = web.address
    base = [sys.executable, "-m", "memdir.cli", "research", "--workspace", str(root), "--yes"]
    options = ["--search", "searxng", "--private-addresses"]  # --resume knows them
    kills = 0
    for attempt in range(40):
        what = [*options, TOPIC] if attempt == 0 else ["--resume"]
        process = subprocess.Popen(
            [*base, *what], env=researcher.env, cwd=researcher.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wanted = endpoint.paid + 5
        while process.poll() is None and endpoint.paid < wanted:
            try:
                process.wait(0.01)
            except subprocess.TimeoutExpired:
                continue
        if process.poll() is not None:
            assert process.returncode == 0
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert kills >= 4
    assert (root / "report.md").read_text() == (whole / "report.md").read_text()
    # What was on its way at a kill is not in the journal and is asked again: one answer, and the pages of one call.
    assert endpoint.paid <= paid_whole + kills
    pages = [one for one in web.fetched if not one.startswith("/search")]
    assert len(pages) <= len(fetched_whole) + 6 * kills
    recorded = [entry["url"] for entry in entries(root) if entry["kind"] == "fetch" and entry.get("source")]
    assert len(recorded) == len(set(recorded))


def test_in_a_mount_the_knowledge_base_is_found_by_meaning_and_later_research_reads_it(
    researcher: Memdir, notes: Path, manual_folder: Folder, tmp_path: Path
) -> None:
    folder = manual_folder.name.partition(" (")[0]
    topic = "Sockets\n- What is the default timeout in seconds for new socket objects?\n"
    done = researcher.run("research", topic, "--offline", folder, "--yes", "--json", cwd=notes, limit_s=200).json()
    workspace = Path(done["workspace"])
    assert workspace == notes / "research" / "sockets-what-is-the-default-timeout-in-seconds-for"
    assert done["outcome"] in ("complete", "flagged")
    researcher.run("sync", notes, "--wait", limit_s=200)
    found = researcher.hits("default timeout for new socket objects", cwd=notes)
    assert any("research/" in hit["path"] for hit in found)
    assert not any(".memdir-research" in hit["path"] for hit in found)
    again = researcher.run("research", topic, "--offline", folder, "--yes", "--json", cwd=notes, limit_s=200).json()
    assert again["workspace"].endswith("-for-2")
    assert any(place.startswith("memory ") for place in again["places"])
    journal = list(entries(Path(again["workspace"])))
    assert any("memory:/research/" in url for entry in journal for url in entry.get("addresses", []))


def test_what_a_memory_holds_is_not_read_unless_it_is_asked_for(researcher: Memdir, notes: Path, tmp_path: Path) -> None:
    (notes / "diary.md").write_text("The default timeout of new socket objects in my heart is 9 years.\n")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "a.md").write_text("# Sockets\n\nThe default timeout of new socket objects is None.\n")
    researcher.run("sync", notes, "--wait", limit_s=200)
    topic = "Sockets\n- What is the default timeout of new socket objects?\n"
    for extra, seen in (([], False), (["--memory"], True)):
        done = researcher.run(
            "research", topic, "--offline", tmp_path / "book", *extra, "--yes", "--json", cwd=notes, limit_s=200
        ).json()
        journal = (Path(done["workspace"]) / ".memdir-research" / "journal.jsonl").read_text()
        assert ("memory:/diary.md" in journal) is seen


def test_status_check_note_pause_and_export(researcher: Memdir, tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "a.md").write_text("# Ants\n\nThe weaver ant builds nests from living leaves.\n")
    root = tmp_path / "ws"
    topic = "Ants\n- From what does the weaver ant build nests?\n"
    researcher.run("research", topic, "--offline", tmp_path / "book", "--workspace", root, "--yes")
    told = researcher.run("research", "status", root).out
    assert "complete" in told
    assert "1 of 1" in told
    assert researcher.run("research", "status", root, "--json").json()["outcome"] == "complete"
    assert researcher.run("research", "check", root).out == ""
    note = next((root / "knowledge_base").rglob("*.md"))
    note.write_text(note.read_text().replace("living leaves", "55 dead leaves"))
    found = researcher.run("research", "check", root, expect=1)
    assert f"{note}:3: not in the cited lines: 55" in found.out
    assert [one["check"] for one in researcher.run("research", "check", root, "--json", expect=1).json()["findings"]] == [
        "evidence"
    ]
    assert researcher.run("research", "note", root, "more about ants").code == 0
    assert researcher.run("research", "pause", root, expect=1).code == 1
    for kind, begins in (("html", b"<!doctype html>"), ("docx", b"PK"), ("pdf", b"%PDF-"), ("md", b"# Answers")):
        made = tmp_path / f"out.{kind}"
        researcher.run("research", "export", root, "--format", kind, "-o", made)
        assert made.read_bytes().startswith(begins)
    assert "exists" in researcher.run("research", "export", root, "-o", tmp_path / "out.html", expect=2).err
    assert "[^1]: a.md" not in (tmp_path / "out.md").read_text()
    assert "[^1]: Ants. folder:a.md" in (tmp_path / "out.md").read_text()


@pytest.mark.promise("research.cites")
def test_an_agent_of_ones_own_archives_pages_and_is_checked(memdir: Memdir, tmp_path: Path) -> None:
    (tmp_path / "ants.html").write_text(
        "<html><title>Ants</title><body><p>The weaver ant builds nests from 7 leaves.</p></body></html>"
    )
    root = tmp_path / "ws"
    ran = memdir.run("research", "archive", root, tmp_path / "ants.html", "--question", "what does it build from?")
    assert "The weaver ant builds nests from 7 leaves." in ran.out
    source, line = ran.out.split(":")[0], next(one.split()[0] for one in ran.lines if "7 leaves" in one)
    (root / "knowledge_base" / "insects").mkdir()
    note = root / "knowledge_base" / "insects" / "weaver-ants.md"
    note.write_text(f"- It builds nests from 7 leaves. [{source}#L{line}]\n")
    (root / "index.md").write_text("# I\n## Target Hierarchy\n- knowledge_base/insects/weaver-ants.md\n## TODO\n- [x] ants\n")
    assert memdir.run("research", "check", root).out == ""
    note.write_text(f"- It builds nests from 8 leaves. [{source}#L{line}]\n")
    assert "not in the cited lines: 8" in memdir.run("research", "check", root, expect=1).out
    partly = memdir.run("research", "archive", root, tmp_path / "none.pdf", tmp_path / "ants.html", "--json", expect=1).json()
    assert (len(partly["archived"]), len(partly["failed"])) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["research"], "say what to research"),
        (["research", "x", "--resume"], "say what to research"),
        (["research", "--resume"], "needs --workspace"),
        (["research", "x", "--yes"], "where pages come from"),
        (["research", "x", "--offline", "/nowhere", "--yes"], "is no folder"),
        (["research", "x", "--offline", ".", "--rounds", "0"], "rounds"),
        (["research", "x", "--offline", ".", "--budget-usd", "-1"], "budget-usd"),
        (["research", "x", "--search", "brave", "--yes"], "BRAVE_API_KEY"),
        (["research", "x", "--search", "altavista"], "altavista"),
        (["research", "x", "--memory", "--workspace", "/tmp/not-in-a-mount", "--yes"], "mounted memory"),
        (["research", "status", "."], "no research in"),
        (["research", "check", "."], "is no workspace"),
        (["research", "export", "."], "no research in"),
    ],
)
def test_mistakes_are_told_and_change_nothing(memdir: Memdir, arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nwords\n")
    ran = memdir.run(*arguments, cwd=tmp_path, expect=2)
    assert said in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


def test_without_a_model_it_says_how_to_name_one(memdir: Memdir, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nwords\n")
    ran = memdir.run("research", "x", "--offline", tmp_path, "--yes", cwd=tmp_path, expect=2)
    assert "no language model is configured" in ran.err
    assert "MEMDIR_MODEL" in ran.err


def test_nobody_there_to_agree_spends_nothing(researcher: Memdir, endpoint: ChatEndpoint, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nwords\n")
    assert "--yes" in researcher.run("research", "x", "--offline", tmp_path, cwd=tmp_path, expect=2).err
    assert endpoint.paid == 0


def test_a_wrong_key_and_a_lost_endpoint_are_told(memdir: Memdir, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nwords\n")
    refusal = json.dumps({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}).encode()
    with served(lambda _path, _body: (401, {"Content-Type": "application/json"}, refusal)) as address:
        ran = memdir.run(
            "research", "x", "--offline", tmp_path, "--workspace", tmp_path / "ws", "--model", "openai:x",
            "--model-url", f"{address}/v1", "--yes", cwd=tmp_path, expect=2,
        )  # fmt: skip
    assert "the key is refused" in ran.err
