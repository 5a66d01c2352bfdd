"""Pictures: what people wrote about them, the text in them, and what the camera wrote down (EXIF): when, where, with what."""

from __future__ import annotations

import contextlib
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from memdir.ingest.extractors import captions, ocr
from memdir.ingest.extractors.output import ExtractionError, Output

PIXELS_MAX: Final = 64_000_000
_FRAMES_MAX: Final = 200
_ICON_SIDE_MAX: Final = 47
_LINE_HEIGHT_MIN: Final = 16
"""Pictures whose sides are both no longer than an icon's, or one of them shorter than a line of print, hold no text."""


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is damaged, too large, of a kind that needs an extra, or when no engine is here."""
    if out.media_type in ("image/heic", "image/avif"):
        _open_heif(out.media_type)
    out.recognising()  # some formats are decoded when they are opened
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = PIXELS_MAX
    try:
        with Image.open(path) as image:
            _read(image, out)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ExtractionError(f"it has more than {PIXELS_MAX // 1_000_000} million pixels", hint="make it smaller") from None
    except UnidentifiedImageError:
        raise ExtractionError("it is no picture that can be opened", hint="open it in a viewer and save it again") from None
    except (OSError, SyntaxError, ValueError, EOFError, KeyError, TypeError, IndexError) as error:
        raise ExtractionError("it is damaged or cut off", hint="open it in a viewer and save it again") from error


def _open_heif(media_type: str) -> None:
    if find_spec("pillow_heif") is None:
        raise ExtractionError(f"{media_type} needs a decoder of its own", hint="`pip install pillow-heif`, or save it as .jpg")
    import pillow_heif

    pillow_heif.register_heif_opener()


def _read(image: Image.Image, out: Output) -> None:
    out.fact("size", f"{image.width} x {image.height} pixels")
    with contextlib.suppress(ValueError, KeyError, TypeError, SyntaxError, ZeroDivisionError):
        _camera(image.getexif(), out)
    written = captions.lines(image)
    out.paragraph("\n".join(written))
    if max(image.size) <= _ICON_SIDE_MAX or min(image.size) < _LINE_HEIGHT_MIN:
        out.engine = "pillow"
        return
    found = ocr.engine()
    if found is None and written:
        out.engine, out.needs = "pillow", "ocr"
        return
    if found is None:
        raise ocr.missing("it is a picture")
    out.engine = found
    moving = getattr(image, "is_animated", False) and image.format != "TIFF"
    count = 1 if moving else getattr(image, "n_frames", 1)
    frames = min(count, _FRAMES_MAX)
    out.truncated = count > frames
    for number in range(frames):
        out.recognising()
        if frames > 1:
            image.seek(number)
        text = ocr.recognised(ImageOps.exif_transpose(image))
        if text.strip() and frames > 1:
            out.heading(2, f"Page {number + 1}")
        out.paragraph(text)
        out.progress(number + 1, frames)
    if count > 1:
        out.fact("pages", count)


def _camera(exif: Any, out: Output) -> None:
    detail = exif.get_ifd(ExifTags.IFD.Exif)
    taken = detail.get(ExifTags.Base.DateTimeOriginal) or exif.get(ExifTags.Base.DateTime)
    if isinstance(taken, str) and len(taken) >= 19:
        out.fact("taken", f"{taken[:10].replace(':', '-')} {taken[11:19]}")
    out.fact("camera", " ".join(str(exif.get(tag) or "") for tag in (ExifTags.Base.Make, ExifTags.Base.Model)))
    place = exif.get_ifd(ExifTags.IFD.GPSInfo)
    latitude = _degrees(place.get(ExifTags.GPS.GPSLatitude), place.get(ExifTags.GPS.GPSLatitudeRef))
    longitude = _degrees(place.get(ExifTags.GPS.GPSLongitude), place.get(ExifTags.GPS.GPSLongitudeRef))
    if latitude is not None and longitude is not None:
        out.fact("place", f"{latitude:.6f}, {longitude:.6f}")


def _degrees(parts: Any, side: Any) -> float | None:
    if not parts or len(parts) != 3:
        return None
    value = float(parts[0]) + float(parts[1]) / 60 + float(parts[2]) / 3600
    return -value if side in ("S", "W") else value
