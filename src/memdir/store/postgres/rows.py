"""How values are kept in PostgreSQL where it cannot keep them as they are."""

from __future__ import annotations

from typing import Final

import numpy as np

from memdir.store.passages.reading import place_condition
from memdir.store.types import Matrix, Scope

# PostgreSQL's text holds every character but U+0000. It is kept as two characters from a private plane of Unicode, and the
# first of those two as two others, so that every text comes back as it was.
_ESCAPE: Final = "\U000f8000"
_ZERO: Final = _ESCAPE + "0"
_ITSELF: Final = _ESCAPE + "1"


def kept_text(text: str) -> str:
    """A text without U+0000, from which `shown_text` makes the same again."""
    if "\x00" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, _ITSELF).replace("\x00", _ZERO)


def shown_text(kept: str) -> str:
    """What `kept_text` was given."""
    if _ESCAPE not in kept:
        return kept
    return kept.replace(_ZERO, "\x00").replace(_ITSELF, _ESCAPE)


def scope_condition(scope: Scope) -> tuple[str, tuple[object, ...]]:
    """Join and condition that keep chunks `c` inside `scope`."""
    where, bindings = place_condition(scope)
    chosen, ids = chosen_condition(scope, "c.document_id")
    return f"{where} and {chosen}", (*bindings, *ids)


def chosen_condition(scope: Scope, column: str) -> tuple[str, tuple[object, ...]]:
    """Condition that keeps the documents that `scope` takes, whose id is in `column`."""
    if scope.chosen is None:
        return "true", ()
    quantifier = "<> all" if scope.chosen.but else "= any"
    return f"{column} {quantifier}(cast(? as text[]))", (sorted(scope.chosen.ids),)


def vector_text(vector: Matrix) -> str:
    """A vector as pgvector reads it, rounded to float16, as every store keeps it."""
    return "[" + ",".join(map(str, vector.astype(np.float16).astype(np.float32).tolist())) + "]"
