"""What people wrote about recordings: tags and chapters."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from memdir.ingest.extractors import speech
from memdir.ingest.extractors.output import Output

av = pytest.importorskip("av")


def told(path: Path) -> Output:
    out = Output()
    with speech.opened(path) as media:
        speech.tags(media, out)
    return out


@pytest.mark.promise("extract.kinds")
@pytest.mark.parametrize(("name", "codec"), [("a.flac", "flac"), ("a.ogg", "libopus"), ("a.mka", "flac")])
def test_tags_and_chapters_are_text(tmp_path: Path, name: str, codec: str) -> None:
    with av.open(str(tmp_path / name), "w") as media:
        media.metadata.update({"title": "The heron walk", "artist": "Ana Ruiz", "comment": "recorded at the weir"})
        stream = media.add_stream(codec, rate=48000, layout="mono")
        if name == "a.mka":
            media.set_chapters(
                [{"id": 1, "start": 0, "end": 500, "time_base": Fraction(1, 1000), "metadata": {"title": "Start"}}]
            )
        resampler = av.AudioResampler(format=stream.codec_context.format, layout="mono", rate=48000)
        frame = av.AudioFrame(format="s16", layout="mono", samples=48000)
        frame.sample_rate, frame.pts = 48000, 0
        frame.planes[0].update(bytes(frame.planes[0].buffer_size))
        for piece in [*resampler.resample(frame), None]:
            media.mux(stream.encode(piece))
    out = told(tmp_path / name)
    assert out.title == "The heron walk"
    text = out.text()
    assert "Artist: Ana Ruiz\n" in text
    assert "Comment: recorded at the weir\n" in text
    assert ("[0:00:00] Chapter: Start\n" in text) == (name == "a.mka")
