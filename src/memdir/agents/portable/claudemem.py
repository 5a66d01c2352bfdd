"""claude-mem: the JSON that its `export-memories` writes (docs.claude-mem.ai/usage/export-import).

Observations and summaries of sessions become memories; sessions and prompts are left out, because they are what was said and
not what was learned. Lists may be JSON in a text, as its database has them; times are milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any, Final

from memdir.agents.portable.item import BadItemError, Item, Left, made
from memdir.agents.portable.jsonstream import entries

_SUMMARY: Final = {
    "request": "Asked for", "investigated": "Investigated", "learned": "Learned", "completed": "Completed",
    "next_steps": "Next steps", "notes": "Notes",
}  # fmt: skip


def read(source: IO[str], left: Left) -> Iterator[Item | BadItemError]:
    """All observations, then all summaries, as the file has them."""
    for entry in entries(source):
        if entry.index is None:
            continue
        where = f"line {entry.line}"
        if entry.key not in ("observations", "summaries"):
            left.add(entry.key)
        elif not isinstance(entry.value, dict):
            yield BadItemError(f"{where}: an entry of {entry.key} is an object", hint="--skip-bad leaves such entries out")
        else:
            try:
                yield _observation(entry.value, where) if entry.key == "observations" else _summary(entry.value, where)
            except BadItemError as error:
                yield error


def _observation(value: dict[str, Any], where: str) -> Item:
    title = " · ".join(_text(value.get(name)) for name in ("title", "subtitle") if _text(value.get(name)))
    told = _text(value.get("narrative")) or _text(value.get("text"))
    parts = [title, told, "\n".join(f"- {fact}" for fact in _texts(value.get("facts")))]
    return made(
        "\n\n".join(part for part in parts if part), where, tags=[_text(value.get("type")), *_texts(value.get("concepts"))],
        project=value.get("project"), created=_when(value),
        metadata=_origin(value) | {
            "filesRead": _texts(value.get("files_read")), "filesModified": _texts(value.get("files_modified")),
        },
    )  # fmt: skip


def _summary(value: dict[str, Any], where: str) -> Item:
    parts = [f"{title}: {_text(value.get(name))}" for name, title in _SUMMARY.items() if _text(value.get(name))]
    return made(
        "\n".join(parts), where, tags=["session-summary"], project=value.get("project"), created=_when(value),
        metadata=_origin(value),
    )  # fmt: skip


def _origin(value: dict[str, Any]) -> dict[str, Any]:
    session = value.get("memory_session_id") or value.get("sdk_session_id")
    return {"importedFrom": "claude-mem", "importedId": value.get("id"), "session": session}


def _when(value: dict[str, Any]) -> Any:
    return value.get("created_at_epoch") or value.get("created_at")


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:  # then it is a text that begins so
            return [value]
    if isinstance(value, str):
        return [value] if value.strip() else []
    return [text for text in value if isinstance(text, str) and text.strip()] if isinstance(value, list) else []
