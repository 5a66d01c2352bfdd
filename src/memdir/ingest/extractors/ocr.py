"""Text in pictures: by Tesseract where the system has it, else by RapidOCR (extra `ocr`)."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from memdir.ingest.extractors.output import ExtractionError

if TYPE_CHECKING:
    from PIL import Image

HINT: Final = "`apt install tesseract-ocr` or `pip install 'memdir[ocr]'`, then `memdir server reindex --what transcriptions`"
ENV_LANGUAGES: Final = "MEMDIR_OCR_LANGUAGES"
"""Tesseract's names, joined by `+`; all that are installed when it is not set."""
_PAGE_S: Final = 60.0
_SIDE_MIN: Final = 1_000
"""Smaller pictures are enlarged: both engines want letters of 20 pixels and more."""
_SIDE_MAX: Final = 6_000
_SCORE_MIN: Final = 0.5
_LANGUAGES_MAX: Final = 8


def is_available() -> bool:
    """Whether any engine is here."""
    return engine() is not None


@functools.cache
def engine() -> str | None:
    """The name and version of the engine that is used."""
    program = shutil.which("tesseract")
    if program is not None:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
        found = re.match(r"tesseract v?(\S+)", said)
        if found and _languages():
            return f"tesseract {found[1]}"
    if find_spec("rapidocr") is None:
        return None
    try:
        return f"rapidocr {version('rapidocr')}"
    except PackageNotFoundError:
        return None


def missing(what: str) -> ExtractionError:
    """The error for a file that only an engine could read."""
    return ExtractionError(f"{what}, and nothing here recognises text in pictures", hint=HINT, needs="ocr")


def recognised(image: Image.Image) -> str:
    """The text in the picture, line by line; empty when there is none."""
    prepared = _prepared(image)
    return _by_tesseract(prepared) if (engine() or "").startswith("tesseract") else _by_rapidocr(prepared)


def _prepared(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode not in ("L", "RGB"):
        ground = Image.new("RGB", image.size, "white")
        ground.paste(image.convert("RGBA"), mask=image.convert("RGBA").getchannel("A"))
        image = ground
    longest = max(image.size)
    scale = min(_SIDE_MAX / longest, 1.0) if longest > _SIDE_MAX else 2.0 if longest < _SIDE_MIN else 1.0
    if scale != 1.0:
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(size, Image.Resampling.LANCZOS)
    return image


def _by_tesseract(image: Image.Image) -> str:
    buffer = BytesIO()
    image.save(buffer, "PPM")
    command = ["tesseract", "stdin", "stdout", "-l", _languages(), "--psm", "3"]
    environment = os.environ | {"OMP_THREAD_LIMIT": "1"}
    done = subprocess.run(command, input=buffer.getvalue(), capture_output=True, timeout=_PAGE_S, env=environment, check=False)
    if done.returncode:
        raise ExtractionError(f"tesseract failed: {done.stderr.decode('utf-8', 'replace').strip()[:200]}", hint="")
    return done.stdout.decode("utf-8", "replace").replace("\x0c", "").strip()


@functools.cache
def _languages() -> str:
    wanted = os.environ.get(ENV_LANGUAGES, "").strip()
    if re.fullmatch(r"[A-Za-z_+]+", wanted):
        return wanted
    said = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, timeout=10, check=False).stdout
    names = [line.strip() for line in said.splitlines()[1:] if line.strip() not in ("", "osd", "equ")]
    names.sort(key=lambda name: (name != "eng", name))
    return "+".join(names[:_LANGUAGES_MAX])


@functools.cache
def _rapidocr() -> Any:
    import logging

    from rapidocr import RapidOCR

    logging.getLogger("RapidOCR").setLevel(logging.WARNING)
    return RapidOCR(params={"Global.log_level": "warning", "EngineConfig.onnxruntime.intra_op_num_threads": 1})


def _by_rapidocr(image: Image.Image) -> str:
    import numpy as np

    found = _rapidocr()(np.asarray(image.convert("RGB")))
    if found.boxes is None or found.txts is None:
        return ""
    lines: list[tuple[float, float, float, str]] = []
    for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True):
        if score >= _SCORE_MIN:
            ys = [float(point[1]) for point in box]
            lines.append((min(ys), max(ys), float(box[0][0]), text))
    return "\n".join(_in_reading_order(lines))


def _in_reading_order(boxes: list[tuple[float, float, float, str]]) -> list[str]:
    """Boxes whose middle lies inside of the one before are on one line (top, bottom, left, text)."""
    rows: list[list[tuple[float, float, float, str]]] = []
    for box in sorted(boxes):
        middle = (box[0] + box[1]) / 2
        if rows and rows[-1][0][0] <= middle <= rows[-1][0][1]:
            rows[-1].append(box)
        else:
            rows.append([box])
    return ["  ".join(box[3] for box in sorted(row, key=lambda box: box[2])) for row in rows]
