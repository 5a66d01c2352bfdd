"""What the protocol's own tools say of `memdir mcp`: its conformance suite and its inspector, both from npm.

    npm install --prefix /some/folder @modelcontextprotocol/conformance @modelcontextprotocol/inspector node@22
    MEMDIR_NODE_MODULES=/some/folder/node_modules .venv/bin/pytest -m long tests/agents/test_mcp_conformance.py

The scenarios chosen are those that any server can be asked; the others expect tools of the suite's own example server. The
suite knows no tokens, so a proxy adds ours, and passes Host and Origin on with our port in place of its own.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.agents.test_mcp_protocol import NAMES

pytestmark = pytest.mark.long

ENV_MODULES = "MEMDIR_NODE_MODULES"
SCENARIOS = ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"]
TOKEN = "a-token-for-the-suite"


@pytest.fixture(scope="module")
def modules() -> Path:
    """The folder `node_modules`."""
    named = os.environ.get(ENV_MODULES, "")
    if not named:
        pytest.skip(f"{ENV_MODULES} names no node_modules with the conformance suite and the inspector")
    return Path(named)


def run_node(modules: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A script of a package, by the node that is installed beside it or on the PATH."""
    beside = modules / "node" / "bin" / "node"
    node = str(beside) if beside.exists() else shutil.which("node")
    assert node is not None
    path = f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [node, modules / script, *arguments], capture_output=True, text=True, check=False, timeout=150,
        env={**os.environ, "PATH": path},
    )  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a `memdir mcp --http` with a memory server of its own."""
    home = tmp_path_factory.mktemp("conformance")
    env = {**os.environ, "MEMDIR_HOME": str(home), "MEMDIR_MCP_TOKEN": TOKEN}
    command = [sys.executable, "-m", "memdir.cli", "mcp", "--http", "--port", "0", "--json"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=home) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()
    subprocess.run([sys.executable, "-m", "memdir.cli", "server", "stop"], env=env, check=False, capture_output=True)


@pytest.fixture(scope="module")
def proxied(served: str) -> Iterator[str]:
    """The same through the proxy that adds the token."""
    own = urlsplit(served).port

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            here = f":{self.server.server_address[1]}"
            kept = {name: value.replace(here, f":{own}") for name, value in self.headers.items()}
            connection = http.client.HTTPConnection("127.0.0.1", own or 0, timeout=60)
            connection.request(self.command, self.path, body, {**kept, "Authorization": f"Bearer {TOKEN}"})
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection", "date"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            connection.close()

        do_GET = do_POST = do_DELETE = _pass_on

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}/mcp"
        server.shutdown()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_conformance_suite_finds_nothing(modules: Path, proxied: str, scenario: str) -> None:
    ran = run_node(
        modules, "@modelcontextprotocol/conformance/dist/index.js", "server", "--url", proxied, "--scenario", scenario
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert "0 failed" in ran.stdout, ran.stdout[-3000:]


def inspected(modules: Path, home: Path, *arguments: str) -> Any:
    """What the inspector's command line prints of a server that it starts."""
    settings = home / "servers.json"
    env = {"MEMDIR_HOME": str(home)}
    server = {"command": sys.executable, "args": ["-m", "memdir.cli", "mcp", "--stdio"], "env": env}
    settings.write_text(json.dumps({"mcpServers": {"memdir": server}}))
    packages = [modules / "@modelcontextprotocol" / name for name in ("inspector", "inspector-cli")]
    package = next(one for one in packages if one.exists())
    script = json.loads((package / "package.json").read_text())["bin"]
    entry = script if isinstance(script, str) else next(iter(script.values()))
    ran = run_node(
        modules, str(package.relative_to(modules) / entry), "--cli", "--config", str(settings), "--server", "memdir", *arguments
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return json.loads(ran.stdout)


def test_the_inspector_lists_the_tools_and_calls_them(modules: Path, tmp_path: Path) -> None:
    try:
        listed = inspected(modules, tmp_path, "--method", "tools/list")
        assert [tool["name"] for tool in listed["tools"]] == NAMES
        call = ["--method", "tools/call", "--tool-name", "memory_store", "--tool-arg", "content=The inspector was here."]
        stored = inspected(modules, tmp_path, *call)
        assert stored["structuredContent"]["memories"][0]["content"] == "The inspector was here."
        resources = inspected(modules, tmp_path, "--method", "resources/list")["resources"]
        assert next(one["uri"] for one in resources) == "memory://profile"
        assert len(resources) == 2
        prompts = inspected(modules, tmp_path, "--method", "prompts/list")["prompts"]
        assert [one["name"] for one in prompts] == ["recall", "remember"]
    finally:
        env = {**os.environ, "MEMDIR_HOME": str(tmp_path)}
        subprocess.run([sys.executable, "-m", "memdir.cli", "server", "stop"], env=env, check=False, capture_output=True)
