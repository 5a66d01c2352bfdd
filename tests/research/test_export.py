"""What a reader without the workspace gets: HTML, Markdown, DOCX, PDF."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pypdfium2
import pytest

from memdir.research import export
from memdir.research.archive import Archive, Page
from memdir.research.render import html_report
from memdir.research.workspace import Workspace

FACTS = {
    "model": "m",
    "rounds": 2,
    "sources": 1,
    "searches": 3,
    "input_tokens": 5,
    "output_tokens": 6,
    "usd": None,
    "minutes": 1.0,
    "outcome": "complete",
}
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \u2028 & \"quoted\" 'single'"
REPORT = """# Ants & <others>

Weaver ants **build** `nests()` from *leaves* {cite}. <b>No HTML</b> <script>alert(3)</script> passes.

## Größe – 大きさ

- one item {cite}
- two

| a | b |
|---|---|
| 1 | 2 {cite} |

```python
x = 1  # <tag>
```

[a link](javascript:alert(4)) and <javascript:alert(5)>

## Sources

- listed anew
"""


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture
def made(tmp_path: Path) -> tuple[str, Archive]:
    workspace = Workspace(tmp_path)
    workspace.make()
    archive = Archive(workspace)
    text = "# T\n\n" + "\n".join(f"Line {number}" for number in range(800)) + f"\n{EVIL}\nWeaver ants build nests.\n"
    source = archive.add(Page(url="https://example.org/?a=1&b=<x>", title=f"A {EVIL}", media_type="text/plain", text=text), 0)
    at = source.lines.index("Weaver ants build nests.") + 1
    return REPORT.replace("{cite}", f"[{source.path}#L{at - 1}-L{at}]"), archive


@pytest.mark.promise("research.export")
def test_the_page_stands_alone_and_lets_nothing_of_a_source_run(made: tuple[str, Archive]) -> None:
    page = html_report(*made, FACTS)
    parser = Tags()
    parser.feed(page)
    tags = [tag for tag, _attributes in parser.tags]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert "b" not in [tag for tag, _attributes in parser.tags if tag == "b"]
    assert not [
        link for _tag, attributes in parser.tags for link in attributes.values() if (link or "").startswith("javascript:")
    ]
    assert not [attributes for _tag, attributes in parser.tags if any(name.startswith("on") for name in attributes)]
    assert not re.findall(r"(?:src|href)=\"(?!https://example|#|data:)[^\"]", page)
    cites = [attributes["data-n"] for tag, attributes in parser.tags if tag == "a" and attributes.get("class") == "cite"]
    assert cites == ["1", "1", "1"]
    pages = json.loads(page.split("const pages = ")[1].split(", cites = ")[0])
    [lines] = pages.values()
    assert len(lines) < 200
    assert any(text == EVIL.replace("\u2028", "\u2028") for _number, text in lines)
    assert "price not known" in page
    assert "listed anew" not in page


@pytest.mark.promise("research.export")
def test_a_click_on_a_citation_opens_the_page_at_its_lines(made: tuple[str, Archive], tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium (apt-get install chromium)")
    page = html_report(*made, FACTS)
    hits = "[...document.querySelectorAll('#lines .hit')].map(p => p.textContent).join('|')"
    clicks = f"document.querySelector('a.cite').click(); document.title = {hits};"
    at = tmp_path / "report.html"
    at.write_text(page.replace("</script>\n</html>", f"{clicks}</script>\n</html>"))
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"file://{at}"],
        capture_output=True, timeout=120, check=True, text=True,
    )  # fmt: skip
    assert "Weaver ants build nests.</title>" in done.stdout
    assert 'class="open"' in done.stdout.partition("<aside")[2][:80]


def test_markdown_has_footnotes(made: tuple[str, Archive]) -> None:
    text = export.markdown(*made)
    assert text.count("[^1]") == 4
    assert "\n[^1]: A " in text
    assert "listed anew" not in text


@pytest.mark.promise("research.export")
def test_word_gets_headings_lists_tables_and_marks(made: tuple[str, Archive]) -> None:
    from docx import Document

    document = Document(io.BytesIO(export.docx(*made)))
    texts = [(paragraph.style.name, paragraph.text) for paragraph in document.paragraphs]
    assert ("Heading 1", "Größe – 大きさ") in texts
    assert any(style == "List Bullet" and text.startswith("one item") for style, text in texts)
    runs = [run for paragraph in document.paragraphs for run in paragraph.runs]
    assert any(run.bold and run.text == "build" for run in runs)
    assert any(run.font.superscript and run.text == "[1]" for run in runs)
    assert document.tables[0].rows[1].cells[1].text.startswith("2")
    assert texts[-1][1].startswith("[1] A ")


@pytest.mark.promise("research.export")
def test_a_pdf_holds_the_text(made: tuple[str, Archive]) -> None:
    report, archive = made
    if not Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf").exists():
        report = report.replace("大きさ", "size")
    document = pypdfium2.PdfDocument(export.pdf(report, archive))
    text = "\n".join(page.get_textpage().get_text_range() for page in document)
    document.close()
    assert "Ants & <others>" in text
    assert "Weaver ants build" in text
    assert "[1] A " in text
    assert "# <tag>" in text
