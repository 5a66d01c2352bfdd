"""Gives the interpreter a filesystem of ours, through the C interface that it publishes for others' filesystems.

The interface is bashkit's `bashkit.FileSystem.v1` (its crate `bashkit-fs-interop`, MIT): a handle with a table of function
pointers, carried in a PyCapsule. A function takes an instance, a path and where to put its answer, and returns 0 or 1 with an
error of a kind and a message. Whatever memory is handed out is given back by `free_bytes` and `free_dir_entries`. The calls
come from threads of the interpreter; ctypes takes the interpreter lock of Python around each.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import logging
import stat
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Final

from memdir.fs.errors import FsError

if TYPE_CHECKING:
    from memdir.fs.types import Inode
    from memdir.shell.files import Files

log = logging.getLogger(__name__)

_ABI_VERSION: Final = 1
CAPSULE_NAME: Final = b"bashkit.FileSystem.v1"
_OK, _ERROR = 0, 1
_NS: Final = 1_000_000_000

_KINDS: Final = {
    errno.ENOENT: 1,
    errno.EEXIST: 2,
    errno.EACCES: 3,
    errno.EPERM: 3,
    errno.EROFS: 3,
    errno.EINVAL: 4,
    errno.ENAMETOOLONG: 4,
    errno.EISDIR: 5,
    errno.ENOTDIR: 6,
    errno.ENOTEMPTY: 7,
    errno.EOPNOTSUPP: 8,
}
"""errno -> BashkitFsAbiErrorKind; everything else is 0, Other."""


class _Text(Structure):
    _fields_ = (("ptr", c_void_p), ("len", c_size_t))


class _Error(Structure):
    _fields_ = (("kind", c_uint32), ("message", _Text))


class _Metadata(Structure):
    _fields_ = (
        ("file_type", c_uint8), ("reserved", c_uint8 * 7), ("size", c_uint64), ("mode", c_uint32),
        ("modified_secs", c_int64), ("modified_nanos", c_uint32), ("created_secs", c_int64), ("created_nanos", c_uint32),
    )  # fmt: skip


class _DirEntry(Structure):
    _fields_ = (("name", _Text), ("metadata", _Metadata))


_ON_TEXT: Final = (c_void_p, _Text)
_ERR: Final = POINTER(_Error)
_OUT_TEXT: Final = POINTER(_Text)

_SIGNATURES: Final[dict[str, Any]] = {
    "read_file": CFUNCTYPE(c_uint32, *_ON_TEXT, _OUT_TEXT, _ERR),
    "write_file": CFUNCTYPE(c_uint32, *_ON_TEXT, _Text, _ERR),
    "append_file": CFUNCTYPE(c_uint32, *_ON_TEXT, _Text, _ERR),
    "mkdir": CFUNCTYPE(c_uint32, *_ON_TEXT, c_bool, _ERR),
    "remove": CFUNCTYPE(c_uint32, *_ON_TEXT, c_bool, _ERR),
    "stat": CFUNCTYPE(c_uint32, *_ON_TEXT, POINTER(_Metadata), _ERR),
    "read_dir": CFUNCTYPE(c_uint32, *_ON_TEXT, _OUT_TEXT, _ERR),
    "exists": CFUNCTYPE(c_uint32, *_ON_TEXT, POINTER(c_bool), _ERR),
    "rename": CFUNCTYPE(c_uint32, *_ON_TEXT, _Text, _ERR),
    "copy": CFUNCTYPE(c_uint32, *_ON_TEXT, _Text, _ERR),
    "symlink": CFUNCTYPE(c_uint32, *_ON_TEXT, _Text, _ERR),
    "read_link": CFUNCTYPE(c_uint32, *_ON_TEXT, _OUT_TEXT, _ERR),
    "chmod": CFUNCTYPE(c_uint32, *_ON_TEXT, c_uint32, _ERR),
    "free_bytes": CFUNCTYPE(None, c_void_p, _Text),
    "free_dir_entries": CFUNCTYPE(None, c_void_p, _Text),
}
"""The table's functions in its order."""
_COUNTING = CFUNCTYPE(None, c_void_p)


class _Table(Structure):
    _fields_ = tuple(_SIGNATURES.items())


class _Handle(Structure):
    _fields_ = (
        ("abi_version", c_uint32), ("reserved", c_uint32), ("instance", c_void_p), ("retain", _COUNTING),
        ("release", _COUNTING), ("table", POINTER(_Table)),
    )  # fmt: skip


