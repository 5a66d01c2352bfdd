"""Made-up users: parameters drawn from tiers that overlap, a plan for each task, and real file operations on a mount.

A user never makes features: files are read, listed, written, edited, moved and deleted, and what becomes of that is the
collector's. Of each user's sessions some are otherwise in one dimension by one tier, as FileGram's behavioural perturbation.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

TIERS: Final = "LMR"
TASKS: Final = (
    "understand-reports", "understand-archive", "create-report", "create-guide", "organise-inbox", "organise-project",
    "synthesise-findings", "synthesise-costs", "iterate-draft", "iterate-plan", "maintain-notes", "maintain-archive",
)  # fmt: skip
SHIFTED: Final = 2
"""Sessions of each user that are otherwise."""
_WORDS: Final = (
    *("the", "river", "gauge", "water", "level", "report", "of", "a", "station", "in", "spring", "and", "autumn", "was"),
    *("read", "again", "by", "somebody", "who", "wrote", "that", "costs", "repair", "grow", "with", "every", "winter"),
    *("while", "garden", "plan", "for", "beans", "tomatoes", "old", "roses", "waits", "on", "long", "table"),
)
_READS: Final = {"understand": 10, "create": 5, "organise": 6, "synthesise": 9, "iterate": 5, "maintain": 5}
_MAKES: Final = {"understand": 2, "create": 4, "organise": 2, "synthesise": 3, "iterate": 2, "maintain": 3}
_EDITS: Final = {"understand": 2, "create": 3, "organise": 2, "synthesise": 3, "iterate": 8, "maintain": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A tier for each dimension, and how far this one is from the middle of it (0.7 to 1.4)."""

    name: str
    tiers: Mapping[str, str]
    lean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One session: who, which task, and what is otherwise (dimension and the tier then)."""

    user: User
    task: str
    shift: tuple[str, str] | None


def users(seed: int, count: int) -> list[User]:
    """Each tier comes about equally often in each dimension."""
    chance = random.Random(f"users {seed}")  # noqa: S311
    columns = {}
    for dimension in "ABCDEF":
        tiers = [TIERS[at % 3] for at in range(count)]
        chance.shuffle(tiers)
        columns[dimension] = tiers
    return [
        User(name=f"u{at:02}", tiers={one: columns[one][at] for one in "ABCDEF"}, lean=chance.uniform(0.7, 1.4))
        for at in range(count)
    ]


def planned(user: User, seed: int) -> list[Planned]:
    """All tasks, in the user's own order."""
    chance = random.Random(f"plan {seed} {user.name}")  # noqa: S311
    tasks = list(TASKS)
    chance.shuffle(tasks)
    shifted = set(chance.sample(range(len(tasks)), SHIFTED))
    made = []
    for at, task in enumerate(tasks):
        shift = None
        if at in shifted:
            dimension = chance.choice("BCDE")
            usual = TIERS.index(user.tiers[dimension])
            then = usual + chance.choice([one for one in (-1, 1) if 0 <= usual + one <= 2])
            shift = (dimension, TIERS[then])
        made.append(Planned(user=user, task=task, shift=shift))
    return made


