"""Programs, services and the like by kind (`tools.txt`), for those who must know that both Vim and Helix are editors. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_LINE: Final = re.compile(r"(?P<kind>[^|:]+?)(?: \| (?P<words>[^:]+))?: (?P<names>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """`words` only say of which kind something is. `names` in small letters count in any case, those with `=` before them only
    as they are written and not at the beginning of a sentence."""

    name: str
    words: str
    names: tuple[str, ...]


def _read() -> Iterator[Kind]:
    for line in files("memdir.store.text").joinpath("tools.txt").read_text(encoding="utf-8").splitlines():
        found = None if line.startswith("#") else _LINE.fullmatch(line)
        if found is not None:
            yield Kind(name=found["kind"], words=found["words"] or "", names=tuple(found["names"].split(", ")))


KINDS: Final = tuple(_read())
