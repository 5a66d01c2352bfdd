"""Static token embeddings (wordllama l2_supercat, 256-d): the mean of the tokens' vectors, normalised. About 0.1 ms a text.

The file is in safetensors format (github.com/huggingface/safetensors: 8 bytes length, JSON header, raw data); the tokenizer
is the model's own, without special tokens, as the package's own inference does it.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding, Tokenizer

from memdir.retrieval.embed.port import CosineScale, ModelUnavailableError, check_sha256, package_file
from memdir.store.types import Matrix

_DISTRIBUTION: Final = "wordllama==0.4.0.post1"
_WEIGHTS: Final = ("weights", "l2_supercat_256.safetensors")
_WEIGHTS_SHA256: Final = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
_TOKENIZER: Final = ("tokenizers", "l2_supercat_tokenizer_config.json")
NAME: Final = "wordllama-l2-supercat-256"
"""Known without loading the model."""
_TOKENIZER_SHA256: Final = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
_HEADER_MAX_BYTES: Final = 1 << 20
_TEXT_MAX_CHARS: Final = 20_000
"""Of one text; a passage holds about 1,200 characters."""
_BATCH: Final = 256


class StaticEmbedder:
    """Loads in about 0.1 s and holds 33 MB; fast enough to run inside a write's transaction and over the lines of a hit."""

    def __init__(self) -> None:
        """Raises ModelUnavailableError when the package's files are missing or changed."""
        weights = package_file("wordllama", *_WEIGHTS, distribution=_DISTRIBUTION)
        tokenizer = package_file("wordllama", *_TOKENIZER, distribution=_DISTRIBUTION)
        check_sha256(weights, _WEIGHTS_SHA256, distribution=_DISTRIBUTION)
        check_sha256(tokenizer, _TOKENIZER_SHA256, distribution=_DISTRIBUTION)
        self._table = read_safetensors(weights, "embedding.weight").astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    @property
    def name(self) -> str:
        return NAME

    @property
    def dim(self) -> int:
        return int(self._table.shape[1])

    @property
    def scale(self) -> CosineScale:
        """These vectors tell related from unrelated less well than a transformer's; the middle is on the side of showing."""
        return CosineScale(unrelated=0.15, close=0.60, middle=0.33, slope=15.0)

    def embed_query(self, text: str) -> Matrix:
        """Shape (256,)."""
        vector: Matrix = self.embed_passages([text])[0]
        return vector

    def embed_passages(self, texts: list[str]) -> Matrix:
        """Shape (len(texts), 256). A text without tokens gives the zero vector."""
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for first in range(0, len(texts), _BATCH):
            part = [_clean(text) for text in texts[first : first + _BATCH]]
            for row, encoding in enumerate(self._encode(part), start=first):
                if encoding.ids:
                    # The sum has the direction of the mean, and the length is taken out below.
                    np.add.reduce(self._table[encoding.ids], axis=0, out=out[row])
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        np.divide(out, norms, out=out, where=norms > 0)
        return out

    def _encode(self, texts: list[str]) -> list[Encoding]:
        """Few texts one by one: handing them to the tokenizer's thread pool costs more than it saves, above all on a busy
        machine."""
        if len(texts) >= _BATCH:
            return self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return [self._tokenizer.encode(text, add_special_tokens=False) for text in texts]


def _clean(text: str) -> str:
    """Lone surrogates cannot be handed to the tokenizer."""
    return text[:_TEXT_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def read_safetensors(path: Path, tensor: str) -> npt.NDArray[np.float16]:
    """One float16 matrix of a safetensors file."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > _HEADER_MAX_BYTES:
            raise ModelUnavailableError(f"{path} is not a safetensors file")
        entry = json.loads(file.read(length))[tensor]
        start, end = entry["data_offsets"]
        file.seek(8 + length + start)
        data = file.read(end - start)
    if entry["dtype"] != "F16" or len(data) != end - start:
        raise ModelUnavailableError(f"{path}: {tensor} is {entry['dtype']} or cut short, expected a whole F16")
    return np.frombuffer(data, dtype="<f2").reshape(entry["shape"])
