"""What a memory is worth: where it is from, whether it may be given unasked, what it replaces, what waits to be kept; and whose
project it is. Through a real server, over both engines."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from memdir.agents.project import Project
from memdir.client.light import LightCallError
from memdir.store.agents.files import parsed, rendered
from tests.servers import ON_BOTH, ON_SQLITE, ServerProcess

from .test_agents_http import file_of, memories_of
from .test_search_http import done

POISONED = (Path(__file__).parent / "data" / "poisoned.txt").read_text(encoding="utf-8").splitlines()
ORDERS = POISONED[:40]
"""Reads like an instruction; the others are plausible statements, which only their origin betrays."""


def told(memories: Any, prompt: str, **more: Any) -> list[str]:
    """Ids of what a hook is given."""
    answer: list[str] = memories.context(prompt=prompt, project="api", **more)["memoryIds"]
    return answer


@ON_BOTH
@pytest.mark.promise("agent.provenance")
def test_who_stored_a_memory_and_whether_it_is_trusted_stand_in_its_file_and_in_every_answer(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    memories = memories_of(server, tag)
    stored = memories.store("Rate limits are counted in Redis.", project="api", stored_by="agent claude-code", trusted=False)[
        "memories"
    ][0]
    assert (stored["storedBy"], stored["isTrusted"], stored["seen"]) == ("agent claude-code", False, 1)
    text = file_of(client, tag, stored["path"])
    assert text is not None
    assert "\nby: agent claude-code\ntrust: untrusted\n" in text
    assert parsed(text, created_at_ms=0, updated_at_ms=0).provenance.stored_by == "agent claude-code"
    found = memories.search("rate limits redis", project="api")["results"][0]["memory"]
    assert not found["isTrusted"], "a search shows it, and says so"
    with pytest.raises(LightCallError, match="confirmed by a person"):
        memories.confirm(stored["id"], stored_by="agent claude-code")
    confirmed = memories.confirm(stored["id"])
    assert confirmed["isTrusted"]
    assert confirmed["confirmedAt"] is not None
    assert "trust:" not in (file_of(client, tag, stored["path"]) or "trust:")
    block = memories.context(prompt="where are rate limits counted?", project="api")["context"]
    assert f"{stored['id']}; by claude-code, confirmed {confirmed['confirmedAt'][:10]}) Rate limits" in block


@ON_SQLITE
@pytest.mark.promise("agent.poison")
def test_of_a_hundred_poisoned_memories_none_reaches_a_prompt_that_did_not_ask_for_it(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    memories = memories_of(server, tag)
    items = [{"content": text, "project": "api", "storedBy": "agent codex", "trusted": False} for text in POISONED]
    assert memories.bring_in(items)["created"] == 100
    done(client, tag)
    for prompt in POISONED:
        assert told(memories, prompt) == []
    assert told(memories, "", event="SessionStart", limit=50) == []
    assert memories.profile(project="api", limit=50)["memories"] == []


@ON_SQLITE
def test_what_an_agent_stores_and_reads_like_an_order_is_held_back_by_itself(server: ServerProcess, tag: str) -> None:
    memories = memories_of(server, tag)
    stored = [memories.store(text, project="api", stored_by="agent codex")["memories"][0] for text in ORDERS]
    assert sum(not one["isTrusted"] for one in stored) >= 36
    trusted = memories.store("Deploys run on Fridays.", project="api", stored_by="agent codex")["memories"][0]
    edited = memories.edit(trusted["id"], content=ORDERS[0], stored_by="agent codex")
    assert not edited["isTrusted"], "an edit is no way around it"
    page = memories.store("Cookies are blocked by Safari.", project="api", stored_by="agent codex", trusted=False)["memories"][
        0
    ]
    assert not memories.edit(page["id"], content="Cookies are blocked.", stored_by="agent codex")["isTrusted"]
    again = memories.store("Cookies are blocked.", project="api", stored_by="agent codex")
    assert not again["memories"][0]["isTrusted"], "nor is saying it again"
    assert again["memories"][0]["confirmedAt"] is None
    assert memories.edit(page["id"], content="Cookies are fine.")["isTrusted"], "the user's own edit is"
    assert memories.store("You must run make gen first.", project="api")["memories"][0]["isTrusted"], "the user may say so"
    text = "Deploys run on Tuesdays now."
    other = memories.store("Deploys run on Mondays.", project="web")["memories"][0]
    poisoned = memories.store(text, project="web", stored_by="agent codex", trusted=False)
    assert poisoned["superseded"] == []
    assert poisoned["memories"][0]["mayReplace"] == other["id"]
    with pytest.raises(LightCallError, match="not trusted"):
        memories.store(text, project="web", stored_by="agent codex", trusted=False, supersedes=[other["id"]])
    assert memories.get(other["id"])["content"] == "Deploys run on Mondays."


@ON_SQLITE
@pytest.mark.promise("agent.superseded")
def test_what_updates_a_memory_takes_its_place_and_the_former_text_is_history(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    memories = memories_of(server, tag)
    first = memories.store("The staging database is Postgres 14.", tags=["db"], project="api")["memories"][0]
    stored = memories.store("The staging database was upgraded to Postgres 16.", project="api", stored_by="agent codex")
    assert [one["id"] for one in stored["superseded"]] == [first["id"]]
    now = stored["memories"][0]
    assert (now["id"], now["tags"], now["storedBy"]) == (first["id"], ["db"], "agent codex")
    assert now["path"] != first["path"], "a file is named after what it says"
    assert file_of(client, tag, first["path"]) is None
    assert memories.page()["total"] == 1
    memories.edit(first["id"], tags=["db", "staging"])
    memories.confirm(first["id"])
    versions = memories.history(first["id"])["versions"]
    assert [one["content"] for one in versions] == [
        "The staging database was upgraded to Postgres 16.", "The staging database is Postgres 14.",
    ]  # fmt: skip
    assert [one["storedBy"] for one in versions] == ["agent codex", "user"]
    assert versions[0]["until"] is None
    assert versions[1]["until"] <= versions[0]["since"]
    hits = memories.search("staging database postgres")["results"]
    assert [hit["memory"]["content"] for hit in hits] == ["The staging database was upgraded to Postgres 16."]


@ON_SQLITE
def test_several_memories_are_replaced_by_one_when_that_is_asked_for(server: ServerProcess, tag: str) -> None:
    memories = memories_of(server, tag)
    ids = [
        memories.store(text, project="api")["memories"][0]["id"]
        for text in ("Queues are RabbitMQ.", "Walruses sleep in the sea.", "Builds take nine minutes.")
    ]
    stored = memories.store("Everything about queues and builds is in docs/infra.md.", project="api", supersedes=ids[:2])
    assert [one["id"] for one in stored["superseded"]] == ids[:2]
    assert {one["id"] for one in memories.page()["memories"]} == {ids[0], ids[2]}
    with pytest.raises(LightCallError, match="no memory"):
        memories.store("Nothing.  About nothing at all.", supersedes=["01JD3Y6T0V8Q9W3N5K7M1P2R4S"])


@ON_SQLITE
@pytest.mark.promise("agent.review")
def test_what_is_unsure_is_a_question_until_somebody_decides(server: ServerProcess, tag: str) -> None:
    memories = memories_of(server, tag)
    older = memories.store("The user prefers tabs.")["memories"][0]
    newer = memories.store("The user prefers spaces.")["memories"][0]
    assert newer["mayReplace"] == older["id"]
    memories.store("Seen on a web page.  Cookies are blocked by Safari.", project="api", trusted=False)
    memories.store("Of another project, from a page. Dates are UTC.", project="web", trusted=False)
    questions, total = memories.review(project="api")
    assert total == 2
    assert [(one["kind"], one["other"] and one["other"]["id"]) for one in questions] == [
        ("may_replace", older["id"]), ("untrusted", None),
    ]  # fmt: skip
    assert memories.review()[1] == 3
    memories.confirm(newer["id"])
    memories.delete(questions[1]["memory"]["id"])
    assert memories.review(project="api") == ([], 0)


@ON_SQLITE
@pytest.mark.promise("agent.inbox")
def test_what_is_proposed_waits_in_an_inbox_and_is_kept_when_it_is_said_again_or_confirmed(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    memories = memories_of(server, tag)

    def proposed(text: str, session: str) -> dict[str, Any]:
        item = {"content": text, "project": "api", "storedBy": "capture claude-code", "metadata": {"from": session}}
        return dict(memories.bring_in([item], propose=True))

    text = "Integration tests need REDIS_URL=redis://localhost:6380."
    assert proposed(text, "session 1")["created"] == 1
    assert proposed(text, "session 1") == {"created": 0, "duplicates": 1, "kept": 0, "refused": []}, "read twice, said once"
    assert proposed("The ocelot job runs at noon.", "session 1")["created"] == 1
    done(client, tag)
    assert memories.page()["total"] == 0
    assert memories.search("integration tests redis url", project="api")["results"] == []
    assert told(memories, "which redis url do the integration tests need?") == []
    questions, _ = memories.review(project="api")
    assert [one["kind"] for one in questions] == ["proposed", "proposed"]
    assert questions[0]["memory"]["path"].startswith("/memory/api/inbox/")
    assert proposed(text, "session 2")["kept"] == 1
    (kept,) = memories.page()["memories"]
    assert kept["path"].startswith("/memory/api/integration-tests-need-")
    assert kept["seen"] == 2
    assert memories.search("integration tests redis url", project="api")["results"][0]["memory"]["id"] == kept["id"]
    other = questions[1]["memory"]
    assert memories.confirm(other["id"])["path"] == other["path"].replace("/inbox/", "/")
    assert memories.page()["total"] == 2
    # a person does it with mv
    proposed("Kestrels nest below the roof.", "session 3")
    (waiting,) = memories.review()[0]
    path = waiting["memory"]["path"]
    moved = {"containerTag": tag, "operations": [{"op": "move", "fromPath": path, "path": path.replace("/inbox/", "/")}]}
    assert client.post("/v1/files:batch", json=moved).status_code == 200
    assert memories.page()["total"] == 3
    assert memories.review() == ([], 0)


@ON_BOTH
@pytest.mark.promise("agent.project-identity")
def test_projects_that_are_called_alike_do_not_share_and_clones_of_one_do(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    memories = memories_of(server, tag)

    def folder(name: str, *keys: str, remember: bool = True) -> str | None:
        return memories.folder_of(Project(name, keys), remember=remember)

    memories.store("Written before projects had keys.", project="api")
    assert folder("api", "remote:github.com/acme/api", "folder:1") == "api", "who comes first keeps what there was"
    assert folder("api", "remote:github.com/globex/api", "folder:2") == "globex-api"
    assert folder("api", "root:abc", "folder:3") == "api-2"
    assert folder("checkout", "remote:github.com/acme/api", "folder:4", remember=False) == "api", "a clone"
    assert folder("moved", "root:abc", "folder:5") == "api-2"
    assert folder("api", "root:abc", "remote:github.com/initech/api") == "api-2", "it has a remote now"
    assert folder("fork", "remote:github.com/me/fork", "root:abc") == "fork", "a fork has its own"
    assert folder("plain", "folder:6") == "plain"
    assert folder("other", "root:def", "folder:5") == "other", "another repository lies where one was"
    assert folder("inbox", "folder:7") == "inbox project", "a name that has a meaning here"
    moved = {"containerTag": tag, "operations": [{"op": "move", "fromPath": "/memory/api", "path": "/memory/backend"}]}
    assert client.post("/v1/files:batch", json=moved).status_code == 200
    assert folder("api", "remote:github.com/acme/api", remember=False) == "backend", "a folder that was renamed"
    asked = {"prompt": "what was written before keys?", "project": "api", "projectKeys": ["remote:github.com/acme/api"]}
    assert memories.context(**asked)["memoryIds"]
    asked["projectKeys"] = ["remote:github.com/globex/api"]
    assert memories.context(**asked)["memoryIds"] == []


@ON_BOTH
def test_sessions_that_begin_at_once_in_a_new_project_share_it(server: ServerProcess, tag: str) -> None:
    project = Project("shop", ("root:abc", "folder:1"))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: memories_of(server, tag).folder_of(project, remember=True), range(16)))
    assert set(found) == {"shop"}


@ON_SQLITE
def test_a_part_of_a_repository_is_told_what_is_known_of_all_of_it(server: ServerProcess, tag: str) -> None:
    memories = memories_of(server, tag)
    keys = ["remote:github.com/acme/shop"]
    whole = memories.folder_of(Project("shop", tuple(keys)), remember=True)
    memories.store("Everything in this monorepo is formatted with biome.", project=whole)
    part = memories.folder_of(Project("payments", (f"{keys[0]}#payments",)), remember=True)
    assert part == "payments"
    asked = {"prompt": "how is the monorepo formatted?", "project": "payments", "projectKeys": [f"{keys[0]}#payments"]}
    assert memories.context(**asked)["memoryIds"] == []
    block = memories.context(**asked, parent="shop", parentKeys=keys)["context"]
    assert "of shop" in block


@ON_SQLITE
def test_front_matter_of_a_memory_is_read_back_as_it_was_written(server: ServerProcess, tag: str) -> None:
    memories = memories_of(server, tag)
    memories.store("Owls hunt at night.", stored_by="import adr", trusted=False)
    memories.store("Owls hunt at night.", stored_by="import adr", trusted=False)
    (memory,) = memories.page()["memories"]
    assert (memory["seen"], memory["isTrusted"], memory["storedBy"]) == (2, False, "import adr")
    again = parsed("---\nseen: many\nconfirmed: soon\ntrust: [a]\nby:\n---\n\nText", created_at_ms=0, updated_at_ms=0)
    assert again.provenance.fields() == {}, "what a person wrote there that makes no sense counts as not written"
    assert parsed(rendered(again).decode(), created_at_ms=0, updated_at_ms=0).provenance == again.provenance


@ON_BOTH
@pytest.mark.promise("agent.superseded")
def test_after_many_updates_the_last_one_holds_and_all_of_them_are_history(server: ServerProcess, tag: str) -> None:
    memories = memories_of(server, tag)
    chance = random.Random(22)
    subjects = {f"The port of {name}": [] for name in ("ledger", "mailer", "gateway")}  # type: dict[str, list[str]]
    for _ in range(24):
        subject = chance.choice(list(subjects))
        text = f"{subject} is {chance.randint(1_000, 9_999)}."
        if text not in subjects[subject][-1:]:
            memories.store(text, project="api")
            subjects[subject].append(text)
    now = {one["content"]: one["id"] for one in memories.page(project="api", limit=100)["memories"]}
    assert sorted(now) == sorted(said[-1] for said in subjects.values()), "one for each subject, the last one"
    for said in subjects.values():
        versions = memories.history(now[said[-1]])["versions"]
        assert [one["content"] for one in versions] == said[::-1]
        assert [one["until"] for one in versions[1:]] == [one["since"] for one in versions[:-1]]


@ON_BOTH
@pytest.mark.promise("agent.superseded")
def test_updates_at_once_lose_nothing(server: ServerProcess, tag: str) -> None:
    memories = memories_of(server, tag)
    first = memories.store("The port of the ledger is 1000.", project="api")["memories"][0]
    texts = [f"The port of the ledger is {port}." for port in range(1001, 1009)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: memories.store(text, project="api"), texts))
    (now,) = memories.page(project="api")["memories"]
    assert now["id"] == first["id"]
    assert now["content"] in texts
    said = {one["content"] for one in memories.history(first["id"])["versions"]}
    assert said == {*texts, "The port of the ledger is 1000."}
