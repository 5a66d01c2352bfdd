"""What developers remember: forty subjects, each with what may be decided, go wrong, be set or be typed; twenty-five projects.

The first half of the subjects was in view when memories and questions were put together; the second half, `held`, was written
before any search saw it and is never tuned to. Columns of subjects.txt: name | how somebody else would call it | choices |
why | what went wrong | cause | remedy | file | setting | command.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`name` is what memories call it, `otherwise` what a person who forgot the word would say."""

    name: str
    otherwise: str
    choices: tuple[str, ...]
    why: tuple[str, ...]
    symptom: str
    cause: str
    remedy: str
    file: str
    setting: str
    command: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Where a memory was made."""

    name: str
    what: str
    language: str


_SUBJECTS: Final = Path(__file__).with_name("subjects.txt")

_PROJECTS: Final = """
shopfront|a shop for bicycles|TypeScript
ledgerly|bookkeeping for freelancers|Python
farmhand|irrigation of greenhouses|Go
tourbook|guided tours in old towns|Ruby
medplan|duty rosters of a hospital|Java
parcelbox|lockers for parcels|Kotlin
quizzard|a quiz for classrooms|Elixir
noteleaf|notes that sync|Rust
roomy|booking of meeting rooms|PHP
cinelist|listings of cinemas|Python
solarmap|yield of solar roofs|Python
petpass|vaccination cards of pets|Swift
jobhive|a board for apprenticeships|TypeScript
brewlog|recipes of small breweries|Go
citybikes|shared bikes in a city|Java
legalpad|drafts of contracts|C#
voxel-studio|a modelling tool in the browser|TypeScript
fleetview|where the vans are|Go
museum-guide|audio in museums|Kotlin
gridwatch|load of the power grid|Rust
recipebox|family recipes|Ruby
chatdesk|support by chat|TypeScript
labnotes|notebooks of a laboratory|Python
ticketbay|concert tickets|PHP
weatherkit|forecasts for farmers|Rust
"""


def subjects() -> list[Subject]:
    """All forty, in order."""
    rows = [line.split("|") for line in _SUBJECTS.read_text(encoding="utf-8").strip().split("\n")]
    return [
        Subject(
            name=row[0], otherwise=row[1], choices=tuple(row[2].split(";")), why=tuple(row[3].split(";")), symptom=row[4],
            cause=row[5], remedy=row[6], file=row[7], setting=row[8], command=row[9], held=number >= len(rows) // 2,
        )
        for number, row in enumerate(rows)
    ]  # fmt: skip


def projects() -> list[Project]:
    """All twenty-five, in order."""
    return [Project(name=name, what=what, language=language) for name, what, language in
            (line.split("|") for line in _PROJECTS.strip().split("\n"))]  # fmt: skip
