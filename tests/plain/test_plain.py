"""A mount at a server without `/v1`: everything it does to files arrives there, and at another mount, byte for byte."""

from __future__ import annotations

import pytest

from tests.plain.conftest import PlainMount, settled
from tests.plain.double import PlainServer

CONTENTS = {
    "/plain.md": b"# Title\n\ntext\n",
    "/no-newline": b"text",
    "/many-newlines": b"\n\n  text\t\n\n\n",
    "/dos.txt": b"a\r\nb\r\nc\r\n",
    "/mixed.txt": b"a\r\nb\nc\r\n",
    "/empty": b"",
    "/blank": b" \n\t\n",
    "/nul": b"a\0b",
    "/binary.bin": bytes(range(256)),
    "/address.url": b"https://example.com/page\n",
    "/umlaut.md": "Grüße, 世界\n".encode(),
    "/nbsp": "\u00a0text\u00a0".encode(),
    "/large.txt": b"line\n" * 300_000,
    "/deep/er/file.md": b"deep\n",
}


@pytest.mark.promise("sync.plain")
@pytest.mark.parametrize("when_busy", ["refuse", "forget"])
def test_every_content_comes_back_byte_for_byte_at_another_mount(
    mount: PlainMount, other: PlainMount, server: PlainServer, when_busy: str
) -> None:
    server.when_busy = when_busy
    for folder in ("/deep", "/deep/er"):
        mount.mkdir(folder)
    for path, content in CONTENTS.items():
        mount.write(path, content)
    mount.symlink("/link", b"deep/er/file.md")
    settled(mount, other)
    assert other.files() == CONTENTS | {"/link": b"deep/er/file.md"}
    assert sorted(server.paths()) == sorted([*CONTENTS, "/link"])
    other.chmod("/plain.md", 0o600)
    other.write("/binary.bin", b"\xff\xfe")
    other.write("/plain.md", b"changed\r\n")
    other.write("/empty", b"no longer\n")
    other.write("/nul", b"text now\n")
    settled(other, mount)
    assert mount.read("/binary.bin") == b"\xff\xfe"
    assert mount.read("/plain.md") == b"changed\r\n"
    assert mount.read("/empty") == b"no longer\n"
    assert mount.read("/nul") == b"text now\n"
    assert mount.mode("/plain.md") & 0o777 == 0o600
