"""The int8 form of a packaged ONNX model: made once, put in place atomically, trusted only while its hashes agree.

`NAME.onnx` lies beside `NAME.json`, the manifest: hash of the source, hash of the result, version of onnxruntime. Both can
be deleted at any time and come back.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from memdir.core.errors import MemdirError
from memdir.core.paths import ensure_dir, write_private
from memdir.retrieval.embed.port import sha256_of

_NAME: Final = "all-minilm-l6-v2-int8"
_RECIPE: Final = "quantize_dynamic MatMul QInt8 per_channel reduce_range 1"
"""Grows when the way of making the file changes."""


class QuantizationError(MemdirError):
    """The int8 file cannot be made here; the float32 weights still work."""


def int8_model(graph: Path, models_dir: Path, *, source_sha256: str, check: Callable[[Path], None]) -> Path:
    """Path of a checked int8 model; makes it when there is none. `check` verifies the source before it is used.

    Two processes that come at the same time wait for each other. Raises QuantizationError, and what `check` raises.
    """
    model = models_dir / f"{_NAME}.onnx"
    manifest = models_dir / f"{_NAME}.json"
    try:
        ensure_dir(models_dir)
        with _locked(models_dir / f"{_NAME}.lock"):
            if _is_good(model, manifest, source_sha256):
                return model
            check(graph)
            _build(graph, model)
            facts = {"recipe": _RECIPE, "source_sha256": source_sha256, "sha256": sha256_of(model)}
            write_private(manifest, json.dumps(facts, indent=1).encode())
    except OSError as error:
        raise QuantizationError(f"cannot keep the int8 model in {models_dir}: {error.strerror}") from error
    return model


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _is_good(model: Path, manifest: Path, source_sha256: str) -> bool:
    try:
        facts = json.loads(manifest.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    if not isinstance(facts, dict) or facts.get("source_sha256") != source_sha256 or facts.get("recipe") != _RECIPE:
        return False
    return model.is_file() and sha256_of(model) == facts.get("sha256")


def _build(graph: Path, model: Path) -> None:
    """Quantise copies in a temporary folder beside the target, then rename.

    Copies, because onnxruntime writes an intermediate file beside its input, and because onnx refuses weights with several
    hard links, which is how uv installs packages. Needs about 250 MB of disk for some seconds.
    """
    try:
        from onnx.checker import ValidationError
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise QuantizationError(f"the package onnx is not installed ({error})") from error
    with tempfile.TemporaryDirectory(prefix=".quantize-", dir=model.parent) as folder:
        source = Path(folder) / graph.name
        made = Path(folder) / "int8.onnx"
        for name in (graph.name, graph.name + "_data"):
            shutil.copyfile(graph.with_name(name), Path(folder) / name)
        try:
            with _quiet_root_logger():
                # Per channel: cosine .990 to float32 on mixed text, .950 without. Reduced range: processors without VNNI add
                # in 16 bits, where full-range weights saturate (onnxruntime.ai/docs/performance, "quantization").
                quantize_dynamic(
                    str(source),
                    str(made),
                    op_types_to_quantize=["MatMul"],
                    weight_type=QuantType.QInt8,
                    per_channel=True,
                    reduce_range=True,
                )
        except (RuntimeError, ValueError, TypeError, ValidationError) as error:
            raise QuantizationError(f"onnxruntime cannot quantise the model: {error}") from error
        with made.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(made, model)


@contextlib.contextmanager
def _quiet_root_logger() -> Iterator[None]:
    """onnxruntime warns on the root logger about a preparation step that this model does not need."""
    root = logging.getLogger()
    root.addFilter(_drop)
    try:
        yield
    finally:
        root.removeFilter(_drop)


def _drop(_: logging.LogRecord) -> bool:
    return False
