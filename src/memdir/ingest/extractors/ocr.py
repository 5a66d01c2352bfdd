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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
_UPRIGHT_SCORE_MIN: Final = 0.85
"""Of RapidOCR's lines on average: upright print has .98 and more, what stands on its head at most .74."""
_UPRIGHT_LINES: Final = 5
"""So many, the longest, tell whether a page stands on its head."""
_LANGUAGES_MAX: Final = 8
_OSD: Final = "osd"
"""Tesseract's data that tell how a page lies (orientation and script detection)."""
_TURNED, _UPRIGHT = "1", "3"
"""Its ways of reading a page: however it lies, and as it stands."""


class _Line(NamedTuple):
    """A line of RapidOCR's, in pixels from the upper left corner."""

    top: float
    left: float
    bottom: float
    right: float
    text: str
    score: float

    @property
    def is_tall(self) -> bool:
        return self.bottom - self.top > self.right - self.left


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
    command = ["tesseract", "stdin", "stdout", "-l", _languages(), "--psm", _TURNED if _OSD in _installed() else _UPRIGHT]
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
    names = sorted(_installed() - {_OSD, "equ"}, key=lambda name: (name != "eng", name))
    return "+".join(names[:_LANGUAGES_MAX])


@functools.cache
def _installed() -> frozenset[str]:
    """Names of Tesseract's data files."""
    said = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, timeout=10, check=False).stdout
    return frozenset(line.strip() for line in said.splitlines()[1:] if line.strip())


@functools.cache
def _rapidocr() -> Any:
    import logging

    from rapidocr import RapidOCR

    logging.getLogger("RapidOCR").setLevel(logging.WARNING)
    return RapidOCR(
        params={
            "Global.log_level": "warning",
            # Its classifier of directions takes a sixth of the lines of an ordinary page for upside down, and reads noise then.
            "Global.use_cls": False,
            # Six lines together, all as wide as the widest, take a third of the memory more, and a fifth of the time.
            "Rec.rec_batch_num": 1,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        }
    )


def _by_rapidocr(image: Image.Image) -> str:
    """A page that stands on its head or lies on its side is turned as a whole, not line by line."""
    image = image.convert("RGB")
    lines = _rapidocr_lines(image)
    if _mean_score(lines) < _UPRIGHT_SCORE_MIN <= _mean_score_upside_down(image, lines):
        image = image.rotate(180)
        lines = _rapidocr_lines(image)
    if sum(line.is_tall for line in lines) > len(lines) / 2:  # RapidOCR turns what is tall to the left
        lines = [
            line._replace(top=image.width - line.right, left=line.top, bottom=image.width - line.left, right=line.bottom)
            for line in lines
        ]
    return "\n".join(_in_reading_order([line for line in lines if line.score >= _SCORE_MIN]))


def _rapidocr_lines(image: Image.Image) -> list[_Line]:
    import numpy as np

    try:
        found = _rapidocr()(np.asarray(image), use_det=True)  # it remembers what it was told last
    except MemoryError:
        raise
    except Exception as error:
        raise ExtractionError(f"the text in the picture cannot be recognised: {error}"[:300], hint="make it smaller") from error
    if found.boxes is None or found.txts is None:
        return []
    lines = []
    for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True):
        (left, top), (right, bottom) = np.min(box, axis=0), np.max(box, axis=0)
        lines.append(_Line(float(top), float(left), float(bottom), float(right), text, float(score)))
    return lines


def _mean_score(lines: list[_Line]) -> float:
    return sum(line.score for line in lines) / max(1, len(lines))


def _mean_score_upside_down(image: Image.Image, lines: list[_Line]) -> float:
    """Of the longest lines, were the picture turned by 180 degrees."""
    import numpy as np

    longest = sorted(lines, key=lambda line: max(line.bottom - line.top, line.right - line.left))[-_UPRIGHT_LINES:]
    scores: list[float] = []
    for line in longest:
        crop = image.crop((int(line.left), int(line.top), round(line.right), round(line.bottom)))
        crop = crop.rotate(270 if line.is_tall else 180, expand=True)
        scores += _rapidocr()(np.asarray(crop), use_det=False).scores or ()
    return sum(scores) / max(1, len(scores))


def _in_reading_order(lines: list[_Line]) -> list[str]:
    """Those whose middle lies inside of the one before are on one line."""
    rows: list[list[_Line]] = []
    for line in sorted(lines):
        middle = (line.top + line.bottom) / 2
        if rows and rows[-1][0].top <= middle <= rows[-1][0].bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return ["  ".join(line.text for line in sorted(row, key=lambda line: line.left)) for row in rows]
