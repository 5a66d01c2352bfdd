"""A transaction as the body of one journal record, and back.

A body is the counters (next inode number, next cookie) and then tagged items in the order in which they are applied. All
integers are little-endian. Item layouts are the structs below; variable parts follow their struct.
"""

from __future__ import annotations

import struct
from typing import Final

from memdir.core.errors import CorruptError, VersionError
from memdir.fs.posix.place import ABSENT
from memdir.fs.posix.txn import CUT, PATCH, ZERO, Txn
from memdir.fs.types import Data, Inode, IntentKind

_COUNTERS: Final = struct.Struct("<QQ")
_INODE: Final = struct.Struct("<BQIIIIQqqqQQQH")
"""tag ino mode uid gid nlink size atime mtime ctime rdev parent version, length of the target (0: none)"""
_PLACED_INODE: Final = struct.Struct("<BQIIIIQqqqQQQHq")
"""The same, and the place of the contents when that is not the tables."""
_NAME: Final = struct.Struct("<BQQQH")
"""tag parent ino cookie, length of the name"""
_PATCH: Final = struct.Struct("<BQQI")
"""tag ino offset, length of the data"""
_RANGE: Final = struct.Struct("<BQQQ")
"""tag ino start end (end is unused by a cut)"""
_XATTR: Final = struct.Struct("<BQHi")
"""tag ino, length of the name, length of the value (-1: removed)"""
_NUMBER: Final = struct.Struct("<BQ")
"""tag and an inode or sequence number"""
_INTENT: Final = struct.Struct("<BQBIi")
"""tag seq kind, length of the path, length of the source (-1: none)"""

(
    _TAG_INODE, _TAG_NAME, _TAG_PATCH, _TAG_CUT, _TAG_ZERO, _TAG_XATTR, _TAG_GONE, _TAG_INTENT, _TAG_DROPPED, _TAG_ACK,
    _TAG_PLACED_INODE,
) = range(1, 12)  # fmt: skip
_NOTHING: Final = (0, 0)
"""ino and cookie of a name that goes"""
_KINDS: Final = (IntentKind.PUT, IntentKind.DELETE, IntentKind.MOVE)


def encode(txn: Txn) -> list[Data]:
    """The body in pieces, for `writev`; the data of a write stands in it uncopied."""
    parts: list[Data] = [_COUNTERS.pack(txn.next_ino, txn.next_cookie)]
    append = parts.append
    for draft in txn.inodes.values():
        target = draft.target
        if draft.place:
            append(_placed_inode(draft))
            continue
        row = _INODE.pack(
            _TAG_INODE, draft.ino, draft.mode, draft.uid, draft.gid, draft.nlink, draft.size, draft.atime_ns,
            draft.mtime_ns, draft.ctime_ns, draft.rdev, draft.parent, draft.version, len(target) if target else 0,
        )  # fmt: skip
        append(row)
        if target:
            append(target)
    for (parent, name), entry in txn.dentries.items():
        ino, cookie = entry or _NOTHING
        append(_NAME.pack(_TAG_NAME, parent, ino, cookie, len(name)))
        append(name)
    if txn.xattrs or txn.gone or txn.dropped or txn.acknowledged:
        _encode_rare(txn, parts)
    for seq, intent_kind, path, source in txn.intents:
        source_length = -1 if source is None else len(source)
        append(_INTENT.pack(_TAG_INTENT, seq, _KINDS.index(intent_kind), len(path), source_length))
        append(path)
        if source:
            append(source)
    for kind, ino, start, extra in txn.contents:  # last, where the journal looks for large data
        if kind == PATCH:
            append(_PATCH.pack(_TAG_PATCH, ino, start, len(extra)))  # type: ignore[arg-type]
            append(extra)  # type: ignore[arg-type]
        else:
            append(_RANGE.pack(_TAG_CUT if kind == CUT else _TAG_ZERO, ino, start, extra))
    return parts


def _placed_inode(draft: Inode) -> bytes:
    """A file whose contents are not in the tables; when they are absent, their hash stands where a symlink has its target."""
    target = draft.target or b""
    row = _PLACED_INODE.pack(
        _TAG_PLACED_INODE, draft.ino, draft.mode, draft.uid, draft.gid, draft.nlink, draft.size, draft.atime_ns,
        draft.mtime_ns, draft.ctime_ns, draft.rdev, draft.parent, draft.version, len(target), draft.place,
    )  # fmt: skip
    return row + target


def _encode_rare(txn: Txn, parts: list[Data]) -> None:
    for ino, name, value in txn.xattrs:
        parts.append(_XATTR.pack(_TAG_XATTR, ino, len(name), -1 if value is None else len(value)) + name + (value or b""))
    parts.extend([_NUMBER.pack(_TAG_GONE, ino) for ino in txn.gone])
    parts.extend([_NUMBER.pack(_TAG_DROPPED, seq) for seq in txn.dropped])
    if txn.acknowledged:
        parts.append(_NUMBER.pack(_TAG_ACK, txn.acknowledged))


