"""ONC RPC version 2 (RFC 5531) over TCP: who calls what, and how a call is answered or refused."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memdir.fs.nfs.xdr import Reader, XdrError, u32

MESSAGE_MAX_BYTES: Final = (1 << 20) + (16 << 10)
"""Of one call: the largest write, and what stands around it."""
LAST_FRAGMENT: Final = 0x80000000
_CALL: Final = 0
_RPC_VERSION: Final = 2
_AUTH_MAX_BYTES: Final = 400
_AUTH_SYS: Final = 1
_GROUPS_MAX: Final = 16
_MACHINE_MAX_BYTES: Final = 255

_ACCEPTED: Final = struct.Struct(">IIIIII")
"""xid, REPLY, MSG_ACCEPTED, AUTH_NONE with no body, status."""
SUCCESS: Final = 0
PROG_UNAVAIL: Final = 1
PROG_MISMATCH: Final = 2
PROC_UNAVAIL: Final = 3
GARBAGE_ARGS: Final = 4
SYSTEM_ERR: Final = 5
_DENIED: Final = 1
_RPC_MISMATCH: Final = 0
_AUTH_ERROR: Final = 1
_AUTH_TOOWEAK: Final = 5


@dataclass(frozen=True, slots=True)
class Caller:
    """Of AUTH_SYS; uid -1 is nobody that was named."""

    uid: int
    gid: int
    groups: frozenset[int]


NOBODY: Final = Caller(-1, -1, frozenset())


@dataclass(frozen=True, slots=True)
class Call:
    xid: int
    program: int
    version: int
    procedure: int
    caller: Caller
    arguments: Reader


class NotACallError(ValueError):
    """A message that is no call at all: there is nobody to answer."""


class DeniedError(ValueError):
    """A call of another version of RPC; `reply` says so."""

    def __init__(self, reply: bytes) -> None:
        super().__init__("denied")
        self.reply = reply


def parsed(message: memoryview) -> Call:
    """NotACallError, DeniedError; XdrError never leaves."""
    reader = Reader(message)
    try:
        xid, kind, version = reader.words(3)
        if kind != _CALL:
            raise NotACallError("no call")
        if version != _RPC_VERSION:
            raise DeniedError(struct.pack(">IIIIII", xid, 1, _DENIED, _RPC_MISMATCH, _RPC_VERSION, _RPC_VERSION))
        program, version, procedure, flavor = reader.words(4)
        body = reader.opaque(_AUTH_MAX_BYTES)
        reader.u32()
        reader.opaque(_AUTH_MAX_BYTES)
        caller = _caller(bytes(body)) if flavor == _AUTH_SYS else NOBODY
    except XdrError as error:
        raise NotACallError(str(error)) from error
    return Call(xid, program, version, procedure, caller, reader)


@lru_cache(maxsize=64)
def _caller(raw: bytes) -> Caller:
    """A client sends the same with every call."""
    body = Reader(memoryview(raw))
    body.u32()
    body.opaque(_MACHINE_MAX_BYTES)
    uid, gid, count = body.u32(), body.u32(), body.u32()
    if count > _GROUPS_MAX:
        raise XdrError("too many groups")
    return Caller(uid, gid, frozenset(body.u32() for _ in range(count)))


def accepted(xid: int, body: bytes) -> bytes:
    return _ACCEPTED.pack(xid, 1, 0, 0, 0, SUCCESS) + body


def refused(xid: int, status: int, *, low: int = 0, high: int = 0) -> bytes:
    """A call that is understood and cannot be carried out; PROG_MISMATCH names the versions that can."""
    versions = struct.pack(">II", low, high) if status == PROG_MISMATCH else b""
    return _ACCEPTED.pack(xid, 1, 0, 0, 0, status) + versions


def too_weak(xid: int) -> bytes:
    """Whoever calls is not who mounted."""
    return struct.pack(">IIIII", xid, 1, _DENIED, _AUTH_ERROR, _AUTH_TOOWEAK)


def framed(message: bytes) -> bytes:
    """As one record of one fragment."""
    return u32(LAST_FRAGMENT | len(message)) + message
