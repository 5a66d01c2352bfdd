"""`memdir conflicts`: what is listed, how it is shown, and what settling does to the files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fakes import FakeMount

Run = Callable[..., tuple[int, str, str]]
Mounts = Callable[..., FakeMount]
COPY = "/plan (conflict 2026-11-21 laptop).md"


class Conflicting:
    """A mount with one conflict; what is asked of its daemon is answered as the engine would."""

    def __init__(self, make: Mounts) -> None:
        self.pushed = True
        self.settled: list[str] = []
        self.copies = [COPY]
        self.mount = make(
            conflicts=lambda _: {"rows": [self.row(copy) for copy in self.copies]},
            push=lambda args: {"pushed": args["paths"] if self.pushed else []},
            keep_both=self._keep,
        )
        self.place = self.mount.path
        self.original, self.copy = self.place / "plan.md", self.place / COPY[1:]
        self.original.write_text("one\ntwo\nthree\n")
        self.copy.write_text("one\nzwei\nthree\n")

    def _keep(self, args: dict[str, Any]) -> dict[str, Any]:
        self.settled.append(args["path"])
        return {"settled": True}

    @staticmethod
    def row(copy: str) -> dict[str, Any]:
        return {
            "copy": copy, "original": "/plan.md", "when": "2026-11-21", "host": "laptop", "base_revision": None,
            "remote_revision": None,
        }  # fmt: skip


@pytest.fixture
def conflicting(fake_mount: Mounts) -> Conflicting:
    return Conflicting(fake_mount)


@pytest.mark.promise("sync.conflicts-command")
def test_they_are_listed_with_when_and_who(run: Run, conflicting: Conflicting) -> None:
    code, out, err = run("conflicts", "notes")
    assert (code, out) == (0, f"notes{COPY}  2026-11-21  laptop\n")
    assert "1 file kept twice" in err
    assert json.loads(run("conflicts", "--json")[1])[0]["copy"] == COPY


def test_none_is_exit_1(run: Run, conflicting: Conflicting) -> None:
    conflicting.copies = []
    assert run("conflicts") == (1, "", "memdir: no file of notes is in conflict\n")
    assert run("conflicts", "show", "notes/plan.md")[0] == 1
    code, _, err = run("conflicts", "resolve", "notes/plan.md", "--keep", "copy")
    assert code == 2
    assert "is not in conflict" in err


@pytest.mark.promise("sync.conflicts-command")
@pytest.mark.parametrize("target", ["notes/plan.md", f"notes{COPY}"])
def test_both_sides_are_shown_as_a_difference(run: Run, conflicting: Conflicting, target: str) -> None:
    code, out, _ = run("conflicts", "show", target)
    assert code == 0
    assert out.splitlines() == [
        "--- notes/plan.md", f"+++ notes{COPY}", "@@ -1,3 +1,3 @@", " one", "-two", "+zwei", " three"
    ]  # fmt: skip
    assert json.loads(run("conflicts", "show", target, "--json")[1])[0]["diff"][4:6] == ["-two", "+zwei"]
    conflicting.copy.write_text("one\ntwo\nthree")
    assert run("conflicts", "show", target)[1].splitlines()[-3:] == ["-three", "+three", "\\ No newline at end of file"]


def test_what_is_no_text_is_said_in_words(run: Run, conflicting: Conflicting) -> None:
    conflicting.copy.write_bytes(b"\0" * 2048)
    conflicting.original.unlink()
    assert run("conflicts", "show", "notes/plan.md")[1] == f"notes/plan.md: not there\nnotes{COPY}: 2.0 KiB, no text\n"


@pytest.mark.promise("sync.conflicts-command")
def test_keeping_one_side_is_done_with_the_files(run: Run, conflicting: Conflicting) -> None:
    assert run("conflicts", "resolve", "notes/plan.md", "--keep", "copy")[:2] == (
        0, "notes/plan.md: it has the contents of the copy now\n",
    )  # fmt: skip
    assert conflicting.original.read_text() == "one\nzwei\nthree\n"
    assert not conflicting.copy.exists()
    conflicting.copy.write_text("x")
    assert run("conflicts", "resolve", f"notes{COPY}", "--keep", "original")[0] == 0
    assert conflicting.original.read_text() == "one\nzwei\nthree\n"
    assert not conflicting.copy.exists()


@pytest.mark.promise("sync.conflicts-command")
def test_what_was_merged_by_hand_takes_the_place_of_both(run: Run, conflicting: Conflicting, tmp_path: Path) -> None:
    (tmp_path / "merged").write_text("all\n")
    conflicting.original.chmod(0o640)
    code, out, _ = run("conflicts", "resolve", "notes/plan.md", "--merged", "merged", "--json")
    assert code == 0
    assert json.loads(out)["kept"] == "merged"
    assert conflicting.original.read_text() == "all\n"
    assert conflicting.original.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in conflicting.place.iterdir()] == ["plan.md"]
    conflicting.copy.write_text("x")
    assert run("conflicts", "resolve", "notes/plan.md", "--merged", "notes/plan.md")[0] == 0, "merged in its place"
    assert conflicting.original.read_text() == "all\n"
    assert not conflicting.copy.exists()


def test_keeping_both_touches_no_file(run: Run, conflicting: Conflicting) -> None:
    conflicting.pushed = False
    assert run("conflicts", "resolve", "notes/plan.md", "--keep", "both")[0] == 0
    assert conflicting.settled == [COPY]
    assert conflicting.copy.exists()


def test_nothing_goes_that_the_server_does_not_have_unless_it_is_forced(run: Run, conflicting: Conflicting) -> None:
    conflicting.pushed = False
    code, _, err = run("conflicts", "resolve", "notes/plan.md", "--keep", "original")
    assert code == 2
    assert "could not be undone" in err
    assert "--force" in err
    assert conflicting.copy.exists()
    assert run("conflicts", "resolve", "notes/plan.md", "--keep", "original", "--force")[0] == 0
    assert not conflicting.copy.exists()


def test_of_several_copies_one_has_to_be_named(run: Run, conflicting: Conflicting) -> None:
    conflicting.copies.append("/plan (conflict 2026-11-22 desktop).md")
    code, _, err = run("conflicts", "resolve", "notes/plan.md", "--keep", "original")
    assert code == 2
    assert "has 2 copies" in err
    assert run("conflicts", "resolve", f"notes{COPY}", "--keep", "original")[0] == 0


def test_a_folder_and_a_file_are_left_to_a_person(run: Run, conflicting: Conflicting) -> None:
    conflicting.original.unlink()
    conflicting.original.mkdir()
    for options in (("--keep", "copy"), ("--merged", f"notes{COPY}")):
        assert run("conflicts", "resolve", "notes/plan.md", *options)[0] == 2
    assert conflicting.copy.read_text() == "one\nzwei\nthree\n"


def test_one_has_to_say_what_is_kept(run: Run, conflicting: Conflicting) -> None:
    assert run("conflicts", "resolve", "notes/plan.md")[0] == 2
