"""Notes beside code: short notes of a company and the modules of Python's own library in one container, asked in other words.

`mixed_notes.json` has notes with a question each, and questions about modules; those under `held` were written with the others
and never looked at while the priors of `retrieval.text_kinds` were chosen.
"""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final

from memdir.retrieval.embed import Embedder
from memdir.retrieval.types import SearchQuery
from memdir_bench.figures import Figure
from memdir_bench.retrieval.collections import Text
from memdir_bench.retrieval.fixtures import Fixture, filled

GOAL_AMONG_THREE: Final = 0.65
_LEFT_OUT: Final = frozenset(
    ("site-packages", "test", "tests", "idlelib", "lib2to3", "ensurepip", "turtledemo", "pydoc_data", "tkinter", "distutils")
)


def run(dense: Embedder, say: Callable[[str], None]) -> Iterator[Figure]:
    """How often the right file is first, and among the first three files."""
    said: dict[str, Any] = json.loads(resources.files(__package__).joinpath("mixed_notes.json").read_text(encoding="utf-8"))
    notes = [note for part in ("tune", "held") for note, _ in said[part]]
    places = {note: f"/notes/{number:02d}.md" for number, note in enumerate(notes)}
    texts = [Text(path=path, text=f"{note}\n") for note, path in places.items()] + list(_modules())
    with filled(texts, dense, say) as fixture:
        for part in ("tune", "held"):
            asked = [(question, places[note]) for note, question in said[part]]
            yield from _figures(f"mixed.notes_{part}", fixture, asked, goal=GOAL_AMONG_THREE if part == "held" else None)
            yield from _figures(
                f"mixed.code_{part}",
                fixture,
                [(question, f"/code/{name}") for name, question in said[f"code_{part}"]],
                goal=None,
            )


def _modules() -> Iterator[Text]:
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        relative = path.relative_to(library)
        if _LEFT_OUT.isdisjoint(relative.parts):
            yield Text(path=f"/code/{relative}", text=path.read_text(encoding="utf-8", errors="replace"))


def _figures(name: str, fixture: Fixture, asked: list[tuple[str, str]], *, goal: float | None) -> Iterator[Figure]:
    searcher = fixture.searcher()
    first = three = 0
    for question, wanted in asked:
        query = SearchQuery(text=question, scope=fixture.scope, limit=10, nearest=5)
        files = list(dict.fromkeys(hit.path for hit in searcher.search(query).hits))
        first += files[:1] == [wanted]
        three += wanted in files[:3]
    count = len(asked)
    yield Figure(name=f"{name}_first", value=first / count, unit="share", samples=count, better="higher")
    yield Figure(name=f"{name}_among_three", value=three / count, unit="share", samples=count, goal=goal, better="higher")