class Session:
    """Carries a plan out below `folder`, which is in the mount; `search` is a `memdir grep`, `tick` lets time go by (ms)."""

    def __init__(
        self, plan: Planned, folder: Path, seed: int, tick: Callable[[int], None], search: Callable[[str, str], None]
    ) -> None:
        shift = plan.shift
        user = plan.user if shift is None else replace(plan.user, tiers={**plan.user.tiers, shift[0]: shift[1]})
        self._tiers, self._lean = user.tiers, user.lean
        self._kind, _, self._subject = plan.task.partition("-")
        self._chance = random.Random(f"session {seed} {plan.user.name} {plan.task}")  # noqa: S311
        self._folder, self._tick, self._search = folder, tick, search

    def prepare(self) -> None:
        """What the workspace of the task holds before anybody works."""
        source = self._folder / "material"
        source.mkdir(parents=True)
        for at in range(12):
            (source / f"{self._subject}-{at:02}.md").write_text(self._text(900))
        (source / "figures.csv").write_text("month,cost\n" + "".join(f"{at},{at * 17 % 90}\n" for at in range(12)))

    def run(self) -> None:
        """Look at things, make things, work on them, tidy up."""
        self._look()
        made = self._make()
        self._edit(made)
        self._tidy(made)

    def _around(self, value: float) -> int:
        return max(0, round(value * self._lean * self._chance.uniform(0.6, 1.5)))

    def _wait(self, longest_s: int = 60) -> None:
        self._tick(self._chance.randint(2000, longest_s * 1000))

    def _look(self) -> None:
        files = sorted((self._folder / "material").iterdir())
        count = max(3, self._around(_READS[self._kind]))
        searches = self._around({"L": 0.3, "M": 4, "R": 0.5}[self._tiers["A"]])
        browses = self._around({"L": 1.2, "M": 1.2, "R": 8}[self._tiers["A"]])
        again = {"L": 0.5, "M": 0.2, "R": 0.05}[self._tiers["A"]]
        steps = ["read"] * count + ["search"] * searches + ["browse"] * browses
        self._chance.shuffle(steps)
        seen: list[Path] = []
        for step in steps:
            self._wait()
            if step == "search":
                self._search(self._chance.choice(_WORDS), f"/{self._folder.name}")
            elif step == "browse":
                os.listdir(self._folder / "material" if self._chance.random() < 0.7 else self._folder)
            else:
                file = self._chance.choice(seen) if seen and self._chance.random() < again else self._chance.choice(files)
                seen.append(file)
                file.read_bytes()

    def _make(self) -> list[Path]:
        tier = self._tiers["C"]
        depth = {"L": 4, "M": 2, "R": 0}[tier]
        if depth and self._chance.random() < 0.15:
            depth -= 1
        made = []
        for at in range(max(1, self._around(_MAKES[self._kind]))):
            self._wait(180)
            place = self._folder
            for level in range(self._chance.randint(max(0, depth - 1), depth)):
                place = place / f"{self._subject}-part{level}-{at % 2}"
            place.mkdir(parents=True, exist_ok=True)
            length = {"L": 5200, "M": 1700, "R": 480}[self._tiers["B"]]
            file = place / f"{self._chance.choice(('notes', 'draft', 'result', 'summary'))}-{self._subject}-{at}.md"
            file.write_text(self._document(max(80, self._around(length))))
            made.append(file)
        visual, tables = {"L": (2, 1), "M": (0, 1), "R": (0, 0)}[self._tiers["F"]]
        if self._chance.random() < 0.12:
            visual, tables = self._chance.choice([(0, 0), (1, 1), (0, 1)])
        for at in range(self._around(visual)):
            self._wait()
            (self._folder / f"figure{at}.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
        if tables and self._chance.random() < 0.8:
            self._wait()
            (self._folder / "table.csv").write_text("a,b\n1,2\n")
        return made

    def _edit(self, made: list[Path]) -> None:
        tier = self._tiers["D"]
        times = max(1, self._around(_EDITS[self._kind] * {"L": 1.6, "M": 0.9, "R": 0.5}[tier]))
        for _ in range(times):
            self._wait(120)
            file = self._chance.choice(made)
            lines = file.read_text().splitlines(keepends=True)
            small = {"L": 0.9, "M": 0.5, "R": 0.15}[tier]
            count = self._chance.randint(1, 3) if self._chance.random() < small else self._chance.randint(18, 60)
            at = self._chance.randrange(len(lines) or 1)
            lines[at : at + count] = [f"{self._sentence()}\n" for _ in range(count)]
            fresh = file.with_name(f".{file.name}.tmp")
            fresh.write_text("".join(lines))
            os.replace(fresh, file)

    def _tidy(self, made: list[Path]) -> None:
        for file in made[: self._around({"L": 1.5, "M": 0.6, "R": 0.1}[self._tiers["C"]])]:
            self._wait()
            (self._folder / "done").mkdir(exist_ok=True)
            shutil.move(file, self._folder / "done" / file.name)
        share = {"L": 0.9, "M": 0.2, "R": 0.0}[self._tiers["E"]]
        files = sorted((self._folder / "material").glob("*.md"))
        count = min(len(files), round(share * len(made) * self._chance.uniform(0.5, 1.5)))
        if self._tiers["E"] == "M" and not count and self._chance.random() < 0.6:
            count = 1
        for file in self._chance.sample(files, count):
            self._wait()
            file.unlink()

    def _sentence(self) -> str:
        return " ".join(self._chance.choice(_WORDS) for _ in range(12)).capitalize() + "."

    def _text(self, length: int) -> str:
        text = ""
        while len(text) < length:
            text += self._sentence() + ("\n" if self._chance.random() < 0.4 else " ")
        return text[:length] + "\n"

    def _document(self, length: int) -> str:
        head = f"# {self._subject.capitalize()}\n\n"
        if self._tiers["F"] != "R" and self._chance.random() < 0.5:
            head += "| what | how much |\n|---|---|\n| gauges | 3 |\n| repairs | 2 |\n\n"
        return head + self._text(max(10, length - len(head)))
