"""What people wrote about a picture is read with it, also where nothing recognises text."""

from __future__ import annotations

import io
import struct

import pytest
from PIL import ExifTags, Image
from PIL.PngImagePlugin import PngInfo

from memdir.ingest.extractors import ocr
from memdir.ingest.sandbox import Sandbox
from tests.ingest.reading import read

pytestmark = pytest.mark.promise("extract.kinds")

XMP = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"
 xmlns:mwg-rs="http://www.metadataworkinggroup.com/schemas/regions/" rdf:about="" photoshop:City="Bergen">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">The boat below the bridge</rdf:li></rdf:Alt></dc:title>
<dc:description><rdf:Alt><rdf:li xml:lang="x-default">Painted in May</rdf:li></rdf:Alt></dc:description>
<dc:subject><rdf:Bag><rdf:li>harbour</rdf:li><rdf:li>spring</rdf:li></rdf:Bag></dc:subject>
<mwg-rs:Regions rdf:parseType="Resource"><mwg-rs:RegionList><rdf:Bag>
<rdf:li><rdf:Description mwg-rs:Name="Ana Ruiz" mwg-rs:Type="Face"/></rdf:li>
<rdf:li rdf:parseType="Resource"><mwg-rs:Name>Bo Lind</mwg-rs:Name><mwg-rs:Type>Face</mwg-rs:Type></rdf:li>
</rdf:Bag></mwg-rs:RegionList></mwg-rs:Regions></rdf:Description></rdf:RDF></x:xmpmeta>"""


def iptc(*values: tuple[int, bytes]) -> bytes:
    """A JPEG segment as Photoshop writes it (APP13, resource 0x0404)."""
    data = b"".join(b"\x1c\x02" + struct.pack(">BH", number, len(value)) + value for number, value in values)
    resource = b"8BIM\x04\x04\x00\x00" + struct.pack(">I", len(data)) + data + b"\0" * (len(data) % 2)
    body = b"Photoshop 3.0\0" + resource
    return b"\xff\xed" + struct.pack(">H", len(body) + 2) + body


def test_captions_keywords_and_people_of_a_photo(sandbox: Sandbox) -> None:
    made = io.BytesIO()
    exif = Image.Exif()
    exif[ExifTags.Base.ImageDescription] = "Painted in May"
    exif[0x9C9E] = "spring;varnish".encode("utf-16-le")
    Image.new("RGB", (40, 40), "white").save(made, "JPEG", exif=exif, xmp=XMP.encode())
    data = made.getvalue()
    data = data[:2] + iptc((120, "Gemalt im März".encode()), (25, b"harbour"), (25, b"oak"), (101, b"Norway")) + data[2:]
    text = read(sandbox, data, "a.jpg").text
    assert text.endswith(
        "Title: The boat below the bridge\nCaption: Painted in May, Gemalt im März\n"
        "Keywords: harbour, spring, oak, varnish\nPeople: Ana Ruiz, Bo Lind\nPlace: Bergen, Norway\n"
    )


def test_a_description_that_a_camera_wrote_is_no_caption(sandbox: Sandbox) -> None:
    made = io.BytesIO()
    exif = Image.Exif()
    exif[ExifTags.Base.ImageDescription] = "OLYMPUS DIGITAL CAMERA         "
    Image.new("RGB", (40, 40), "white").save(made, "JPEG", exif=exif)
    assert "Caption" not in read(sandbox, made.getvalue(), "a.jpg").text


def test_a_png_and_a_picture_that_nothing_recognises(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    made = io.BytesIO()
    said = PngInfo()
    said.add_itxt("Description", "The heron at the weir")
    said.add_text("Software", "GIMP")
    Image.new("RGB", (400, 300), "white").save(made, "PNG", pnginfo=said)
    found = read(sandbox, made.getvalue(), "a.png")
    assert "Caption: The heron at the weir\n" in found.text
    assert "GIMP" not in found.text
    assert found.needs == ("" if ocr.is_available() else "ocr")
