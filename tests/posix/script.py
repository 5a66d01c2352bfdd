"""The conformance table: text files of small cases, each a list of system calls with what they must answer.

    == a directory cannot be unlinked            a case; its title is its name
    each T: regular socket                       run it once for every value of $T (with spaces in them: `a b; c d`)
    needs root                                   not for an ordinary user's mount
    mkdir d 0755                                 a call that must succeed
    unlink d -> EISDIR                           ... that must be refused
    @65534 rmdir d -> EACCES                     ... by another user (uid, or uid:gid,group,...)
    lstat d -> type=dir mode=0755                ... whose answer has these fields
    #a = open f O_RDONLY                         ... with a descriptor that later calls name #a
    ioctl #a 80086601 -> ENOTTY | ok (no-flags)   a listed difference: memdir's answer, then the native one, and its key

What is expected holds on both sides, the mount and a native directory; whatever else a call answers is compared. `?` expects
nothing but the same on both sides, `ok` (also when nothing is said) any success. Words: `{255}` is a name of 255 bytes,
`{dots:4095:f}` a path of 4,095 bytes to `f`, `{u:e4}` a character, `{b:ff}` a byte.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"

DIFFERENCES = {
    "no-acl": "no POSIX ACLs: EOPNOTSUPP",
    "no-tmpfile": "no `O_TMPFILE`: EOPNOTSUPP",
    "no-security": "no file capabilities (`security.capability`) and no `system.*` attributes: EOPNOTSUPP",
    "absent-label": "a `security.*` attribute that a file does not have is EOPNOTSUPP and not ENODATA",
    "big-xattr": "an attribute's value may have 64 KiB, and all of one file 1 MiB, where ext4 stops at a block",
    "no-whiteout": "no `RENAME_WHITEOUT`: EINVAL",
    "no-range": "`fallocate` neither collapses nor inserts ranges: EOPNOTSUPP",
    "nodev": "the mount is `nodev` and `nosuid`: device nodes are kept and cannot be opened",
    "no-flags": "no inode flags (`chattr`) and no FIEMAP: ENOTTY",
    "nothing-chown": "`chown` of nothing by a stranger clears setuid and setgid: the kernel sends it like a write",
    "noatime": "`noatime`: reading moves no time",
}
"""Every way in which memdir may differ from the native filesystem. docs/filesystem.md has each of these sentences."""

ERRORS = frozenset(errno.errorcode.values()) | {"EOPNOTSUPP"}

_NAME = re.compile(r"\{(\d+)\}")
_DOTS = re.compile(r"\{dots:(\d+):([^}]+)\}")
_CHARACTERS = re.compile(r"\{u:([0-9a-f+]+)\}")
_BYTES = re.compile(r"\{b:([0-9a-f]+)\}")
_STEP = re.compile(
    r"(?:@(?P<user>[\d:,]+) )?(?:(?P<fd>#\w+) = )?(?P<call>[^>]*?)"
    r"(?: -> (?P<expected>.*?)(?: \| (?P<native>.*?) \((?P<key>[a-z-]+)\))?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call: who, what, what memdir must answer and what the native filesystem must."""

    line: str
    user: str
    fd: str
    words: tuple[str, ...]
    expected: str
    native: str
    key: str

    @property
    def differs(self) -> bool:
        return bool(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    area: str
    title: str
    needs: frozenset[str]
    steps: tuple[Step, ...]

    @property
    def id(self) -> str:
        return f"{self.area}: {self.title}"


def _expand(word: str) -> str:
    """Long names and paths, written short."""
    found = _DOTS.search(word)
    if found:
        size, name = int(found[1]), found[2]
        front = "./" * ((size - len(name)) // 2)
        path = front + name
        return path if len(path) == size else "." + "/" * (size - len(path)) + path[1:]
    word = _CHARACTERS.sub(lambda match: "".join(chr(int(code, 16)) for code in match[1].split("+")), word)
    word = _BYTES.sub(lambda match: os.fsdecode(bytes.fromhex(match[1])), word)
    return _NAME.sub(lambda match: "n" * int(match[1]), word)


def parse_step(line: str) -> Step:
    found = _STEP.fullmatch(line)
    if found is None:
        raise ValueError(f"not a step: {line}")
    words = tuple(_expand(word) for word in shlex.split(found["call"]))
    expected = _expand(found["expected"] or "ok")
    if found["key"] and found["key"] not in DIFFERENCES:
        raise ValueError(f"{found['key']} is no listed difference: {line}")
    if not words:
        raise ValueError(f"a step without a call: {line}")
    return Step(
        line=line, user=found["user"] or "", fd=found["fd"] or "", words=words, expected=expected,
        native=_expand(found["native"] or expected), key=found["key"] or "",
    )  # fmt: skip


def _cases(area: str, title: str, lines: list[str]) -> Iterator[Case]:
    """The cases of one block: one, or one for each combination of its `each` lines."""
    needs: set[str] = set()
    names: list[str] = []
    values: list[list[str]] = []
    body: list[str] = []
    for line in lines:
        if line.startswith("needs "):
            needs.update(line.split()[1:])
        elif line.startswith("each "):
            name, _, rest = line[5:].partition(":")
            names.append(name.strip())
            values.append([value.strip() for value in rest.split(";")] if ";" in rest else rest.split())
        else:
            body.append(line)
    for choice in product(*values):
        text = "\n".join(body)
        for name, value in zip(names, choice, strict=True):
            text = text.replace(f"${name}", value)
        steps = tuple(parse_step(line) for line in text.split("\n"))
        label = f"{title} ({' '.join(choice)})" if choice else title
        yield Case(area=area, title=label, needs=frozenset(needs), steps=steps)


def load(path: Path) -> list[Case]:
    """All cases of one file."""
    blocks: list[tuple[str, list[str]]] = []
    for raw in path.read_text(encoding="utf-8").splitlines():
        line = raw.strip()
        if not line or line.startswith("# "):
            continue
        if line.startswith("== "):
            blocks.append((line[3:], []))
        elif not blocks:
            raise ValueError(f"{path.name}: a step before the first title: {line}")
        else:
            blocks[-1][1].append(line)
    return [case for title, lines in blocks for case in _cases(path.stem, title, lines)]


def load_all() -> list[Case]:
    return [case for path in sorted(FOLDER.glob("*.txt")) for case in load(path)]


def matches(outcome: str, expected: str) -> bool:
    """Whether a call answered what was expected: that, success, one of several (`A or B`), or these fields among others."""
    for choice in expected.split(" or "):
        if choice == "?" or outcome == choice or (choice == "ok" and outcome not in ERRORS):
            return True
        wanted = choice.split()
        if wanted and all("=" in field for field in wanted) and set(wanted) <= set(outcome.split()):
            return True
    return False
