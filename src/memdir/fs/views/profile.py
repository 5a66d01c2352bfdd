"""`/profile.md`: what the memory knows about its owner, at a glance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from memdir.fs.views.names import PROFILE_FOLDER_NAME, PROFILE_NAME
from memdir.fs.views.nodes import VirtualDir, VirtualFile, VirtualNode

_HEADER: Final = (
    "# Memory Profile",
    "# This file is auto-generated from",
    "# your memories. It is not editable.",
    "# To update, modify the source files",
    "# that contain this information.",
)
_STATIC_TITLE: Final = "## Core Knowledge"
_DYNAMIC_TITLE: Final = "## Recent Context"
_STYLE_TITLE: Final = "## Working Style"


def render_profile(static: Iterable[str], dynamic: Iterable[str], style: Iterable[str] = ()) -> str:
    """The file's text: durable facts, then recent ones, one line each. The header and both titles are always there; how the
    user works (`style`) comes last, where that was recorded."""
    lines = [*_HEADER, _STATIC_TITLE, *map(_item, static), _DYNAMIC_TITLE, *map(_item, dynamic)]
    worked = list(map(_item, style))
    lines += [_STYLE_TITLE, *worked] if worked else []
    return "\n".join(lines) + "\n"


def _item(fact: str) -> str:
    """One line, whatever the fact contains: a fact must not be able to look like a title or a second fact."""
    return "- " + " ".join(fact.split())


class ProfileView:
    """The view; empty sections until `set_text` brings the first profile. Thread-safe."""

    name = PROFILE_NAME
    listed = True
    yields = False

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


class ProfileFolder:
    """`/profile/`: longer pages of the profile. Not listed, so that no copy of a mount takes it along; a folder of that name
    that somebody made is shown instead. It is not there before `set_pages` brings the first. Thread-safe."""

    name = PROFILE_FOLDER_NAME
    listed = False
    yields = True

    def __init__(self) -> None:
        self._pages: Mapping[bytes, VirtualNode] = {}
        self._changed: Callable[[], None] | None = None

    @property
    def node(self) -> VirtualNode | None:
        return VirtualDir(children=lambda: self._pages) if self._pages else None

    def connect(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def set_pages(self, pages: Mapping[str, str]) -> None:
        """Texts by file name; shown from the next open on."""
        self._pages = {name.encode(): _file(text) for name, text in pages.items()}
        if self._changed is not None:
            self._changed()


def _file(text: str) -> VirtualFile:
    data = text.encode("utf-8", "surrogateescape")
    return VirtualFile(render=lambda: data)


def stored_pages(pages: Mapping[str, str]) -> bytes:
    """As they are kept for the next start."""
    return json.dumps(dict(pages), ensure_ascii=False).encode("utf-8", "surrogateescape")


def read_pages(data: bytes) -> dict[str, str]:
    """What `stored_pages` wrote; nothing of anything else."""
    try:
        found = json.loads(data.decode("utf-8", "surrogateescape"))
    except ValueError:
        return {}
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}
