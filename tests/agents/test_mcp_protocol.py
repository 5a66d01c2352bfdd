"""The MCP server as its clients see it: tools, bad calls, resources, prompts; over both transports, in both eras; its guard."""

from __future__ import annotations

import functools
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from memdir.agents.mcp.http import token_for
from memdir.agents.mcp.link import MemoryLink
from memdir.agents.mcp.session import make_server
from memdir.agents.mcp.tools import TOOLS, Around, input_schema, output_schema
from memdir.agents.project import Project
from memdir.core.errors import UsageError
from memdir.core.limits import MEMORY_MAX_CHARS, MEMORY_TAGS_MAX
from memdir.core.paths import app_paths, under_home

NAMES = [
    "memory_store",
    "memory_search",
    "memory_list",
    "memory_get",
    "memory_delete",
    "memory_profile",
    "memory_update",
    "memory_confirm",
    "memory_review",
    "memory_habits",
]
NOWHERE = {"MEMDIR_SERVER_URL": "http://127.0.0.1:9", "MEMDIR_API_KEY": "md_nobody"}
"""A memory server that cannot be reached: what needs none must not notice."""
MODES = ["legacy", "2026-07-28"]
CURRENT_AND_FORMER = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}
TOKEN = "a-token-for-the-tests"


def asked(server: Any, work: Callable[[Client], Awaitable[Any]], *, mode: str = "auto") -> Any:
    """What `work` gives with a client of the SDK."""

    async def run() -> Any:
        async with Client(server, mode=mode, read_timeout_seconds=60) as client:
            return await work(client)

    return anyio.run(run)


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """An MCP server whose memory server is not there."""
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    return make_server(Around(link=MemoryLink(under_home(tmp_path)), project=Project("shop")))


def called(server: Any, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    async def work(client: Client) -> types.CallToolResult:
        return await client.call_tool(name, arguments)

    return asked(server, work)


def words(result: types.CallToolResult) -> str:
    return "\n".join(one.text for one in result.content if isinstance(one, types.TextContent))


@pytest.mark.promise("agent.mcp-tools")
def test_the_tools_come_in_one_order_with_titles_annotations_and_both_schemas(unreachable: Any) -> None:
    listed = asked(unreachable, lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed] == NAMES
    for tool in listed:
        assert tool.title
        assert len(tool.description or "") > 80 or tool.name == "memory_get"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert "$ref" not in json.dumps([tool.input_schema, tool.output_schema])
        hints = tool.annotations
        assert hints is not None
        assert hints.open_world_hint is False
        assert hints.idempotent_hint is True
        assert hints.read_only_hint is (tool.name not in ("memory_store", "memory_delete", "memory_update", "memory_confirm"))
        assert hints.destructive_hint is (tool.name in ("memory_delete", "memory_update"))


def test_every_argument_is_bounded() -> None:
    for tool in TOOLS:
        for name, schema in input_schema(tool)["properties"].items():
            bounds = {"string": "maxLength", "array": "maxItems", "integer": "maximum"}
            assert schema["type"] == "boolean" or bounds[schema["type"]] in schema, f"{tool.name}.{name}"
        assert output_schema(tool)["properties"]


@pytest.mark.promise("agent.mcp-tools")
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("memory_store", {}, "content: Field required"),
        ("memory_store", {"content": ""}, "content"),
        ("memory_store", {"content": "x" * (MEMORY_MAX_CHARS + 1)}, "content"),
        ("memory_store", {"content": 7}, "content"),
        ("memory_store", {"content": "x", "tags": ["t"] * (MEMORY_TAGS_MAX + 1)}, "tags"),
        ("memory_store", {"content": "x", "tag": "t"}, "tag: Extra inputs are not permitted"),
        ("memory_search", {"query": "x", "limit": 0}, "limit"),
        ("memory_search", {"query": "x", "limit": 51}, "limit"),
        ("memory_search", {"query": "x", "project": "", "only_project": True}, "only_project"),
        ("memory_list", {"limit": "many"}, "limit"),
        ("memory_get", {"id": ""}, "id"),
        ("memory_delete", {"id": "x" * 101}, "id"),
    ],
)
def test_bad_arguments_are_told_in_the_result_where_a_model_reads_them(
    unreachable: Any, name: str, arguments: dict[str, Any], said: str
) -> None:
    result = called(unreachable, name, arguments)
    assert result.is_error
    assert said in words(result)
    assert "x" * 50 not in words(result), "what was sent is not repeated"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "memory_habits"])
def test_a_memory_server_that_is_not_there_is_told_with_what_to_do(unreachable: Any, name: str) -> None:
    needed: dict[str, dict[str, str]] = {
        "memory_store": {"content": "a"},
        "memory_search": {"query": "a"},
        "memory_get": {"id": "A"},
    }
    needed |= {"memory_delete": {"id": "A"}, "memory_update": {"id": "A", "content": "a"}, "memory_confirm": {"id": "A"}}
    result = called(unreachable, name, needed.get(name, {}))
    assert result.is_error
    assert "cannot be reached" in words(result)
    assert "memdir doctor" in words(result)