class FileSystemPort:
    """One filesystem, as one interpreter sees it."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._lent: dict[int, list[Any]] = {}
        """What the interpreter reads now, by its address: the object, and how often it was handed out."""
        self._number = next(_numbers)
        _ports[self._number] = self
        self._handle = _Handle(_ABI_VERSION, 0, self._number, _RETAIN, _RELEASE, ctypes.pointer(_TABLE))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (c_void_p, ctypes.c_char_p, c_void_p)
        self.capsule: Any = new(ctypes.addressof(self._handle), CAPSULE_NAME, None)
        """For `bashkit.FileSystem.from_capsule`; valid as long as this object."""
        self.users = 0
        """How many filesystems of the interpreter use it; with the last it is forgotten here."""

    def _read_file(self, path: str, out: Any) -> None:
        self._lend(out.contents, self._files.read(path))

    def _write_file(self, path: str, content: _Text) -> None:
        self._files.write(path, _bytes(content))

    def _append_file(self, path: str, content: _Text) -> None:
        self._files.append(path, _bytes(content))

    def _mkdir(self, path: str, parents: bool) -> None:
        self._files.mkdir(path, parents=parents)

    def _remove(self, path: str, recursive: bool) -> None:
        self._files.remove(path, recursive=recursive)

    def _stat(self, path: str, out: Any) -> None:
        _describe(out.contents, self._files.stat(path))

    def _exists(self, path: str, out: Any) -> None:
        out[0] = self._files.exists(path)

    def _rename(self, source: str, target: _Text) -> None:
        self._files.rename(source, _said(target))

    def _copy(self, source: str, target: _Text) -> None:
        self._files.copy(source, _said(target))

    def _symlink(self, target: str, path: _Text) -> None:
        self._files.symlink(target, _said(path))

    def _read_link(self, path: str, out: Any) -> None:
        self._lend(out.contents, self._files.readlink(path).encode("utf-8", "surrogateescape"))

    def _chmod(self, path: str, mode: int) -> None:
        self._files.chmod(path, mode)

    def _read_dir(self, path: str, out: Any) -> None:
        found = self._files.entries(path)
        entries = (_DirEntry * len(found))()
        names = [entry.name.encode() for entry in found]
        for entry, slot, name in zip(found, entries, names, strict=True):
            slot.name.ptr, slot.name.len = _address(name), len(name)
            _describe(slot.metadata, entry.inode)
        answer = out.contents
        answer.ptr, answer.len = ctypes.addressof(entries), len(found)
        self._lent[answer.ptr] = [(entries, names), 1]

    def _lend(self, out: _Text, data: bytes) -> None:
        if not data:
            out.ptr, out.len = None, 0
            return
        address = _address(data)
        self._lent.setdefault(address, [data, 0])[1] += 1
        out.ptr, out.len = address, len(data)

    def _free_bytes(self, given: _Text) -> None:
        lent = self._lent.get(given.ptr or 0)
        if lent is not None:
            lent[1] -= 1
            if not lent[1]:
                del self._lent[given.ptr]

    def _tell(self, err: Any, number: int, message: str) -> None:
        if err:
            err.contents.kind = _KINDS.get(number, 0)
            self._lend(err.contents.message, message.encode("utf-8", "replace"))


_ports: Final[dict[int, FileSystemPort]] = {}
"""Those in use, by the instance number that the interpreter hands back. The functions below live as long as the process:
threads of an interpreter may call, and let go, after the last Python object of it is gone."""
_numbers: Final = itertools.count(1)


def _function(name: str) -> Callable[..., int | None]:
    """The method `name` as the interface wants it: the answer through pointers, errors as kind and message."""

    def call(instance: int, path: _Text, *rest: Any) -> int:
        port = _ports.get(instance)
        if port is None:
            return _ERROR
        try:
            getattr(port, f"_{name}")(_said(path), *rest[:-1])
        except FsError as error:
            port._tell(rest[-1], error.errno, error.message)
            return _ERROR
        except Exception as error:
            log.exception("%s failed", name)
            port._tell(rest[-1], errno.EIO, f"{type(error).__name__}: {error}")
            return _ERROR
        return _OK

    def free(instance: int, given: _Text) -> None:
        port = _ports.get(instance)
        if port is not None:
            port._free_bytes(given)

    return free if name.startswith("free") else call


def _retain(instance: int) -> None:
    if port := _ports.get(instance):
        port.users += 1


def _release(instance: int) -> None:
    if port := _ports.get(instance):
        port.users -= 1
        if not port.users:
            del _ports[instance]


_TABLE: Final = _Table(**{name: signature(_function(name)) for name, signature in _SIGNATURES.items()})
_RETAIN, _RELEASE = _COUNTING(_retain), _COUNTING(_release)


def _bytes(given: _Text) -> bytes:
    return ctypes.string_at(given.ptr, given.len) if given.len else b""


def _said(given: _Text) -> str:
    return _bytes(given).decode("utf-8", "surrogateescape")


def _address(data: bytes) -> int:
    """Where the bytes of `data` are; they stay there while it lives."""
    return ctypes.cast(ctypes.c_char_p(data), c_void_p).value or 0


def _describe(out: _Metadata, inode: Inode) -> None:
    mode = inode.mode
    out.file_type = 0 if stat.S_ISREG(mode) else 1 if stat.S_ISDIR(mode) else 2 if stat.S_ISLNK(mode) else 3
    out.size = inode.size
    out.mode = mode & 0o7777
    out.modified_secs, out.modified_nanos = divmod(inode.mtime_ns, _NS)
    out.created_secs, out.created_nanos = divmod(inode.ctime_ns, _NS)
