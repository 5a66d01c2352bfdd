"""Files that are small and ask for much."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable

from memdir_bench.ingest.phrases import ODT, PHRASE, zipped


def billion_laughs() -> bytes:
    entities = '<!ENTITY l0 "lol">' + "".join(f'<!ENTITY l{level} "&l{level - 1};&l{level - 1};">' for level in range(1, 40))
    return f'<?xml version="1.0"?><!DOCTYPE d [{entities}]><d>&l39;</d>'.encode()


def huge_png() -> bytes:
    """Says that it is 60,000 by 60,000 pixels."""
    import zlib

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    made = b"\x89PNG\r\n\x1a\n"
    for name, data in chunks:
        made += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return made


def zip_bomb(name: str = "zeros.txt", *, mib: int = 600) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made, made.open(name, "w", force_zip64=True) as member:
        for _ in range(mib):
            member.write(bytes(1 << 20))
    return out.getvalue()


def nested_zip(depth: int = 60) -> bytes:
    data = PHRASE.encode()
    for level in range(depth):
        data = zipped({f"{level}.zip" if level else "a.txt": data})
    return data


def bombs() -> dict[str, Callable[[], bytes]]:
    """Files that are small and ask for much, by name."""
    header = b"From: a@b\nSubject: x\nDate: y\n"
    return {
        "zeros.zip": zip_bomb,
        "zeros.docx": lambda: zip_bomb("word/document.xml"),
        "zeros.odt": lambda: zip_bomb("content.xml"),
        "nested.zip": nested_zip,
        "laughs.odt": lambda: zipped({"content.xml": billion_laughs()}, first=ODT),
        "huge.png": huge_png,
        "deep.html": lambda: b"<html><body>" + b"<div>" * 200_000 + b"deep",
        "wide.html": lambda: b"<html><body>" + b"<table><tr><td>" * 20_000,
        "brackets.rtf": lambda: b"{\\rtf1 " + b"{" * 500_000,
        "headers.eml": lambda: header + b"X: y\n" * 300_000 + b"\nbody\n",
        "parts.eml": lambda: header + b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\n" * 50_000,
    }
