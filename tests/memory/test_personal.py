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
    (
        "* The standard cipher is now the fast one in stream mode. I renamed the old cipher to Fast160. Because the "
        "working group refused to assign me a number for it, I have to drop support for it later. The daemon writes "
        "its key to the first ring."
    ),
    (
        "I have not made a port for the ninth system, because I have not seen a dialect that is limited to the "
        "published source. Every one that I have seen is a derivative with additions of its vendor, and those matter "
        "to this program since they change what it reads in the kernel. Usually I drop a dialect when I can no longer "
        "test it."
    ),
    (
        "We used to refuse to work without a good and a bad commit, which has been changed. We now use only one "
        "connection for both, so that a slow network is asked once. We forgot the second case in the last version, "
        "and it has been corrected here."
    ),
)
STORIES = (
    (
        "I moved to Graz in May, and the flat is loud. The landlord promised new windows, and I believe him less each "
        "week. Mornings are for the river: I walk to the second bridge and back before breakfast. The neighbours "
        "above have a piano and a plan."
    ),
    (
        "Desde enero vivo en Lugo. La casa es fría y el patio tiene un limonero. Por las mañanas voy al mercado, y "
        "los viernes como con mi hermana, que trabaja en el hospital. No como carne desde los quince años. El vecino "
        "de arriba toca el piano todo el día."
    ),
)
"""Longer than a note."""


def said(text: str, path: str = "") -> list[str]:
    return [candidate.text for candidate in extract(text, path, byte_at=lambda place: place)]


@pytest.mark.promise("real.about-the-user")
@pytest.mark.parametrize("text", ABSTRACTS)
def test_titles_abstracts_articles_and_code_are_documents_and_nothing_else(text: str) -> None:
    assert said(text) == []


def test_a_short_note_that_names_a_file_is_remembered() -> None:
    assert said("I prefer tea. Ada lives in Porto. See plan-3.md and ops@example.org.")[:2] == [
        "I prefer tea.", "Ada lives in Porto.",
    ]  # fmt: skip


@pytest.mark.parametrize("text", STORIES)
def test_a_longer_text_that_tells_where_somebody_lives_is_remembered(text: str) -> None:
    assert said(text)


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
