"""The MCP server on a real memory server: every tool and resource, several servers at once, a memory server that goes away."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jsonschema
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from memdir.agents.mcp.link import MemoryLink
from memdir.agents.mcp.session import make_server
from memdir.agents.mcp.tools import TOOLS, Around, output_schema
from memdir.agents.project import Project
from memdir.agents.service import AgentMemories
from memdir.client.local import ensure_server, stop_server
from memdir.core.paths import AppPaths

_numbers = itertools.count(1)
SCHEMAS = {tool.name: output_schema(tool) for tool in TOOLS}


@pytest.fixture
def container() -> str:
    """One that no other test uses."""
    return f"agents-{next(_numbers)}"


@pytest.fixture
def around(home: AppPaths, container: str) -> Around:
    return Around(link=MemoryLink(home, container=container), project=Project("shop"))


def asked(server: Any, work: Callable[[Client], Awaitable[Any]], *, mode: str = "auto") -> Any:
    async def run() -> Any:
        async with Client(server, mode=mode, read_timeout_seconds=60) as client:
            return await work(client)

    return anyio.run(run)


async def data(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that works, checked against the tool's output schema."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.content[0], types.TextContent)
    assert result.content[0].text
    structured = result.structured_content
    assert isinstance(structured, dict)
    jsonschema.validate(structured, SCHEMAS[name])
    return structured


async def text(client: Client, name: str, *, is_error: bool = False, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert bool(result.is_error) is is_error, result.content
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


@pytest.mark.promise("agent.mcp-tools")
def test_what_is_stored_is_found_listed_read_and_deleted_by_the_tools(around: Around) -> None:
    async def work(client: Client) -> None:
        fact = "The login test was flaky because the refresh token was rotated twice; fixed by a transaction in auth/tokens.py."
        stored = await data(client, "memory_store", content=fact, tags=["auth", "bug-fix"])
        (memory,) = stored["memories"]
        assert (memory["project"], memory["tags"], memory["isCut"]) == ("shop", ["auth", "bug-fix"], False)
        assert memory["path"].startswith("/memory/shop/")
        other = await data(
            client, "memory_store", content="Deploys run on Fridays before noon.", tags=["deploy"], project="site"
        )
        nobody = await data(client, "memory_store", content="The user writes commit messages in English.", project="")
        assert nobody["memories"][0]["project"] is None

        again = await data(client, "memory_store", content=fact, tags=["login"])
        assert [one["id"] for one in again["duplicates"]] == [memory["id"]]

        found = await data(client, "memory_search", query="flaky login test")
        assert found["results"][0]["id"] == memory["id"]
        assert set(found["results"][0]["tags"]) == {"auth", "bug-fix", "login"}
        said = await text(client, "memory_search", query="flaky login test")
        assert memory["id"] in said
        assert "not instructions" in said
        assert "No memory surely answers" in await text(client, "memory_search", query="kubernetes helm terraform")
        only = await data(client, "memory_search", query="deploys run on Fridays", only_project=True)
        assert other["memories"][0]["id"] not in [one["id"] for one in only["results"]]

        assert (await data(client, "memory_list"))["total"] == 2, "the project's, and nobody's"
        page = await data(client, "memory_list", limit=2, all_projects=True)
        rest = await data(client, "memory_list", limit=2, all_projects=True, cursor=page["nextCursor"])
        assert page["total"] == 3
        listed = [one["id"] for one in (*page["memories"], *rest["memories"])]
        assert sorted(listed) == sorted(one["memories"][0]["id"] for one in (stored, other, nobody))
        assert [one["id"] for one in (await data(client, "memory_list", project="site"))["memories"]] == [
            other["memories"][0]["id"]
        ]
        assert [one["id"] for one in (await data(client, "memory_list", tag="auth"))["memories"]] == [memory["id"]]

        assert (await data(client, "memory_get", id=memory["id"]))["memory"]["content"] == fact
        profile = await data(client, "memory_profile")
        assert profile["total"] == 2, "of another project nothing is told"
        assert [one["id"] for one in profile["recentMemories"]] == [memory["id"], nobody["memories"][0]["id"]]

        corrected = "The flaky login test was cured by freezing the clock."
        assert (await data(client, "memory_update", id=memory["id"], content=corrected))["memory"]["content"] == corrected
        found = await data(client, "memory_search", query="flaky login test")
        assert [one["content"] for one in found["results"] if one["id"] == memory["id"]] == [corrected]
        assert set(found["results"][0]["tags"]) == {"auth", "bug-fix", "login"}, "they stay"
        for filler in ("ok", "fixed it", "All tests pass."):
            assert "nothing that a later session could use" in await text(client, "memory_store", is_error=True, content=filler)

        assert (await data(client, "memory_delete", id=memory["id"]))["deleted"] is True
        assert (await data(client, "memory_search", query="flaky login test"))["results"] == []
        for name in ("memory_get", "memory_delete"):
            assert "memory_list" in await text(client, name, is_error=True, id=memory["id"])

    asked(make_server(around), work)


@pytest.mark.promise("agent.mcp-tools")
def test_a_secret_is_refused_with_what_to_do_or_taken_out_when_asked(around: Around) -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLZ"
    content = f"The bucket is read with the access key {secret} and lies in eu-west-1."

    async def work(client: Client) -> None:
        refused = await text(client, "memory_store", is_error=True, content=content)
        assert "redact_secrets" in refused
        assert secret not in refused
        assert (await data(client, "memory_list"))["total"] == 0
        stored = await data(client, "memory_store", content=content, redact_secrets=True)
        assert stored["redacted"]
        assert secret not in stored["memories"][0]["content"]

    asked(make_server(around), work)


def test_answers_stay_within_their_bounds_and_say_what_was_left_out(around: Around) -> None:
    def store(memories: AgentMemories) -> None:
        for number in range(30):
            words = " ".join(f"word{number}x{turn}" for turn in range(140))
            memories.store(f"Migration {number} of the ledger. {words}", project="shop")

    around.link.ask(store)

    async def work(client: Client) -> None:
        found = await data(client, "memory_search", query="ledger migration", limit=50)
        assert 1 < len(found["results"]) <= 50
        assert sum(len(one["content"]) for one in found["results"]) <= 40_000
        assert all(len(one["content"]) <= 300 for one in (await data(client, "memory_list"))["memories"])
        assert any(one["isCut"] for one in (await data(client, "memory_list"))["memories"])

    asked(make_server(around), work)


def test_resources_are_the_profile_and_every_memory_in_pages(around: Around) -> None:
    def store(memories: AgentMemories) -> list[str]:
        return [
            memories.store(f"Service {number} listens on port {9000 + number}.", tags=[f"t{number}"])["memories"][0]["id"]
            for number in range(60)
        ]

    ids = around.link.ask(store)

    async def work(client: Client) -> None:
        first = await client.list_resources()
        assert next(str(one.uri) for one in first.resources) == "memory://profile"
        assert first.next_cursor
        second = await client.list_resources(cursor=first.next_cursor)
        assert second.next_cursor is None
        uris = [str(one.uri) for one in (*first.resources, *second.resources)]
        assert sorted(uris) == sorted(["memory://profile", *(f"memory://{one}" for one in ids)])
        (content,) = (await client.read_resource(f"memory://{ids[7]}")).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text.endswith("Service 7 listens on port 9007.")
        assert "tags: t7" in content.text
        (profile,) = (await client.read_resource("memory://profile")).contents
        assert isinstance(profile, types.TextResourceContents)
        assert profile.text
        assert [one.uri_template for one in (await client.list_resource_templates()).resource_templates] == ["memory://{id}"]
        for attempt in (
            lambda: client.read_resource("memory://00000000000000000000000000"),
            lambda: client.list_resources(cursor="not a cursor"),
        ):
            with pytest.raises(MCPError) as refused:
                await attempt()
            assert refused.value.error.code == types.INVALID_PARAMS

    asked(make_server(around), work)


@pytest.mark.long
def test_the_same_answers_come_over_http(home: AppPaths, container: str, tmp_path: Path) -> None:
    """A real process, clients of both eras."""
    env = {**os.environ, "MEMDIR_HOME": str(home.config_dir.parent), "MEMDIR_AGENT_CONTAINER": container}
    command = [sys.executable, "-m", "memdir.cli", "mcp", "--http", "--port", "0", "--json", "--project", "shop"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        token = Path(said["token_file"]).read_text().strip()

        async def run(mode: str) -> list[str]:
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as caller,
                Client(streamable_http_client(said["url"], http_client=caller), mode=mode) as client,
            ):
                await data(client, "memory_store", content=f"The era {mode} stores its memories over HTTP.")
                found = await data(client, "memory_search", query=f"era {mode} HTTP")
                return [one["project"] for one in found["results"]][:1]

        try:
            assert [anyio.run(run, mode) for mode in ("legacy", "2026-07-28")] == [["shop"], ["shop"]]
        finally:
            process.terminate()


def over_stdio(home: AppPaths, container: str, folder: Path) -> StdioServerParameters:
    env = {**os.environ, "MEMDIR_HOME": str(home.config_dir.parent)}
    command = ["-m", "memdir.cli", "mcp", "--stdio", "--container", container]
    return StdioServerParameters(command=sys.executable, args=command, env=env, cwd=folder)


def stored_at_once(home: AppPaths, container: str, folder: Path, *, servers: int, each: int) -> None:
    """Several servers of one memory, each storing `each` memories for a client of one era or the other, all at the same time;
    nothing may be lost."""
    wanted = {f"Counter {server}-{turn} was calibrated to {server * 1000 + turn} units." for server in range(servers)
              for turn in range(each)}  # fmt: skip

    async def store(server: int) -> None:
        mode = ("legacy", "auto")[server % 2]
        async with Client(over_stdio(home, container, folder), mode=mode) as client, anyio.create_task_group() as tasks:
            assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]
            for turn in range(each):
                words = f"Counter {server}-{turn} was calibrated to {server * 1000 + turn} units."
                tasks.start_soon(lambda words=words: data(client, "memory_store", content=words, tags=[f"s{server}"]))

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for server in range(servers):
                tasks.start_soon(store, server)

    anyio.run(run)
    memories = AgentMemories(server=ensure_server(home), container=container)
    assert {one["content"] for one in memories.all()} == wanted
    assert memories.stats()["memories"] == len(wanted)


@pytest.mark.promise("agent.mcp-transports")
def test_several_servers_on_standard_streams_in_both_eras_lose_no_write(home: AppPaths, container: str, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    stored_at_once(home, container, folder, servers=2, each=12)
    memories = AgentMemories(server=ensure_server(home), container=container)
    assert {one["project"] for one in memories.all()} == {"shop"}, "the project is that of the folder the host started it in"


def test_what_was_asked_before_the_input_ended_is_answered_and_done(home: AppPaths, container: str, tmp_path: Path) -> None:
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "script", "version": "1"}}
    words = "A script may pipe its requests into the server and close the pipe."
    asked_for: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "memory_store", "arguments": {"content": words}}},
        {"id": "three", "method": "tools/call", "params": {"name": "memory_list"}},
    ]
    given = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked_for)
    server = over_stdio(home, container, tmp_path)
    ran = subprocess.run(
        [server.command, *server.args], env=server.env, cwd=tmp_path, input=given, capture_output=True, text=True, check=True,
        timeout=60,
    )  # fmt: skip
    answers = {one["id"]: one["result"] for one in map(json.loads, ran.stdout.splitlines())}
    assert set(answers) == {1, 2, "three"}
    assert answers[2]["structuredContent"]["memories"][0]["content"] == words


@pytest.mark.long
def test_eight_servers_at_once_lose_no_write(home: AppPaths, container: str, tmp_path: Path) -> None:
    stored_at_once(home, container, tmp_path, servers=8, each=40)


@pytest.mark.long
def test_a_memory_server_that_went_away_is_started_again_by_the_next_call(around: Around, home: AppPaths) -> None:
    async def work(client: Client) -> None:
        first = await data(client, "memory_store", content="The first server remembered this.")
        assert await anyio.to_thread.run_sync(stop_server, home)
        second = await data(client, "memory_store", content="Another one knows that the queue is bounded.")
        listed = await data(client, "memory_list")
        assert [one["id"] for one in listed["memories"]] == [second["memories"][0]["id"], first["memories"][0]["id"]]

    asked(make_server(around), work)
