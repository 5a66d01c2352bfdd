"""The names at the root that belong to views."""

from __future__ import annotations

from typing import Final

PROFILE_NAME: Final = b"profile.md"
PROFILE_FOLDER_NAME: Final = b"profile"
HIDDEN_NAME: Final = b".memdir"

_PROFILE_PATH: Final = "/profile.md"
_HIDDEN_PATH: Final = "/.memdir"


def is_virtual(path: str) -> bool:
    """Whether the absolute `path` in a mount is a view: `/profile.md` itself, `/.memdir` and all below it.

    Such paths are never synced. A real file of that name, arrived from a server, is shadowed and stays what it is.
    """
    return path in (_PROFILE_PATH, _HIDDEN_PATH) or path.startswith(_HIDDEN_PATH + "/")
