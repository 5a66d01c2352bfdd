"""A transformer whose vectors are kept on the disk, so that a second run over the same texts takes seconds.

Kept by model and by the text that is embedded; a passage's line vectors go with it and count only while the passage still
has as many lines. A file that is broken or of another version is made anew.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from memdir.core.paths import ensure_dir
from memdir.retrieval.embed import Embedder, LineEmbedder
from memdir.retrieval.embed.port import CosineScale, Doubting
from memdir.retrieval.units import units_of
from memdir.store.text.passage_text import embedded_text
from memdir.store.types import Chunk, Matrix

_VERSION: Final = 1
_TEXTS_MAX: Final = 500_000


class CachedEmbedder:
    """`model` with a memory. Queries are kept like passages. `save` writes what is new; any thread may call."""

    def __init__(self, model: Embedder, folder: Path) -> None:
        self._model = model
        self._path = folder / f"{model.name}-v{_VERSION}.npz"
        self._vectors: dict[bytes, Matrix] = {}
        self._lines: dict[bytes, bytes] = {}
        self._lock = threading.Lock()
        self.made = 0
        """Texts that the model had to embed."""
        self._load()

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def dim(self) -> int:
        return self._model.dim

    @property
    def scale(self) -> CosineScale:
        return self._model.scale

    def doubts(self, vectors: Matrix) -> Matrix:
        """As the model's."""
        return self._model.doubts(vectors) if isinstance(self._model, Doubting) else np.zeros(len(vectors), dtype=np.float32)

    def embed_query(self, text: str) -> Matrix:
        """As the model's."""
        vector: Matrix = self._kept([("query", text)], lambda _: self._model.embed_query(text)[None])[0]
        return vector

    def embed_passages(self, texts: list[str]) -> Matrix:
        """As the model's."""
        return self._kept([("passage", text) for text in texts], lambda at: self._model.embed_passages([texts[i] for i in at]))

    def embed_chunks(self, chunks: Sequence[Chunk]) -> tuple[Matrix, list[bytes]]:
        """As the model's; without line vectors when the model has none."""
        keys = [_key("passage", embedded_text(chunk)) for chunk in chunks]
        with self._lock:
            lacking = [at for at, key in enumerate(keys) if not self._whole(key, chunks[at])]
        if lacking:
            part = [chunks[at] for at in lacking]
            if isinstance(self._model, LineEmbedder):
                vectors, lines = self._model.embed_chunks(part)
            else:
                vectors, lines = self._model.embed_passages([embedded_text(chunk) for chunk in part]), [b""] * len(part)
            with self._lock:
                self._vectors.update((keys[at], vector) for at, vector in zip(lacking, vectors, strict=True))
                self._lines.update((keys[at], packed) for at, packed in zip(lacking, lines, strict=True))
                self.made += len(lacking)
        with self._lock:
            return np.stack([self._vectors[key] for key in keys]), [self._lines[key] for key in keys]

    def _whole(self, key: bytes, chunk: Chunk) -> bool:
        lines = self._lines.get(key)
        if key not in self._vectors or lines is None:
            return False
        return not isinstance(self._model, LineEmbedder) or len(lines) == self.dim * len(units_of(chunk.text))

    def _kept(self, texts: list[tuple[str, str]], make: Callable[[list[int]], Matrix]) -> Matrix:
        keys = [_key(*text) for text in texts]
        with self._lock:
            lacking = [at for at, key in enumerate(keys) if key not in self._vectors]
        if lacking:
            made = make(lacking)
            with self._lock:
                self._vectors.update((keys[at], vector) for at, vector in zip(lacking, made, strict=True))
                self.made += len(lacking)
        with self._lock:
            return np.stack([self._vectors[key] for key in keys])

    def save(self) -> None:
        """Write all, when there is something new; replaces the file atomically."""
        with self._lock:
            if not self.made or len(self._vectors) > _TEXTS_MAX:
                return
            keys = sorted(self._vectors)
            lines = [self._lines.get(key, b"") for key in keys]
            vectors = np.stack([self._vectors[key] for key in keys])
        ensure_dir(self._path.parent)
        with tempfile.NamedTemporaryFile(dir=self._path.parent, suffix=".tmp", delete=False) as file:
            np.savez(
                file,
                keys=np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, 32),
                vectors=vectors,
                sizes=np.array([len(packed) for packed in lines], dtype=np.int64),
                lines=np.frombuffer(b"".join(lines), dtype=np.uint8),
            )
        os.replace(file.name, self._path)

    def _load(self) -> None:
        if not self._path.is_file():
            return
        try:
            with np.load(self._path, allow_pickle=False) as kept:
                keys, vectors, sizes, lines = (kept[name] for name in ("keys", "vectors", "sizes", "lines"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            self._path.unlink(missing_ok=True)
            return
        packed, end = lines.tobytes(), np.cumsum(sizes)
        for at, key in enumerate(row.tobytes() for row in keys):
            self._vectors[key] = vectors[at]
            if sizes[at]:
                self._lines[key] = packed[end[at] - sizes[at] : end[at]]


def _key(kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "replace")).digest()