def decode(body: bytes) -> Txn:
    """The transaction in a body whose checksum held. CorruptError when it makes no sense all the same,
    VersionError when a newer memdir wrote it."""
    try:
        return _decode(memoryview(body))
    except (struct.error, IndexError, ValueError) as error:
        raise CorruptError(f"a journal record with a good checksum cannot be read: {error}") from error


def _decode(body: memoryview) -> Txn:
    next_ino, next_cookie = _COUNTERS.unpack_from(body)
    txn = Txn(0, next_ino, next_cookie, quiet=True)
    at, end = _COUNTERS.size, len(body)
    while at < end:
        tag = body[at]
        if tag == _TAG_INODE:
            at = _decode_inode(txn, body, at)
        elif tag == _TAG_NAME:
            _, parent, ino, cookie, length = _NAME.unpack_from(body, at)
            at += _NAME.size
            txn.dentries[parent, _take(body, at, length)] = (ino, cookie) if ino else None
            at += length
        elif tag == _TAG_PATCH:
            _, ino, offset, length = _PATCH.unpack_from(body, at)
            at += _PATCH.size
            txn.contents.append((PATCH, ino, offset, _take(body, at, length)))
            at += length
        elif tag == _TAG_PLACED_INODE:
            at = _decode_placed(txn, body, at)
        elif tag in (_TAG_CUT, _TAG_ZERO):
            _, ino, start, stop = _RANGE.unpack_from(body, at)
            txn.contents.append((CUT if tag == _TAG_CUT else ZERO, ino, start, stop))
            at += _RANGE.size
        else:
            at = _decode_rare(txn, body, at, tag)
    return txn


def _decode_inode(txn: Txn, body: memoryview, at: int) -> int:
    (_, ino, mode, uid, gid, nlink, size, atime_ns, mtime_ns, ctime_ns, rdev, parent, version, length) = _INODE.unpack_from(
        body, at
    )
    at += _INODE.size
    txn.inodes[ino] = Inode(
        ino=ino, mode=mode, uid=uid, gid=gid, nlink=nlink, size=size, atime_ns=atime_ns, mtime_ns=mtime_ns,
        ctime_ns=ctime_ns, rdev=rdev, parent=parent, version=version, target=_take(body, at, length) if length else None,
    )  # fmt: skip
    return at + int(length)


def _decode_placed(txn: Txn, body: memoryview, at: int) -> int:
    """The fields up to the place stand as in the shorter form; the target comes behind the place."""
    ino, length, place = (_PLACED_INODE.unpack_from(body, at)[field] for field in (1, -2, -1))
    if length and place != ABSENT:
        raise ValueError("a symlink whose contents have a place")
    _decode_inode(txn, body, at)
    at += _PLACED_INODE.size
    inode = txn.inodes[ino]
    inode.place, inode.target = place, _take(body, at, length) if length else None
    return at + int(length)


def _decode_rare(txn: Txn, body: memoryview, at: int, tag: int) -> int:
    if tag == _TAG_XATTR:
        _, ino, name_length, value_length = _XATTR.unpack_from(body, at)
        at += _XATTR.size
        name = _take(body, at, name_length)
        at += name_length
        txn.xattrs.append((ino, name, None if value_length < 0 else _take(body, at, value_length)))
        return at + max(int(value_length), 0)
    if tag == _TAG_INTENT:
        _, seq, kind, path_length, source_length = _INTENT.unpack_from(body, at)
        at += _INTENT.size
        path = _take(body, at, path_length)
        at += path_length
        source = None if source_length < 0 else _take(body, at, source_length)
        txn.intents.append((seq, _KINDS[kind], path, source))
        return at + max(int(source_length), 0)
    if tag not in (_TAG_GONE, _TAG_DROPPED, _TAG_ACK):
        if not tag:
            raise ValueError("an item without a kind")
        # The checksum held, so this is what was written: by a memdir that knows more kinds of items.
        raise VersionError(
            f"the journal was made by a newer memdir (item {tag} is not known here)", hint="upgrade memdir; nothing was touched"
        )
    _, number = _NUMBER.unpack_from(body, at)
    if tag == _TAG_GONE:
        txn.gone.append(number)
    elif tag == _TAG_DROPPED:
        txn.dropped.append(number)
    else:
        txn.acknowledged = number
    return at + _NUMBER.size


def _take(body: memoryview, at: int, length: int) -> bytes:
    taken = bytes(body[at : at + length])
    if len(taken) != length:
        raise ValueError("an item goes past the end")
    return taken
