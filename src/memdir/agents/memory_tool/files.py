"""What the memory tool needs of the files below its root, whichever way they are reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from memdir.core.errors import MemdirError
from memdir.core.limits import MIB

Names = tuple[str, ...]
"""A place below the root; () is the root."""
Kind = Literal["file", "dir"]

FILE_MAX_BYTES: Final = MIB
"""A memory file is read by a model; a larger one is neither made nor shown."""
ENTRIES_MAX: Final = 1_000
"""In one view of a folder."""


class MemoryToolError(MemdirError):
    """A command that was not done; the message is the tool's answer to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something below a folder. `size_bytes` of a folder is 0."""

    names: Names
    kind: Kind
    size_bytes: int


class MemoryFiles(Protocol):
    """Files below one root. What is neither a file nor a folder (a symlink, a device) does not exist here. Every method may
    raise MemoryToolError when the files cannot be reached or refuse."""

    def kind(self, names: Names) -> Kind | None:
        """What stands there, None for nothing."""
        ...

    def read(self, names: Names) -> bytes | None:
        """The bytes of a file, None when there is none. MemoryToolError when it has more than FILE_MAX_BYTES."""
        ...

    def create(self, names: Names, content: bytes) -> bool:
        """Make a file, and folders above it. False when something stands there already."""
        ...

    def change(self, names: Names, edit: Callable[[bytes], bytes]) -> bool:
        """Replace the bytes of a file by what `edit` makes of them, or nothing at all when it raises; two changes at once are
        done one after the other. False when there is no such file."""
        ...

    def delete(self, names: Names) -> bool:
        """Delete a file, or a folder with all that is in it. False when nothing stands there."""
        ...

    def rename(self, old: Names, new: Names) -> bool:
        """Move a file or a folder, making folders above `new`. False when something stands at `new`, which stays."""
        ...

    def below(self, names: Names, *, levels: int) -> list[Entry]:
        """What stands in a folder, at most `levels` deep and ENTRIES_MAX + 1 entries, by path; hidden ones are left out."""
        ...


def is_hidden(name: str) -> bool:
    """What a view of a folder leaves out."""
    return name.startswith(".") or name == "node_modules"
