"""Words in drawings, and what arrows lead from where: SVG, draw.io, Excalidraw."""

from __future__ import annotations

import base64
import json
import zlib
from urllib.parse import quote

import pytest

from memdir.ingest.sandbox import Sandbox
from tests.ingest.reading import read

pytestmark = pytest.mark.promise("extract.kinds")

SVG = """<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand --><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/svg11.dtd" [<!ENTITY x "y">]>
<svg xmlns="http://www.w3.org/2000/svg" width="10"><title>Plan of the quay</title><style>.a { fill: red }</style>
<g id="text_1"><!-- Accuracy --><path d="M 1 2 3 4 5 6"/></g>
<text x="1"><tspan x="1" y="2">Crane</tspan><tspan x="1" y="9">north</tspan></text>
<text>un<tspan font-weight="bold">bel</tspan>ievable</text><text>Crane north</text>
<switch><foreignObject><div xmlns="http://www.w3.org/1999/xhtml">Berth 4 <b>open</b></div></foreignObject><text>Berth 4</text>
</switch>
<desc>For visitors</desc></svg>
"""
CELLS = """<mxGraphModel dx="1"><root><mxCell id="0"/><mxCell id="1" parent="0"/>
<mxCell id="2" value="Web &lt;b&gt;server&lt;/b&gt;&lt;br&gt;nginx" style="html=1" vertex="1" parent="1"/>
<mxCell id="3" value="Data &amp;amp; logs" vertex="1" parent="1"/>
<object label="Queue" id="5"><mxCell vertex="1" parent="1"/></object>
<mxCell id="4" value="SQL" edge="1" source="2" target="3" parent="1"/><mxCell id="6" edge="1" source="2" target="5" parent="1"/>
</root></mxGraphModel>"""
CELLS_SAID = "Web server nginx\nData & logs\nQueue\nWeb server nginx → Data & logs: SQL\nWeb server nginx → Queue"
EXCALIDRAW = {
    "type": "excalidraw",
    "version": 2,
    "elements": [
        {"id": "a", "type": "rectangle"},
        {"id": "b", "type": "text", "text": "Web\nserver", "originalText": "Web server", "containerId": "a"},
        {"id": "c", "type": "text", "text": "Data"},
        {"id": "d", "type": "arrow", "startBinding": {"elementId": "a"}, "endBinding": {"elementId": "c"}},
        {"id": "e", "type": "text", "text": "reads", "containerId": "d"},
        {"id": "f", "type": "text", "text": "gone", "isDeleted": True},
    ],
}


def test_svg(sandbox: Sandbox) -> None:
    found = read(sandbox, SVG.encode(), "quay.svg")
    assert (found.kind, found.title) == ("image", "Plan of the quay")
    assert found.text.split("\n") == [
        "Plan of the quay", "Accuracy", "Crane north", "unbelievable", "Berth 4 open", "For visitors", "",
    ]  # fmt: skip


def test_drawio_packed_and_plain(sandbox: Sandbox) -> None:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = base64.b64encode(deflate.compress(quote(CELLS).encode()) + deflate.flush()).decode()
    pages = f'<diagram name="Overview">{packed}</diagram><diagram name="Plain">{CELLS}</diagram><diagram name="Bad">!</diagram>'
    found = read(sandbox, f'<mxfile host="app.diagrams.net">{pages}</mxfile>'.encode(), "net.drawio")
    assert found.text == f"## Overview\n\n{CELLS_SAID}\n\n## Plain\n\n{CELLS_SAID}\n\n## Bad\n"
    assert found.facts["unread"] == "page 3: it is damaged"
    assert read(sandbox, CELLS.encode(), "net.xml").text == f"{CELLS_SAID}\n"


def test_excalidraw(sandbox: Sandbox) -> None:
    found = read(sandbox, json.dumps(EXCALIDRAW, indent=2).encode(), "net.excalidraw")
    assert found.text == "Web server\nData\nWeb server → Data: reads\n"


def test_a_drawing_without_words_has_none(sandbox: Sandbox) -> None:
    assert read(sandbox, b'<svg viewBox="0 0 9 9"><path d="M0 0L9 9"/></svg>', "icon.svg").text == ""
