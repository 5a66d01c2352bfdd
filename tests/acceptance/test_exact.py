"""`memdir grep --literal` and `--regex` beside the real grep, in one mount with a server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir

pytestmark = pytest.mark.mount

FILES = {
    "a.txt": b"needle one\nother\nNeedle two\n",
    "dir/b.txt": b"crlf needle\r\nno line end: needle",
    "dir/deep/c.md": "naïve needle\nélan\n".encode(),
    "dir.md": b"a needle beside the folder\n",
    "latin": b"needle caf\xe9\n",
    "draft.txt~": b"needle that stays here\n",
    "data.bin": b"\0needle\n",
    "empty": b"",
}


def real(place: Path, *options: str) -> set[str]:
    """What grep prints, but for binary files."""
    command = ("grep", "-rnI", *options, ".")
    done = subprocess.run(command, cwd=place, env=os.environ | {"LC_ALL": "C"}, capture_output=True, check=False)
    return lines(done.stdout.decode("utf-8", "replace"))


def lines(text: str) -> set[str]:
    return {line.rstrip("\r") for line in text.replace("\udce9", "\ufffd").split("\n")}


@pytest.mark.promise("retrieval.literal-index")
@pytest.mark.promise("grep.literal")
def test_it_finds_what_the_real_grep_finds_also_what_was_just_changed(memdir: Memdir, notes: Path) -> None:
    for name, data in FILES.items():
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_bytes(data)

    def ours(*options: str) -> set[str]:
        return lines(memdir.run("grep", *options, ".", cwd=notes, expect=(0, 1)).out)

    for line in (
        "-F needle",
        "-F -i NEEDLE",
        "-E needle\\s(one|two)$",
        "-E ^.*\\sneedle",
        "-F -v needle",
        "-F -o -w needle",
        "-F -C 1 one",
    ):
        options = line.split()
        assert ours(*options) == real(notes, *options), options
    (notes / "a.txt").write_bytes(b"edited\nneedle one\n")
    (notes / "dir").rename(notes / "moved")
    (notes / "dir.md").unlink()
    assert ours("-F", "needle") == real(notes, "-F", "needle")
    binary = memdir.run("grep", "-F", "needle", ".", cwd=notes)
    assert "data.bin: binary file matches" in binary.err
    some = memdir.run("grep", "-F", "-l", "-k", "2", "needle", ".", cwd=notes)
    assert len(some.out.splitlines()) == 2
    assert "these are the first 2 files, there may be more; -k 10000 shows more" in some.err
    every = memdir.run("grep", "-F", "-l", "needle", ".", cwd=notes)
    assert "./data.bin" in every.out.splitlines()
    assert every.err == ""


def test_hits_by_meaning_stand_where_they_say_in_every_encoding_and_beside_what_is_no_text(memdir: Memdir, notes: Path) -> None:
    """The server reads these files otherwise than as bytes of UTF-8; their lines are those of the file all the same."""
    (notes / "western.txt").write_bytes("Einkauf\nDer Kühlschrank in der Küche ist kaputt.\n".encode("cp1252"))
    (notes / "wide.txt").write_text("Shopping\nThe harbour pilot boards at midnight.\n", encoding="utf-16")
    (notes / "dos.txt").write_bytes(b"one\r\nThe telescope needs a new mirror\r\n" + b"no line end: the violin")
    (notes / "scan.pdf").write_bytes(b"%PDF-1.7\n\0\0\n")
    (notes / "scan.pdf.pdf-transcription.md").write_text("# Scan\n\nThe warranty of the dishwasher ends in May.\n")
    for question, place in {
        "Kühlschrank kaputt": "western.txt:2:",
        "when does the harbour pilot board": "wide.txt:2:",
        "telescope mirror": "dos.txt:2:",
        "violin": "dos.txt:3:",
        "warranty of the dishwasher": "scan.pdf.pdf-transcription.md:3:",
    }.items():
        assert memdir.run("grep", "-k", "1", question, cwd=notes).out.startswith(place), question
    several = memdir.run("grep", "warranty of the dishwasher", "dos.txt", "scan.pdf", cwd=notes).out
    assert several.startswith("scan.pdf.pdf-transcription.md:3:"), "a search in the scan is one in its text"
    said = memdir.run("grep", "--rerank", "violin", "dos.txt", cwd=notes).err
    assert "no reranker is set up" in said
