"""Whether files that memories name are still there: said with the memory, for a memory of a file that is gone misleads.

Imported only when a memory names files. A file counts as there when it lies below the repository's root, or below the
session's folder, or when git's index has a path that ends so (gitformat-index(5), versions 2 and 3: paths stand in it as
they are).
"""

from __future__ import annotations

import os

from memdir.agents.project import repository_around

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

_INDEX_MAX_BYTES: Final = 32 << 20
_SHOWN_MAX: Final = 5


def missing(paths: Sequence[str], cwd: str) -> list[str]:
    """Those of relative `paths` that the checkout around `cwd` does not have, at most five. None where that cannot be told:
    without a repository, with an index that is too large or packed."""
    repository = repository_around(cwd)
    if repository is None:
        return []
    index = _index(repository.git + "/index")
    if index is None:
        return []
    gone = []
    for path in paths:
        places = (f"{repository.root}/{path}", f"{cwd}/{path}")
        if not any(map(os.path.lexists, places)) and f"{path}\0".encode("utf-8", "replace") not in index:
            gone.append(path)
    return gone[:_SHOWN_MAX]


def _index(file: str) -> bytes | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return b""  # nothing was added yet
    except OSError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size) if size <= _INDEX_MAX_BYTES else b""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data if data[:4] == b"DIRC" and data[4:8] in (b"\0\0\0\2", b"\0\0\0\3") else None
