"""The memory tool on a real mount and on the server behind it: the same files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memdir.agents.memory_tool import MemoryTool
from memdir.agents.memory_tool.remote import ServerFiles
from memdir.client.http import Client
from tests.acceptance.driver import Memdir, eventually

pytestmark = [pytest.mark.mount, pytest.mark.long]


def test_what_a_model_writes_in_a_mount_is_on_the_server_and_the_other_way_round(
    memdir: Memdir, notes: Path, name: str
) -> None:
    on_mount = MemoryTool.on_folder(notes / "memory")
    path = "/memories/shop/queue.md"
    assert not on_mount.run({"command": "create", "path": path, "file_text": "The queue is bounded.\n"}).is_error
    edited = on_mount.run({"command": "str_replace", "path": path, "old_str": "bounded", "new_str": "bounded to 500"})
    assert not edited.is_error, edited.text
    memdir.run("sync", notes, "--wait")

    url = json.loads((memdir.home / "state" / "server.json").read_text())["url"]
    key = json.loads((memdir.home / "config" / "credentials.json").read_text())["api_key"]
    with Client(url, key) as client:
        on_server = MemoryTool(ServerFiles(client, name))
        viewed = on_server.run({"command": "view", "path": path}).text
        assert viewed == on_mount.run({"command": "view", "path": path}).text
        assert viewed.endswith("     1\tThe queue is bounded to 500.")
        assert not on_server.run({"command": "insert", "path": path, "insert_line": 1, "insert_text": "Since May."}).is_error
        eventually(
            lambda: (notes / "memory" / "shop" / "queue.md").read_text() == "The queue is bounded to 500.\nSince May.\n",
            "the mount has what was written on the server",
        )
        assert not on_mount.run({"command": "rename", "old_path": path, "new_path": "/memories/queue.md"}).is_error
        memdir.run("sync", notes, "--wait")
        assert "does not exist" in on_server.run({"command": "view", "path": path}).text
        listed = on_server.run({"command": "view", "path": "/memories"}).text
        assert "/memories/queue.md" in listed
        assert ".tmp" not in listed
