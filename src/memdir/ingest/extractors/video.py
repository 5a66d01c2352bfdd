"""Films: their subtitles, what is said in them, and the text that can be seen, each with its time."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from memdir.ingest.extractors import ocr, speech
from memdir.ingest.extractors.output import ExtractionError, Output

_EVERY_S: Final = 2.0
"""How far apart the frames are that are looked at."""
_FRAMES_MAX: Final = 2_000
_CHANGED: Final = 24.0
"""Largest difference of grey values, of 255, of two frames in 64 x 64 points; below it they show the same."""
_SAME_TEXT: Final = 0.9
_SIDE: Final = 64


def extract(path: Path, out: Output) -> None:
    """ExtractionError when nothing in it can be read here."""
    if find_spec("av") is None:
        raise ExtractionError("it is a film, and nothing here opens films", hint=speech.HINT, needs="speech")
    engines = []
    lost: dict[str, str] = {}
    with speech.opened(path) as media:
        length_s = speech.seconds(media)
        out.fact("duration", speech.stamp(length_s))
        is_video, has_sound = bool(media.streams.video), bool(media.streams.audio)
        has_subtitles = bool(media.streams.subtitles)
        if is_video:
            speech.tags(media, out)
    if not is_video and has_sound:
        out.kind = "audio"
        speech.extract(path, out)
        return
    if has_subtitles:
        engines.append("pyav")
        _section(out, "Subtitles", _subtitles(path))
    if has_sound and speech.is_available():
        engines.append(speech.engine())
        with speech.opened(path) as media:
            _section(out, "Speech", ((start, text) for start, text, _ in speech.transcribed(media, out, length_s)))
    elif has_sound:
        lost["speech"] = f"speech: {speech.HINT}"
    if is_video and ocr.is_available():
        engines.append(ocr.engine() or "")
        _section(out, "Text on the screen", _shown(path, out, length_s))
    elif is_video:
        lost["ocr"] = f"text on the screen: {ocr.HINT}"
    if not engines and not out.is_empty:
        engines.append(f"pyav {version('av')}")
    if not engines:
        reason = "it is a film, and nothing here reads speech or text in pictures"
        raise ExtractionError(reason, hint="; ".join(lost.values()), needs="speech")
    out.engine = ", ".join(engines)
    out.fact("unread", "; ".join(lost.values()))
    out.needs = next(iter(lost), "")


def _section(out: Output, title: str, lines: Iterator[tuple[float, str]]) -> None:
    begun = False
    for start_s, text in lines:
        if not begun:
            out.heading(2, title)
            begun = True
        out.paragraph(f"[{speech.stamp(start_s)}] {text}")


def _subtitles(path: Path) -> Iterator[tuple[float, str]]:
    with speech.opened(path) as media:
        stream = media.streams.subtitles[0]
        for packet in media.demux(stream):
            if packet.pts is None:
                continue
            for subtitle in packet.decode():
                text = _dialogue(subtitle)
                if text:
                    yield float(packet.pts * stream.time_base), text


def _dialogue(subtitle: Any) -> str:
    said = getattr(subtitle, "dialogue", None) or getattr(subtitle, "text", None) or b""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return " ".join(text.replace("\\N", " ").split())


def _shown(path: Path, out: Output, length_s: int) -> Iterator[tuple[float, str]]:
    last = ""
    for at_s, frame in _distinct_frames(path, out):
        text = " / ".join(line for line in ocr.recognised(frame).split("\n") if line.strip())
        out.progress(int(at_s), length_s)
        if text and difflib.SequenceMatcher(None, last[:500], text[:500]).ratio() < _SAME_TEXT:
            yield at_s, text
        last = text or last


def _distinct_frames(path: Path, out: Output) -> Iterator[tuple[float, Any]]:
    import av
    import numpy as np

    before: Any = None
    due_s = 0.0
    count = 0
    with speech.opened(path) as media:
        stream = media.streams.video[0]
        stream.thread_type = "AUTO"
        try:
            for frame in media.decode(stream):
                if frame.time is None or frame.time < due_s:
                    continue
                due_s = frame.time + _EVERY_S
                image = frame.to_image()
                small = np.asarray(image.convert("L").resize((_SIDE, _SIDE)), dtype=np.float32)
                if before is None or float(np.abs(small - before).max()) > _CHANGED:
                    before = small
                    count += 1
                    yield float(frame.time), image
                if count >= _FRAMES_MAX:
                    out.truncated = True
                    return
        except av.FFmpegError:
            if not count:
                raise ExtractionError("its pictures cannot be decoded: damaged or cut off", hint="convert it again") from None
