"""What a mount writes beside a document, in its metadata, so that the exact bytes can be had from a server that keeps text.

Every value is a string, a number or a boolean, as the API asks. The names begin with `memdir_`; other names are left alone.
Servers strip texts and change the ends of lines: `restored` undoes that, and its result counts only when the hash agrees.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

INLINE_MAX_BYTES: Final = 2048
"""Contents that are no text to speak of travel in the metadata up to this size."""
TEXT_MAX_BYTES: Final = 1 << 20
"""A longer text is uploaded as a file."""
_EDGE_MAX_CHARS: Final = 200
_PREFIX: Final = "memdir_"
BLANK: Final = "(This file is blank. memdir keeps its bytes in the metadata.)"
"""The content of documents whose own contents the API would refuse: nothing, or white space only."""
_ADDRESS: Final = re.compile(r"\s*\S{1,40}://\S+\s*")
_KINDS: Final = ("file", "symlink", "container")
_HOWS: Final = ("text", "inline", "upload")


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """What a path shows: what `v1.FileEntry` says of it without its place."""

    kind: str
    content_hash: str
    size_bytes: int
    mode: int
    mtime_ns: int

    def same(self, other: Face | None) -> bool:
        """Whether kind, bytes and mode are equal."""
        return (
            other is not None
            and (self.kind, self.content_hash) == (other.kind, other.content_hash)
            and (self.kind == "symlink" or self.mode == other.mode)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """`how`: `text`, the contents are the document's content; `inline`, they stand in `inline`; `upload`, they are its file."""

    face: Face
    how: str
    key: str = ""
    """Of the write that made it: the same for a repetition of the same request."""
    squeezed: str = ""
    """Hash of the text without any white space: the same after everything that servers do to a text, another after an edit."""
    head: str = ""
    tail: str = ""
    """White space before and behind the text."""
    crlf: bool = False
    inline: bytes = field(default=b"", repr=False)
    replaces: str = ""
    """Another document whose place this one takes."""

    @classmethod
    def read(cls, metadata: Json) -> Marks | None:
        """Of a document's metadata; None when no mount wrote it, or what it wrote was damaged by others."""
        try:
            face = Face(
                kind=_one_of(metadata.get(_PREFIX + "kind"), _KINDS),
                content_hash=re.fullmatch("[0-9a-f]{64}", str(metadata.get(_PREFIX + "hash")))[0],  # type: ignore[index]
                size_bytes=int(metadata[_PREFIX + "size"]),
                mode=int(metadata[_PREFIX + "mode"]) & 0o7777,
                mtime_ns=int(metadata[_PREFIX + "mtime"]),
            )
            return cls(
                face=face,
                how=_one_of(metadata.get(_PREFIX + "how"), _HOWS),
                key=str(metadata.get(_PREFIX + "key", "")),
                squeezed=str(metadata.get(_PREFIX + "squeezed", "")),
                head=_unpacked(metadata.get(_PREFIX + "head", "")).decode(),
                tail=_unpacked(metadata.get(_PREFIX + "tail", "")).decode(),
                crlf=bool(metadata.get(_PREFIX + "crlf", False)),
                inline=_unpacked(metadata.get(_PREFIX + "inline", "")),
                replaces=str(metadata.get(_PREFIX + "replaces", "")),
            )
        except (KeyError, TypeError, ValueError):
            return None

    def write(self, beside: Json) -> Json:
        """The metadata of a document that has `beside`, with these marks instead of older ones."""
        face = self.face
        kept = {name: value for name, value in beside.items() if not name.startswith(_PREFIX)}
        marks: Json = {
            "kind": face.kind, "hash": face.content_hash, "size": face.size_bytes, "mode": face.mode,
            "mtime": str(face.mtime_ns), "how": self.how, "key": self.key, "squeezed": self.squeezed,
            "head": _packed(self.head.encode()), "tail": _packed(self.tail.encode()), "crlf": self.crlf,
            "inline": _packed(self.inline), "replaces": self.replaces,
        }  # fmt: skip
        return kept | {_PREFIX + name: value for name, value in marks.items() if value != "" and value is not False}

    def restored(self, content: str) -> bytes | None:
        """The exact bytes, from the document's content as the server gives it back; None when they cannot be had from it."""
        for candidate in self._candidates(content):
            if hashlib.sha256(candidate).hexdigest() == self.face.content_hash:
                return candidate
        return None

    def is_edited(self, content: str) -> bool:
        """Whether somebody else wrote another text since, and left the metadata alone."""
        if self.how == "inline":
            return squeeze(content) != squeeze(BLANK)
        return self.how == "text" and squeeze(content) != self.squeezed

    def _candidates(self, content: str) -> Iterator[bytes]:
        if self.how == "inline":
            yield self.inline
            return
        yield content.encode("utf-8", "surrogatepass")
        for text in (content.strip(), content.strip().replace("\r\n", "\n")):
            whole = self.head + text + self.tail
            yield whole.encode("utf-8", "surrogatepass")
            if self.crlf:
                yield (self.head + text.replace("\r\n", "\n").replace("\n", "\r\n") + self.tail).encode(
                    "utf-8", "surrogatepass"
                )


def marks_of(face: Face, content: bytes, *, key: str, replaces: str = "") -> tuple[Marks, str]:
    """How contents travel (`how`), with what beside them; and the text to send, '' for an upload. The bytes of a whole upload
    need not be given."""
    text = _as_text(content) if face.size_bytes <= TEXT_MAX_BYTES else None
    if text is not None and text.strip():
        core = text.strip()
        head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        if len(head) <= _EDGE_MAX_CHARS and len(tail) <= _EDGE_MAX_CHARS:
            marks = Marks(
                face=face, how="text", key=key, squeezed=squeeze(core), head=head, tail=tail, replaces=replaces,
                crlf="\r\n" in core and core.count("\r\n") == core.count("\n") == core.count("\r"),
            )  # fmt: skip
            if marks.restored(core.replace("\r\n", "\n").replace("\r", "\n")) is not None:
                return marks, text
    elif face.size_bytes <= INLINE_MAX_BYTES and (text is not None or not face.size_bytes):
        return Marks(face=face, how="inline", key=key, inline=content, replaces=replaces), BLANK
    return Marks(face=face, how="upload", key=key, replaces=replaces), ""


def squeeze(text: str) -> str:
    """Hash of a text without its white space."""
    return hashlib.sha256("".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _as_text(content: bytes) -> str | None:
    """The text that may be sent as such. Not one with a NUL, which JSON columns refuse, and not an address standing alone: the
    server would fetch what it leads to and keep that instead."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text or _ADDRESS.fullmatch(text) else text


def _one_of(value: object, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"{value!r}")
    return str(value)


def _packed(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _unpacked(value: object) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
