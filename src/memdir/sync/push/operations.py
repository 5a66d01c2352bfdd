"""A planned push in the words of the wire: batch operations, preconditions, idempotency keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memdir.api.v1 import BatchItemResult, BatchOperation, FileEntry
from memdir.client.errors import ClientError, NotFoundError
from memdir.client.http import inline, item_error
from memdir.client.remote import Expect
from memdir.core.limits import KIB
from memdir.fs.types import LocalFact
from memdir.sync.context import Context
from memdir.sync.model import Fact, Row

KEPT_MIN_BYTES: Final = 4 * KIB
"""Contents of fewer bytes are sent again with a change of the mode: that takes no longer."""
_STREAM_BYTES: Final = 256 * KIB
"""Up to here a file is sent whole, of known length, which the server takes in one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A planned change of the server: `fact` is what it shall hold, None for nothing."""

    row: Row
    entry: LocalFact | None
    fact: Fact | None
    remote: Fact | None
    unchanged_since: int | None = None
    """Not None: what stands below goes, too, when the server changed nothing of it behind this sequence number."""
    since_intent: int = 0
    """The newest intent of the filesystem when `entry` was read."""

    @property
    def on_revision(self) -> int:
        """What it is sent on top of; 0 for nothing."""
        return self.remote.revision if self.remote else 0


def changes_kind(push: Push) -> bool:
    """Whether something of another kind stands there, or something below it, and has to go first."""
    if push.fact is None:
        return False
    return push.unchanged_since is not None or (push.remote is not None and push.fact.kind != push.remote.kind)


def operation_count(push: Push) -> int:
    """How many operations `operations` makes of it."""
    return 2 if changes_kind(push) else 1


def keeps_contents(push: Push) -> bool:
    """Whether the file at the server has the contents already: then they are named instead of sent."""
    fact, entry = push.fact, push.entry
    if fact is None or fact.kind != "file" or entry is None or entry.size < KEPT_MIN_BYTES:
        return False
    return fact.same_content(push.remote) and not changes_kind(push)


def operations(push: Push, content: bytes | None) -> list[BatchOperation]:
    """The push as the server takes it, on top of the revision that was planned with. Without `content`, `keeps_contents`."""
    path, remote = push.row.path, push.remote
    if push.fact is None:
        return [_deletion(push, "delete")]
    made = []
    if changes_kind(push):
        made.append(_replacement(push))
        remote = None
    made.append(
        BatchOperation(
            op="put", path=path, kind=push.fact.kind, mode=push.fact.mode,  # type: ignore[arg-type]
            content_base64=None if content is None else inline(content),
            content_hash=push.fact.content_hash if content is None else None,
            mtime_ns=push.entry.mtime_ns if push.entry else 0, if_match=remote.revision if remote else None,
            if_none_match=remote is None, idempotency_key=key(push, "keep" if content is None else "put"),
        )
    )  # fmt: skip
    return made


def put_large(ctx: Context, push: Push) -> FileEntry:
    """Send a large file in a call of its own. ClientError, FsError, LocalChangedError."""
    entry, fact = push.entry, push.fact
    assert entry is not None
    assert fact is not None
    expect = Expect(revision=push.remote.revision if push.remote else None)
    if changes_kind(push):
        before = [_replacement(push)]
        failure = first_error(ctx.link.call(lambda client: client.batch(ctx.container, before)), 0, 1)
        if failure is not None:
            raise failure
        expect = Expect(revision=None)
    bulk = ctx.queue.is_import(1, edits=push.remote is not None)
    content = ctx.local.content(entry) if entry.size <= _STREAM_BYTES else ctx.local.pieces(entry)
    return ctx.link.call(
        lambda client: client.put_file(
            ctx.container, push.row.path, content, kind="file", mode=fact.mode,
            mtime_ns=entry.mtime_ns, expect=expect, idempotency_key=key(push, "put"), bulk=bulk,
        )
    )  # fmt: skip


def _replacement(push: Push) -> BatchOperation:
    """Take away what stands in the way of the push."""
    return _deletion(push, "replace")


def _deletion(push: Push, what: str) -> BatchOperation:
    return BatchOperation(
        op="delete", path=push.row.path, if_match=push.remote.revision if push.remote else None,
        recursive=push.unchanged_since is not None, if_unchanged_since=push.unchanged_since, idempotency_key=key(push, what),
    )  # fmt: skip


def key(push: Push, what: str) -> str:
    """The same for a repetition of the same request, another for everything else: the seed changes with every answer."""
    fact = push.fact
    version = "" if fact is None else f"{fact.kind[0]}{fact.content_hash[:16]}{fact.mode:o}"
    revision = push.remote.revision if push.remote else 0
    since = "" if push.unchanged_since is None else f"-{push.unchanged_since}"
    return f"{push.row.key_seed}-{what}-{revision}-{version}{since}"


def first_error(results: list[BatchItemResult], slot: int, count: int) -> ClientError | None:
    """Why a push was not done: the first failure among its operations. None when its last one was: a put is done where nothing
    stands, so that whatever the delete before it was refused for is gone."""
    errors = [item_error(result) for result in results[slot - count + 1 : slot + 1]]
    failures = [error for error in errors if error is not None and not isinstance(error, NotFoundError)] or errors[-1:]
    return failures[0] if errors[-1] is not None else None
