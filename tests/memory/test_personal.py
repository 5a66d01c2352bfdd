"""What becomes a memory of a text that a program posted without a place: notes about a person, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdir.memory.extract import extract
from memdir_bench.memory.documentation import FOLDER, documents

NOTES = (Path(__file__).parent / "person_notes.txt").read_text(encoding="utf-8").splitlines()
"""210 notes about a person."""
ABSTRACTS = (
    "MicroRNAs: small RNAs with a big role in gene regulation",
    (
        "MicroRNAs: small RNAs with a big role in gene regulation\n\nMicroRNAs are a family of small, non-coding RNAs "
        "that regulate gene expression in a sequence-specific manner. The two founding members of the family were "
        "identified in a worm."
    ),
    "Their set-valued versions always exist. We show that every such operator has a fixed point, and that it is unique.",
    (
        "Wing flutter at transonic speeds\n\nAn experimental study of a wing in a slipstream was made in order to "
        "determine the spanwise distribution of the lift increase. The results were intended as an evaluation basis "
        "for theoretical treatments."
    ),
    (
        "My title may suggest a history. In this paper I argue that card catalogues never were the problem, and I "
        "prefer to speak of readers. The library has three branches; each of them uses another scheme."
    ),
    "18 Editions of the Decimal Classification",
    "User Studies: A Review of the Literature",
    "The user interface is rendered on the server. The user must be authenticated before the session is opened.",
    "Python uses reference counting. Kbuild uses this information to decide that it needs to visit the directory.",
    "Avoids memory corruption and other errors when callers access them without checking.",
    "def prefers(name: str) -> bool:\n    return name == 'tea'\n",
    "Q: Is it possible to connect an old joystick to a serial port?\nA: Yes, but it may burn the port.",
)


def said(text: str, path: str = "") -> list[str]:
    return [candidate.text for candidate in extract(text, path, byte_at=lambda place: place)]


@pytest.mark.promise("real.about-the-user")
@pytest.mark.parametrize("text", ABSTRACTS)
def test_titles_abstracts_articles_and_code_are_documents_and_nothing_else(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize("note", NOTES)
def test_a_note_about_a_person_says_what_it_says_below_the_memory_paths(note: str) -> None:
    assert set(said(note)) <= set(said(note, "/memory/me.md"))


def test_notes_about_a_person_that_were_posted_together_lose_nothing() -> None:
    for first in range(0, len(NOTES), 7):
        text = "\n".join(f"- {note.removeprefix('- ')}" for note in NOTES[first : first + 7])
        assert said(text) == said(text, "/memory/me.md") != []


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no documentation of Debian packages here")
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.long)])
def test_of_the_documentation_on_this_machine_next_to_nothing_is_remembered(every: int) -> None:
    """READMEs, changelogs and copyright files, whoever wrote them; some speak of "me"."""
    read = remembered = 0
    for _path, text in documents(max_bytes=20_000, most=4000, every=every):
        read += 1
        remembered += bool(said(text))
    assert remembered <= max(1, read // 100), f"{remembered} of {read}"
