"""`memdir grep -F` and `-E` print, byte for byte, what the real grep prints of the same files."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memdir.cli import output
from memdir.cli.main import main
from memdir.core.limits import EXACT_LINE_MAX_BYTES
from memdir.core.paths import app_paths
from memdir.daemon.grep import Grep
from memdir.daemon.registry import MountRegistry, MountSpec
from memdir.daemon.syncing import Syncing
from memdir.fs.memory import MemoryFs
from memdir.fs.views import ProfileView
from tests.cli.fakes import FakeMount, found, hit

Mounts = Callable[..., FakeMount]

FILES = {
    "a.txt": b"needle one\nother\n\nNeedle two, needle three\nlast\n",
    "dir/b.txt": b"crlf needle\r\nmiddle\r\nno line end: needle",
    "dir/deep/c.md": "naïve needle\nélan  two  blanks\tand a tab\n\n\nneedle\n".encode(),
    "dir/deep/blank.txt": b"\n\n\n",
    "dir.md": b"a needle beside the folder\n",
    "empty": b"",
    "latin": b"caf\xe9 needle\nneedle\xff\n",
    "many.txt": b"".join(b"line %d%s\n" % (number, b" needle" if number % 7 in (0, 1) else b"") for number in range(60)),
    "with: colon:3:needle": b"the needle\n",
    "with\nnewline": b"needle\n",
    "steer.txt": b"needle \x1b[31mred\x07\n",
}


def mounted(fake_mount: Mounts, tmp_path: Path, name: str = "notes") -> FakeMount:
    """A mount whose daemon searches FILES, which stand on the disk at its place, too."""
    tree = MemoryFs(uid=os.getuid(), gid=os.getgid())
    mount = fake_mount(name)
    for path, data in FILES.items():
        tree.put_file(f"/{path}", [data], mode=0o644, mtime_ns=0, expected=None)
        (mount.path / path).parent.mkdir(parents=True, exist_ok=True)
        (mount.path / path).write_bytes(data)
    record = MountRegistry(app_paths()).allocate(MountSpec(name=f"{name}-tree", path=str(tmp_path / "tree"), sync=False))
    syncing = Syncing(app_paths(), record, tree, ProfileView())
    syncing.start()
    (mount.path / "profile.md").write_text(syncing.profile_text)
    mount.handlers["grep"] = Grep("n", tree, syncing).run
    return mount


def real(place: Path, *options: str, locale: str = "C") -> tuple[int, bytes]:
    """What grep prints of the files in our order."""
    command = (
        "grep",
        "-Hn",
        "--binary-files=text",
        *options,
        "--",
        *sorted((*FILES, "profile.md"), key=lambda path: path.split("/")),
    )
    done = subprocess.run(command, cwd=place, env=os.environ | {"LC_ALL": locale}, capture_output=True, check=False)
    assert done.stderr == b""
    return done.returncode, done.stdout


CASES = [
    "-F needle", "-F -i NEEDLE", "-F -w need", "-E '^.*needle'", "-E 'needle (one|two)'", "-E '^$'", "-F -v needle",
    "-E -v '^$'", "-F -c needle", "-F -c -v needle", "-F -c -m 2 needle", "-F -l needle", "-F -l -v needle", "-F -o needle",
    "-E -o 'ne*|nee'", "-E -o '[a-z]*'", "-E -o 'need|needle'", "-F -o -i NEEDLE", "-F -o -w needle", "-F -h needle",
    "-F -h -c needle", "-F -h -o needle", "-F -n -H -r needle", "-F -m 1 needle", "-F -m 2 -A 1 needle", "-F -A 1 needle",
    "-F -B 1 needle", "-F -C 2 needle", "-F -A 2 -B 0 needle", "-F -C 1 -v needle", "-F -C 0 needle", "-F -C 3 -m 3 line",
    "-F -A 50 line", "-F -e needle -e last", "-E -e '^last' -e 'two$'", "-F -C 1 -h needle", "-F -C 1 -A 3 needle",
    "-F -c -o needle", "-F nothing-at-all", "-F -c nothing-at-all", "-F -v -m 1 needle", "-F -e -e-", "-E -e -x -e -y",
]  # fmt: skip


@pytest.mark.promise("grep.literal")
def test_the_output_is_that_of_the_real_grep_byte_for_byte(
    fake_mount: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    mount = mounted(fake_mount, tmp_path)
    monkeypatch.chdir(mount.path)
    for case in CASES:
        options = shlex.split(case)
        expected = real(mount.path, *options)
        code = main(["grep", "-k", "10000", *options])
        printed = capfdbinary.readouterr()
        assert (code, printed.out) == expected, case


def test_paths_are_searched_in_their_order_and_named_as_they_were_typed(
    fake_mount: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    mount, other = mounted(fake_mount, tmp_path), mounted(fake_mount, tmp_path, "other")
    monkeypatch.chdir(mount.path)
    paths = ["./dir.md", "dir/deep/../b.txt", f"{mount.path}/a.txt", "../other/dir.md", "latin"]
    code = main(["grep", "-F", "needle", *paths])
    shown = [line.split(b":")[0].decode() for line in capfdbinary.readouterr().out.splitlines()]
    assert code == 0
    assert list(dict.fromkeys(shown)) == paths
    assert [len(args["paths"]) for _, args in mount.calls] == [3, 1]
    assert [args["paths"] for _, args in other.calls] == [["/dir.md"]]
    assert main(["grep", "-F", "needle", "."]) == 0
    assert capfdbinary.readouterr().out.startswith(b"./a.txt:1:")


def test_hundreds_of_paths_are_one_request_and_thousands_are_refused(
    fake_mount: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mount = mounted(fake_mount, tmp_path)
    monkeypatch.chdir(mount.path)
    assert main(["grep", "-F", "-l", "needle", *(f"missing{number}" for number in range(300)), "a.txt"]) == 2
    said = capsys.readouterr()
    assert said.out == "a.txt\n"
    assert said.err.count("no such file or folder") == 300
    assert len(mount.calls) == 1
    assert main(["grep", "needle", *["a.txt"] * 1001]) == 2
    assert "give their folder" in capsys.readouterr().err
    assert main(["grep", "needle", "-"]) == 2
    assert "standard input is not searched" in capsys.readouterr().err


def test_semantic_hits_of_several_mounts_are_one_list(
    fake_mount: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_mount("notes", grep=found(hit("/a.md", text="second"), hit("/b.md", text="fourth") | {"score": 0.1}))
    fake_mount("other", grep=found(hit("/c.md", text="first") | {"score": 0.9}, hit("/d.md", text="third") | {"score": 0.4}))
    monkeypatch.chdir(tmp_path)
    assert main(["grep", "-k", "3", "words", "notes", "other"]) == 0
    assert capsys.readouterr().out == "other/c.md:1:first\nnotes/a.md:1:second\nother/d.md:1:third\n"


def test_a_person_and_a_json_reader_get_lines_that_cannot_harm(
    fake_mount: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mount = mounted(fake_mount, tmp_path)
    monkeypatch.chdir(mount.path)
    assert main(["grep", "-F", "--json", "needle", "latin", "steer.txt"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["text"] for row in rows] == ["caf\ufffd needle", "needle\ufffd", "needle \x1b[31mred\x07"]
    assert main(["grep", "-F", "--json", "-c", "needle", "a.txt", "empty"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"path": "a.txt", "count": 2}, {"path": "empty", "count": 0}]
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["grep", "-F", "needle", "steer.txt", "with\nnewline"]) == 0
    assert capsys.readouterr().out == "steer.txt:1:needle \\x1b[31mred\\x07\nwith\\nnewline:1:needle\n"


def test_of_a_very_long_line_the_match_is_shown_and_said_so(
    fake_mount: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(FILES, "long", b"x" * 5_000_000 + b"needle" + b"y" * 5_000_000)
    mount = mounted(fake_mount, tmp_path)
    monkeypatch.chdir(mount.path)
    assert main(["grep", "-F", "needle", "long"]) == 0
    said = capsys.readouterr()
    assert "xneedley" in said.out
    assert len(said.out) == EXACT_LINE_MAX_BYTES + len("long:1:\n")
    assert "of 1 line only 2,000 bytes are shown" in said.err


def test_a_first_few_matches_say_that_there_may_be_more(
    fake_mount: Mounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mount = mounted(fake_mount, tmp_path)
    monkeypatch.chdir(mount.path)
    assert main(["grep", "-F", "-C", "1", "-k", "3", "needle", "many.txt"]) == 0
    said = capsys.readouterr()
    assert said.out.count("many.txt:") == 3
    assert "these are the first 3 matches" in said.err


def test_h_alone_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grep", "-h"]) == 0
    assert "examples:" in capsys.readouterr().out
