"""`memdir forget` by hand: afterwards the words stand in no byte of the home, the mount included."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, eventually

CANARY = "Quibblefrost"


def streams(data: bytes) -> Iterator[bytes]:
    """What zlib packed anywhere in it."""
    for found in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data):
        try:
            yield zlib.decompressobj().decompress(data[found.start() :], 1 << 20)
        except zlib.error:
            continue


def holding(folder: Path, word: str) -> list[str]:
    """Files whose bytes, or whose packed bytes, hold a word."""
    wanted = word.casefold().encode()
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if wanted in data.lower() or any(wanted in one.lower() for one in streams(data)):
                found.append(str(path.relative_to(folder)))
    return found


@pytest.mark.promise("forget.nowhere")
def test_no_byte_of_it_is_left(memdir: Memdir, notes: Path) -> None:
    (notes / "memory").mkdir()
    me = notes / "memory" / "me.md"
    me.write_text(f"# Me\n\n- I live in Porto\n- My partner is {CANARY}\n")
    (notes / "long.txt").write_text(f"Before. The hint is {CANARY}. After.\n" + "Filler.\n" * 20_000)
    (notes / "gone.md").write_text(f"{CANARY} was here.\n")
    memdir.run("sync", notes, "--wait")
    eventually(lambda: CANARY in (notes / "profile.md").read_text(), "the fact in profile.md")
    (notes / "gone.md").unlink()
    me.write_text(f"# Me\n\n- I live in Lisbon\n- My partner is {CANARY}\n")
    memdir.run("sync", notes, "--wait")
    memdir.run("grep", f"who is {CANARY}", cwd=notes, expect=(0, 1))
    memdir.run("memory", "search", f"who is {CANARY}", cwd=notes, expect=(0, 1))
    assert len(holding(memdir.home, CANARY)) >= 2, "the scan finds what is there"
    shown = memdir.run("forget", "--dry-run", CANARY.lower(), cwd=notes).out
    assert f"/memory/me.md:4: - My partner is {CANARY}" in shown
    assert f"/long.txt:1: The hint is {CANARY}." in shown
    assert "history: 2 former contents" in shown
    assert "nobody is there to be asked" in memdir.run("forget", CANARY, cwd=notes, expect=2).err
    assert CANARY in me.read_text()
    done = memdir.run("forget", "--yes", CANARY, cwd=notes)
    assert "verified: it stands nowhere any more" in done.out
    eventually(lambda: CANARY not in (notes / "profile.md").read_text(), "the profile without it")
    assert me.read_text() == "# Me\n\n- I live in Lisbon\n"
    assert (notes / "long.txt").read_text().startswith("Before. After.\nFiller.\n")
    eventually(lambda: holding(memdir.home, CANARY) == [], "no byte of it in the home")
    assert holding(notes, CANARY) == []
    receipt = Path(done.out.split("receipt: ")[1].splitlines()[0])
    assert CANARY.lower() not in receipt.read_text().lower()
    assert memdir.run("forget", "--yes", CANARY, cwd=notes, expect=1).out == ""
    memdir.run("forget", "verify", cwd=notes)
    (notes / "back.md").write_text(f"{CANARY}\n")
    memdir.run("sync", notes, "--wait")
    again = json.loads(memdir.run("forget", "verify", receipt, "--json", expect=1).out)
    assert "file /back.md" in again["found"]
    assert memdir.run("forget", "verify", "nothing", expect=2).err.startswith("memdir: there is no receipt nothing")
