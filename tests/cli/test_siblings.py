"""Files of every kind dropped into a real mount: found by meaning, and their text beside them, here and on another mount."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir_bench.ingest import documents
from memdir_bench.ingest.documents import KINDS, SPOKEN
from memdir_bench.ingest.phrases import PHRASE
from tests.cli.test_end_to_end import Shell, private_home, users_shell

pytestmark = pytest.mark.mount

WAIT_S = 60.0


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """One server for all of these tests; each has memories of its own."""
    with private_home() as made:
        yield made


@pytest.fixture
def shell(home: Path, tmp_path: Path) -> Iterator[Shell]:
    with users_shell(home, tmp_path) as made:
        yield made


def until(true: Callable[[], bool], what: str) -> None:
    """Wait for the daemon and the server, which are other processes."""
    deadline_s = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline_s, what
        threading.Event().wait(0.05)


def mounted(shell: Shell, name: str, folder: str, *options: str) -> Path:
    shell.ok("mount", name, "--path", folder, *options)
    return shell.cwd / folder


@pytest.mark.promise("extract.found")
def test_one_file_of_each_kind_is_found_and_read(shell: Shell) -> None:
    mount = mounted(shell, "kinds", "m")
    for kind in KINDS:
        (mount / kind.name).write_bytes(kind.make())
    (mount / "memo.wav").write_bytes(documents.speech())
    (mount / "plain.md").write_text("# Something else\n\nNo birds here.\n")
    siblings = {kind.name: mount / f"{kind.name}.{kind.sibling}-transcription.md" for kind in KINDS}
    siblings["memo.wav"] = mount / "memo.wav.audio-transcription.md"
    for name, sibling in siblings.items():
        until(sibling.exists, f"{name} has no text beside it; {sorted(os.listdir(mount))}")
        text = sibling.read_text()
        assert len(text.encode()) == sibling.stat().st_size
        assert text.startswith(f'---\nsource: "{name}"\n')
        assert (PHRASE if name != "memo.wav" else "Thursday") in " ".join(text.split()), name
    for kind in KINDS:
        rows = json.loads(shell.ok("grep", "--json", "what does the heron do on Tuesdays", str(mount / kind.name)))
        assert [row["path"] for row in rows[:1]] == [str(mount / kind.name)], kind.name
        row = rows[0]
        assert row["sibling"] == str(siblings[kind.name])
        lines = siblings[kind.name].read_text().splitlines()
        assert PHRASE.split()[1] in " ".join(lines[row["sibling_lines"][0] - 1 : row["sibling_lines"][1]]), (kind.name, row)
        if kind.name == "page.html":
            source = (mount / kind.name).read_text().splitlines()
            assert PHRASE in " ".join(source[row["start_line"] - 1 : row["end_line"]]), "lines of the page itself"
        else:
            assert row["sibling_lines"] == [row["start_line"], row["end_line"]]
        if kind.place is not None:
            assert row["place"] == kind.place
    found = shell.ok("grep", "when is the bridge meeting", str(mount / "memo.wav.audio-transcription.md"))
    assert "memo.wav:" in found
    assert SPOKEN.split()[-1].rstrip(".") in found


@pytest.mark.promise("extract.siblings")
def test_a_sibling_follows_its_file_on_every_mount(shell: Shell) -> None:
    first, second = mounted(shell, "follows", "a"), mounted(shell, "follows", "b")
    (first / "river.pdf").write_bytes(documents.pdf())
    name = "river.pdf.pdf-transcription.md"
    for mount in (first, second):
        until(lambda mount=mount: name in os.listdir(mount), f"{mount} lists no text")  # asked for by no name before
        with pytest.raises(OSError, match="Read-only"):
            (mount / name).write_text("mine")
    # Renamed and copied here, with the text at once where the contents are known.
    (first / "work").mkdir()
    moved = first / "work" / "birds.pdf.pdf-transcription.md"
    assert not moved.exists(), "and the kernel remembers that there is none"
    (first / "river.pdf").rename(first / "work" / "birds.pdf")
    assert not (first / name).exists()
    until(moved.exists, "the text did not follow")
    assert moved.read_text().startswith('---\nsource: "birds.pdf"\n')
    until((second / "work" / moved.name).exists, "the rename did not arrive with the text")
    until(lambda: not (second / name).exists(), "the old text stayed")
    shutil.copyfile(first / "work" / "birds.pdf", first / "copy.pdf")
    until((first / "copy.pdf.pdf-transcription.md").exists, "the copy has no text")
    # Other contents, other text; what cannot be read says why, until it can.
    (first / "copy.pdf").write_bytes(documents.encrypted_pdf())
    error = second / "copy.pdf.error.md"
    until(error.exists, "no error beside the file")
    assert "encrypted with a password" in error.read_text()
    assert not (second / "copy.pdf.pdf-transcription.md").exists()
    (first / "copy.pdf").write_bytes(documents.scanned_pdf())
    until(lambda: not error.exists(), "the error stayed")
    until((second / "copy.pdf.pdf-transcription.md").exists, "no text after the error")
    # Gone with the file, also with its folder; nothing was ever pushed.
    shutil.rmtree(first / "work")
    until(lambda: not (second / "work").exists(), "the folder did not go")
    (second / "copy.pdf").unlink()
    until(lambda: os.listdir(first) == ["profile.md"], f"left: {os.listdir(first)}")
    history = (
        shell.ok("history", "--deleted", str(first)) if shell.run("history", "--deleted", str(first)).returncode == 0 else ""
    )
    assert "transcription" not in history


def test_a_file_that_is_made_again_with_the_same_contents_has_its_text_again(shell: Shell) -> None:
    mount = mounted(shell, "again", "m")
    (mount / "mail").mkdir()
    source, sibling = mount / "mail" / "a.eml", mount / "mail" / "a.eml.mail-transcription.md"
    source.write_bytes(documents.mail())
    until(sibling.exists, "no text beside the mail")
    shutil.copytree(mount / "mail", shell.cwd / "kept")
    shutil.rmtree(mount / "mail")  # at once made anew: for the server nothing has changed
    shutil.copytree(shell.cwd / "kept", mount / "mail", ignore=shutil.ignore_patterns("*.md"))
    until(sibling.exists, "its text did not come back")
    source.unlink()
    source.write_bytes(documents.mail())
    source.chmod(0o600)
    until(sibling.exists, "its text did not come back beside a file of another mode")
    (mount / "mail" / ".a.tmp").write_bytes(documents.mail())
    (mount / "mail" / ".a.tmp").replace(source)
    until(sibling.exists, "its text did not come back beside what took the file's place")
    assert PHRASE in " ".join(sibling.read_text().split())


def test_git_takes_no_text_for_a_new_file(shell: Shell) -> None:
    mount = mounted(shell, "git", "m")
    work = mount / "project" / "docs"
    work.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(mount / "project")], check=True)
    (work / "river.pdf").write_bytes(documents.pdf())
    (mount / "river.pdf").write_bytes(documents.pdf())
    name = "river.pdf.pdf-transcription.md"
    until((work / name).exists, "no text by its name")
    until(lambda: name in os.listdir(mount), "no text outside of the work tree")
    assert PHRASE in " ".join((work / name).read_text().split())
    assert os.listdir(work) == ["river.pdf"]
    status = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=work, check=True, capture_output=True, text=True)
    assert status.stdout.split() == ["??", "docs/river.pdf"]
    shutil.rmtree(mount / "project")
    assert not work.exists()


@pytest.mark.promise("extract.siblings")
def test_an_exact_search_looks_into_the_texts_as_grep_does_with_and_without_a_server(shell: Shell) -> None:
    mount = mounted(shell, "exact", "m")
    (mount / "work").mkdir()
    (mount / "work" / "river.pdf").write_bytes(documents.pdf())
    (mount / "letter.docx").write_bytes(documents.docx())
    (mount / "plain.md").write_text(f"# Seen\n\n{PHRASE}\n")
    text = mount / "work" / "river.pdf.pdf-transcription.md"
    until(lambda: text.exists() and (mount / "letter.docx.office-transcription.md").exists(), "no texts")
    by_grep = ["grep", "-rnF", "--exclude=*.docx", "--exclude=*.pdf", PHRASE, str(mount)]

    def as_grep_does() -> list[str]:
        said = subprocess.run(by_grep, capture_output=True, text=True, check=True).stdout
        found = sorted(shell.ok("grep", "-F", PHRASE, str(mount)).splitlines())
        assert found == sorted(said.splitlines())
        return found

    assert len(as_grep_does()) == 3
    assert shell.ok("grep", "-F", PHRASE, str(text)) == shell.ok("grep", "-F", PHRASE, str(mount / "work" / "river.pdf"))
    assert shell.ok("grep", "-F", "-l", PHRASE, str(mount / "work")) == f"{text}\n"
    of_the_server = shell.ok("grep", "-F", "--container", "exact", PHRASE).splitlines()
    assert [line.split(":")[0] for line in of_the_server] == ["/plain.md", "/letter.docx", "/work/river.pdf"]
    assert shell.ok("grep", "-F", "-l", "--container", "exact", PHRASE, "work/").splitlines() == ["/work/river.pdf"]
    (mount / "locked.pdf").write_bytes(documents.encrypted_pdf())
    until((mount / "locked.pdf.error.md").exists, "no reason")
    assert shell.ok("grep", "-F", "-l", 'source: "river.pdf"', str(mount)) == f"{text}\n", "its own lines are of the mount"
    assert shell.ok("grep", "-F", "-l", "encrypted with a password", str(mount)) == f"{mount / 'locked.pdf.error.md'}\n"
    assert shell.ok("grep", "-F", "-l", PHRASE, str(text), str(mount / "plain.md")).splitlines() == [
        str(text), str(mount / "plain.md")
    ]  # fmt: skip
    shell.ok("server", "stop")
    assert len(as_grep_does()) == 3


def test_a_text_beside_a_file_stays_whatever_removes_it_and_goes_with_its_file(shell: Shell, tmp_path: Path) -> None:
    mount = mounted(shell, "kept", "m")
    (tmp_path / "mine" / "work").mkdir(parents=True)
    (tmp_path / "mine" / "work" / "river.pdf").write_bytes(documents.pdf())
    mirror = ["rsync", "-a", "--delete", f"{tmp_path / 'mine'}/", str(mount / "copy")]
    subprocess.run(mirror, check=True)
    text = mount / "copy" / "work" / "river.pdf.pdf-transcription.md"
    until(text.exists, "no text")
    subprocess.run(mirror, check=True)
    text.unlink()
    assert PHRASE in text.read_text()
    assert text.stat().st_nlink == 1
    assert text.name in os.listdir(text.parent)
    shutil.rmtree(mount / "copy")
    assert sorted(os.listdir(mount)) == ["profile.md"]


def test_a_mount_may_be_without_them(shell: Shell) -> None:
    mount = mounted(shell, "without", "m", "--no-siblings")
    (mount / "river.pdf").write_bytes(documents.pdf())
    until(lambda: PHRASE in shell.run("grep", "heron at the weir", str(mount)).stdout, "not found")
    assert sorted(os.listdir(mount)) == ["profile.md", "river.pdf"]


def test_a_copy_of_a_text_beside_a_file_is_never_synced_and_what_somebody_wrote_is(shell: Shell) -> None:
    first, second = mounted(shell, "copies", "a"), mounted(shell, "copies", "b")
    (first / "kept.pdf.pdf-transcription.md").write_text('---\nsource: "kept.pdf"\nkind: "pdf"\n---\n\ncopied from elsewhere\n')
    (first / "scan.pdf.pdf-transcription.md").write_text("# What I could make out\n")
    (first / "river.pdf").write_bytes(documents.pdf())
    (first / "river.pdf.pdf-transcription.md").write_text("# My own\n")
    (first / "real.md").write_text("real")
    for name in ("real.md", "scan.pdf.pdf-transcription.md", "river.pdf.pdf-transcription.md"):
        until((second / name).exists, f"{name} did not arrive")
    assert not (second / "kept.pdf.pdf-transcription.md").exists()
    until(lambda: PHRASE in shell.run("grep", "heron at the weir", str(first / "river.pdf")).stdout, "not read")
    assert (second / "river.pdf.pdf-transcription.md").read_text() == "# My own\n", "a file stands before a sibling"
    (second / "river.pdf.pdf-transcription.md").unlink()
    assert PHRASE in (second / "river.pdf.pdf-transcription.md").read_text()


def test_texts_are_there_without_the_server(shell: Shell) -> None:
    mount = mounted(shell, "offline", "m")
    (mount / "river.pdf").write_bytes(documents.pdf())
    sibling = mount / "river.pdf.pdf-transcription.md"
    until(sibling.exists, "no text")
    shell.ok("unmount", str(mount))
    shell.ok("server", "stop")
    shell.environment["MEMDIR_SERVER_URL"] = "http://127.0.0.1:9"
    shell.environment["MEMDIR_API_KEY"] = "none"
    shell.ok("mount", "offline", "--path", "m")
    until(sibling.exists, "no text after a new start")
    assert PHRASE in sibling.read_text()
    del shell.environment["MEMDIR_SERVER_URL"], shell.environment["MEMDIR_API_KEY"]
