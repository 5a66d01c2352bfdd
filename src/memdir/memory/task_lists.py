"""Files and sections that list what is to be done: `todo.md`, todo.txt, "Next steps". Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from memdir.memory.statements import Statement

TASK_LIST_NAME: Final = re.compile(
    r"(?:[\w-]+-)?(?:to-?dos?|tasks?|to-?do-list|task-list|backlog|action-items|next-(?:actions?|steps?)|errands|chores|"
    r"shopping(?:-list)?|grocer(?:ies|y-list)|aufgaben|nächste-schritte|to-?do-liste|einkaufsliste|tareas|pendientes|"
    r"próximos-pasos|lista-de-(?:la-)?compra|la-compra|tâches|à-faire|liste-de-courses|courses|lista-della-spesa|"
    r"boodschappen(?:lijst)?)"
)
"""Names of files, and headings, of lists of tasks; words joined by hyphens, in lower case."""
_TASK_LIST_TITLE: Final = "To do"
_TODO_TXT: Final = re.compile(
    r"(?:\([A-Z]\) )?(?:\d{4}-\d\d-\d\d )?(?:[+@]\w\S* )*(?P<what>.+?)(?: (?:[+@]\w\S*|(?!due:)[a-z]+:[^\s/]\S*))*"
)
"""A line as http://todotxt.org defines it."""
_TAGS_BEFORE_DUE: Final = re.compile(r" [+@]\w\S*(?=(?: [+@]\w\S*)* due:)")
_TODO_TXT_DONE: Final = re.compile(r"x (?:\d{4}-\d\d-\d\d )?\S")


def as_task(piece: Statement) -> list[Statement]:
    """A line of a task list as a task, whether it has a box or not, and without the priority, project and context that todo.txt
    writes; none where it is marked as done."""
    if piece.form not in {"item", "line", "pair", "task"}:
        return [piece]
    if _TODO_TXT_DONE.match(piece.text) is not None:
        return []
    found = _TODO_TXT.fullmatch(piece.text)
    what = piece.text if found is None else _TAGS_BEFORE_DUE.sub("", found["what"]).replace("due:", "due ")
    return [replace(piece, text=what, form="task", headings=piece.headings or (_TASK_LIST_TITLE,))]
