"""The int8 form of a packaged ONNX model: made once, put in place atomically, trusted only while its hashes agree.

`NAME.onnx` lies beside `NAME.json`, the manifest: hash of the source, hash of the result, version of onnxruntime. Both can
be deleted at any time and come back. A process of its own makes it, `python -m memdir.retrieval.embed.quantize FLOAT32 INT8`:
the memory and the temporary files that this takes go with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from memdir.core.errors import MemdirError
from memdir.core.paths import ensure_dir, write_private
from memdir.core.processes import end_with_parent
from memdir.retrieval.embed.port import sha256_of

_RECIPE: Final = "quantize_dynamic MatMul QInt8 per_channel reduce_range 1"
"""Grows when the way of making the file changes."""
_LIMIT_S: Final = 600
"""It takes 2 s."""
_ROOM_BYTES: Final = 448 << 20
"""The two float32 files, what onnxruntime writes between them and the result are 350 MB for those seconds; others on the disk
write meanwhile."""


class QuantizationError(MemdirError):
    """The int8 file cannot be made here; the float32 weights still work."""


def int8_model(name: str, models_dir: Path, *, source_sha256: str, write: Callable[[Path], Path]) -> Path:
    """Path of a checked int8 model; makes it when there is none. `write` puts the float32 model, verified, into a folder that
    it may use and says what it is called.

    Two processes that come at the same time wait for each other. Raises QuantizationError, and what `write` raises.
    """
    model = models_dir / f"{name}.onnx"
    manifest = models_dir / f"{name}.json"
    try:
        ensure_dir(models_dir)
        with _locked(models_dir / f"{name}.lock"):
            if _is_good(model, manifest, source_sha256):
                return model
            _build(write, model)
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


def _build(write: Callable[[Path], Path], model: Path) -> None:
    """Quantise in a temporary folder beside the target, then rename. With the lock: a folder that is there already is of a
    process that was killed."""
    prefix = f".quantize-{model.name}-"
    for left in model.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    if shutil.disk_usage(model.parent).free < _ROOM_BYTES:
        raise QuantizationError(
            f"making the int8 model needs {_ROOM_BYTES >> 20} MiB of disk for some seconds in {model.parent}"
        )
    with tempfile.TemporaryDirectory(prefix=prefix, dir=model.parent) as folder:
        source = write(Path(folder))
        made = Path(folder) / "int8.onnx"
        command = [sys.executable, "-I", "-m", __name__, str(source), str(made), str(os.getpid())]
        try:
            ended = subprocess.run(
                command,
                env=os.environ | {"TMPDIR": folder},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise QuantizationError(f"onnxruntime does not end quantising the model ({_LIMIT_S} s)") from error
        if ended.returncode != 0:
            said = ended.stderr.decode(errors="replace").strip().splitlines()
            raise QuantizationError(f"onnxruntime cannot quantise the model: {said[-1] if said else ended.returncode}")
        with made.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(made, model)


def _main(source: str, made: str, parent_pid: str) -> None:
    """Per channel: cosine .990 to float32 on mixed text, .950 without. Reduced range: processors without VNNI add in 16 bits,
    where full-range weights saturate (onnxruntime.ai/docs/performance, "quantization")."""
    end_with_parent(int(parent_pid))
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        source, made, op_types_to_quantize=["MatMul"], weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
    )


if __name__ == "__main__":
    _main(*sys.argv[1:])
