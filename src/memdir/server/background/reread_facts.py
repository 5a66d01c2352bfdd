"""Facts are read again when the rules that made them changed: after an update of memdir.

Comes in: the store, the folder that says by which rules its facts were read last. Goes out: jobs, behind all others. Without it
what former rules made of a file would stand in the profile until somebody changes that file.
"""

from __future__ import annotations

import hashlib
import logging
from importlib import resources
from pathlib import Path
from typing import Final

import memdir.memory
import memdir.store.text
from memdir.core.paths import write_private
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.store import Store

log = logging.getLogger(__name__)

FILE_NAME: Final = "memory-rules"
_PAGE: Final = 500
_SUFFIXES: Final = (".py", ".txt")


def rules() -> str:
    """What tells these rules from others: a SHA-256 over the files of `memdir.memory`, and of what it reads text with."""
    found = hashlib.sha256()
    packages = (memdir.memory, memdir.store.text)
    files = (one for package in packages for one in resources.files(package).iterdir() if one.name.endswith(_SUFFIXES))
    for file in sorted(files, key=lambda one: one.name):
        data = file.read_bytes()
        found.update(f"{file.name} {len(data)}\n".encode() + data)
    return found.hexdigest()


@acting_as(SYSTEM)
def ask_when_rules_changed(store: Store, folder: Path, *, with_model: bool) -> int:
    """Ask for the facts of all documents under memory paths, unless these rules read them last. Returns of how many; after a
    death in between the next start asks again. `with_model`: a language model reads beside the rules, whose calls are paid
    for, so nothing is asked, and the log says how to."""
    file, now = folder / FILE_NAME, rules()
    try:
        if file.read_text() == now:
            return 0
    except (FileNotFoundError, UnicodeDecodeError):
        log.debug("nothing says by which rules the facts of %s were read", folder)
    count = after = 0
    if with_model and store.containers.ids(after=0, limit=1):
        log.warning(
            "facts may be those of former rules; `memdir server reindex --what memories` reads all again, and asks the "
            "language model for each file"
        )
    while not with_model and (ids := store.containers.ids(after=after, limit=_PAGE)):
        for container in filter(None, map(store.containers.by_id, ids)):
            count += store.files.reread_memories(container, ())  # as if no path had been one of memories before
        after = ids[-1]
    write_private(file, now.encode())
    return count
