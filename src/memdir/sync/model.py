"""The nouns of synchronisation: what is known of a path on one side, and what can be done about it. No I/O."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import Final

EMPTY_HASH: Final = hashlib.sha256(b"").hexdigest()
"""The content hash of a folder."""


PLAIN_EPOCH: Final = "plain-"
"""How epochs begin that we made up ourselves, for a server without `/v1`. Such a server need not give back what it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What stands at a path on one side. `revision` is the server's number of it, 0 when this side has none."""

    kind: str
    """`file`, `dir` or `symlink`."""
    content_hash: str
    """SHA-256, lower-case hex: of the bytes, of a symlink's target, of nothing for a folder."""
    mode: int
    """Permission bits; a symlink's never matter and are 0o777."""
    revision: int = 0

    def same_content(self, other: Fact | None) -> bool:
        """Whether kind and bytes are equal."""
        return other is not None and self.kind == other.kind and self.content_hash == other.content_hash

    def same(self, other: Fact | None) -> bool:
        """Whether kind, bytes and mode are equal; revisions do not matter."""
        return self.same_content(other) and other is not None and (self.kind == "symlink" or self.mode == other.mode)


class Step(Enum):
    """What the planner can ask for."""

    NOTHING = "nothing"
    ADOPT = "adopt"
    """Both sides are equal: note that as agreed."""
    PUSH = "push"
    """Put the local state on the server, on top of the remote revision that was planned with."""
    PULL = "pull"
    """Put the remote state into the mount, on top of the local state that was planned with."""
    PULL_MODE = "pull_mode"
    """Only the mode of the local entry follows the server; then plan again."""
    DELETE_LOCAL = "delete_local"
    DELETE_REMOTE = "delete_remote"
    CONFLICT = "conflict"
    """Both changed: the local state moves aside under a conflict name, the remote state takes the path."""
    KEEP = "keep"
    """A folder cannot go because of what stands in it: it is agreed on no longer; then plan again."""
    WAIT = "wait"
    """What stands in the folder goes first: look at that, then at the folder again."""
    RELEASE = "release"
    """Only what never leaves this machine stands in the folder: it stays, and is no longer synced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A step for one path. `mode` belongs to PULL and PULL_MODE: the permission bits the local entry shall get."""

    step: Step
    mode: int | None = None
    recursive: bool = False
    """DELETE_REMOTE and PUSH: what stands below at the server goes in the same step; all of it was seen and is to go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """What stands strictly below a path, on the side that a step would empty."""

    stays: bool = False
    """Something that the other side has not got."""
    goes: bool = False
    """Something that is to be deleted here, too."""
    leftover: bool = False
    """Something that never leaves this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One path that must be looked at, as the queue holds it."""

    path: str
    seq: int
    """Order of arrival."""
    generation: int
    """Grows with every new change of the path; a result applies only to the generation that was claimed."""
    state: str
    """`ready`, `inflight` or `parked`."""
    attempts: int
    due_at_s: float
    first_seen_ms: int
    error: str
    key_seed: str
    deep: bool
    """Stands for everything known below the path, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A rename of a file or subtree that the server should repeat. `id` orders them."""

    id: int
    source: str
    path: str
    attempts: int
    due_at_s: float
    answered_seq: int
    """The server did it at this sequence number and the feed has not brought it yet; 0 before."""
    key_seed: str
    error: str
    first_seen_ms: int = 0
    is_sent: bool = False
    """Whether it may have been sent before it was claimed this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRecord:
    """A conflict copy that was made, or settled, on this machine. Revisions are the server's, 0 for unknown."""

    path: str
    original: str
    at_ms: int
    base_revision: int = 0
    remote_revision: int = 0
    settled: bool = False
    """Somebody wants to keep both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Which version of which inode a content hash was computed from."""

    ino: int
    version: int


def api_of(epoch: str) -> str | None:
    """Which API the server of this epoch speaks; None before the first meeting."""
    return ("v3" if epoch.startswith(PLAIN_EPOCH) else "v1") if epoch else None
