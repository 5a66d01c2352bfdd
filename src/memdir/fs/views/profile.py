"""`/profile.md`: what the memory knows about its owner, at a glance."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from memdir.fs.views.names import PROFILE_NAME
from memdir.fs.views.nodes import VirtualFile

_HEADER: Final = (
    "# Memory Profile",
    "# This file is auto-generated from",
    "# your memories. It is not editable.",
    "# To update, modify the source files",
    "# that contain this information.",
)
_STATIC_TITLE: Final = "## Core Knowledge"
_DYNAMIC_TITLE: Final = "## Recent Context"


def render_profile(static: Iterable[str], dynamic: Iterable[str]) -> str:
    """The file's text: durable facts, then recent ones, one line each. The header and both titles are always there."""
    lines = [*_HEADER, _STATIC_TITLE, *map(_item, static), _DYNAMIC_TITLE, *map(_item, dynamic)]
    return "\n".join(lines) + "\n"


def _item(fact: str) -> str:
    """One line, whatever the fact contains: a fact must not be able to look like a title or a second fact."""
    return "- " + " ".join(fact.split())


class ProfileView:
    """The view; empty sections until `set_text` brings the first profile. Thread-safe."""

    name = PROFILE_NAME
    listed = True

    def __init__(self) -> None:
        self._data = render_profile((), ()).encode()
        self._changed: Callable[[], None] | None = None
        self.node = VirtualFile(render=lambda: self._data)

    @property
    def text(self) -> str:
        """What a reader finds now."""
        return self._data.decode("utf-8", "surrogateescape")

    def connect(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def set_text(self, text: str) -> None:
        """Show `text` from the next open on; a file that is open keeps what it had."""
        data = text.encode("utf-8", "surrogateescape")
        if data == self._data:
            return
        self._data = data
        if self._changed is not None:
            self._changed()