def test_a_tool_a_prompt_and_a_resource_that_do_not_exist_are_errors_of_the_protocol(unreachable: Any) -> None:
    async def work(client: Client) -> list[int]:
        codes = []
        attempts: list[Callable[[], Awaitable[Any]]] = [
            lambda: client.call_tool("memory_forget_all", {}),
            lambda: client.get_prompt("nothing", {}),
            lambda: client.get_prompt("recall", {}),
            lambda: client.read_resource("file:///etc/passwd"),
            lambda: client.read_resource("memory://"),
            lambda: client.list_tools(cursor="x"),
        ]
        for attempt in attempts:
            with pytest.raises(MCPError) as refused:
                await attempt()
            codes.append(refused.value.error.code)
        return codes

    assert asked(unreachable, work) == [types.INVALID_PARAMS] * 6


def test_two_prompts_ask_for_what_the_tools_are_for(unreachable: Any) -> None:
    async def work(client: Client) -> tuple[list[str], str, str]:
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        recall = await client.get_prompt("recall", {"topic": "the flaky login test"})
        remember = await client.get_prompt("remember", {"hint": "the migration"})
        return names, *(one.messages[0].content.text for one in (recall, remember))

    names, recall, remember = asked(unreachable, work)
    assert names == ["recall", "remember"]
    assert "the flaky login test" in recall
    assert "memory_search" in recall
    assert "the migration" in remember
    assert "memory_store" in remember


# --- real processes -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `memdir mcp --http`."""
    home = tmp_path_factory.mktemp("http")
    env = {**os.environ, "MEMDIR_HOME": str(home), **NOWHERE, "MEMDIR_MCP_TOKEN": TOKEN}
    command = [sys.executable, "-m", "memdir.cli", "mcp", "--http", "--port", "0", "--json"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=home)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0
        process.stdout.close()


@pytest.mark.promise("agent.mcp-transports")
@pytest.mark.parametrize("mode", MODES)
def test_a_process_speaks_both_eras_of_the_protocol_over_http(address: str, mode: str) -> None:
    async def run() -> tuple[str, list[str]]:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as caller:
            transport = streamable_http_client(address, http_client=caller)
            async with Client(transport, mode=mode) as client:
                return client.protocol_version, [tool.name for tool in (await client.list_tools()).tools]

    assert anyio.run(run) == (CURRENT_AND_FORMER[mode], NAMES)


PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})


def status(address: str, *, method: str = "POST", path: str = "/mcp", **headers: str | None) -> int:
    """The HTTP status of one request; headers given as None are left out."""
    parts = urlsplit(address)
    sent: dict[str, str | None] = {
        "Host": parts.netloc, "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", "Content-Length": str(len(PING)),
    }  # fmt: skip
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(PING.encode())
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.promise("agent.mcp-guarded")
def test_over_http_only_a_client_with_the_token_that_calls_us_by_our_own_name_is_served(address: str) -> None:
    port = urlsplit(address).port
    tried = functools.partial(status, address)
    assert tried() == 200
    assert tried(Host=f"localhost:{port}", Origin=f"http://127.0.0.1:{port}") == 200
    foreign = [
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1.evil.example:{port}",
        f"127.0.0.1:{port}@evil",
        "",
    ]
    assert [tried(Host=host) for host in foreign] == [403] * len(foreign)
    assert tried(Host=None) in (400, 403)
    pages = [
        "http://evil.example",
        f"https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "null",
        f"http://evil.example:{port}",
        "file://",
    ]
    assert [tried(Origin=origin) for origin in pages] == [403] * len(pages)
    tokens = [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"bearer {TOKEN}x", f"Bearer {TOKEN} "]
    assert [tried(Authorization=token) for token in tokens[:-1]] == [401] * (len(tokens) - 1)
    assert [tried(method="GET"), tried(method="DELETE")] == [405, 405]
    assert tried(path="/") == 404


@pytest.mark.promise("agent.mcp-guarded")
def test_a_body_beyond_the_bound_is_refused(address: str) -> None:
    assert status(address, Content_Length=str(64 << 20)) in (400, 413)


@pytest.mark.promise("agent.mcp-guarded")
def test_the_token_is_made_once_and_only_its_user_may_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = under_home(tmp_path)
    token, file = token_for(paths)
    assert file is not None
    assert len(token) > 40
    assert file.stat().st_mode & 0o777 == 0o600
    assert token_for(paths) == (token, file)
    file.write_text("short\n")
    with pytest.raises(UsageError, match="does not hold a token"):
        token_for(paths)
    monkeypatch.setenv("MEMDIR_MCP_TOKEN", TOKEN)
    assert token_for(paths) == (TOKEN, None)


def test_ways_of_working_need_no_memory_server(unreachable: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path))
    result = asked(unreachable, lambda client: client.call_tool("memory_habits", {}))
    assert "Nothing was recorded" in words(result)
    read = {"type": "file_read", "path": "/a.md", "timestamp_ms": 1, "session": "s-1", "actor": {}, "root": "/r", "id": "1"}
    folder = app_paths().traces_dir
    folder.mkdir(parents=True)
    (folder / "events-00000001.jsonl").write_text("".join(json.dumps(read | {"id": str(at)}) + "\n" for at in range(4)))
    result = asked(unreachable, lambda client: client.call_tool("memory_habits", {"query": "a report"}))
    assert "sequential deep" in words(result)
    assert result.structured_content["sessions"] == 1
