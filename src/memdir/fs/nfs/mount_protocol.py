"""The MOUNT protocol, version 3 (RFC 1813, appendix I): from the export's path to the handle of the root."""

from __future__ import annotations

from typing import Final

from memdir.fs.nfs.handles import Handles
from memdir.fs.nfs.rpc import Caller
from memdir.fs.nfs.xdr import FALSE, Reader, opaque, u32
from memdir.fs.types import ROOT_INO

PROGRAM: Final = 100005
VERSION: Final = 3
_PATH_MAX_BYTES: Final = 1024
_MNT3ERR_ACCES: Final = 13
_AUTH_SYS: Final = 1
_NULL, _MNT, _DUMP, _UMNT, _UMNTALL, _EXPORT = range(6)


def run(handles: Handles, procedure: int, arguments: Reader, _caller: Caller) -> bytes | None:
    """The result; None for a procedure that is none. XdrError for arguments that cannot be read.

    The path is a secret: neither DUMP nor EXPORT tell it."""
    if procedure in (_NULL, _UMNTALL):
        return b""
    if procedure == _UMNT:
        arguments.opaque(_PATH_MAX_BYTES)
        return b""
    if procedure in (_DUMP, _EXPORT):
        return FALSE
    if procedure != _MNT:
        return None
    if not handles.is_export(arguments.opaque(_PATH_MAX_BYTES)):
        return u32(_MNT3ERR_ACCES)
    return u32(0) + opaque(handles.of(ROOT_INO)) + u32(1) + u32(_AUTH_SYS)
