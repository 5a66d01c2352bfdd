"""Tables of this machine's manuals (HTML in /usr/share/doc), printed to PDF by Chromium: which rows are read as they are."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from memdir_bench.figures import Figure

_DOCS: Final = Path("/usr/share/doc")
_FILE_MAX_BYTES: Final = 200_000
_ROWS_MIN, _COLUMNS_MIN = 4, 3
_PRINT_MAX_S: Final = 60

Row = tuple[str, ...]


def figures(read: Callable[[bytes, str], str], count: int) -> Iterable[Figure]:
    """Of `count` files drawn at random; none without Chromium, lxml or such files. `read` gives the text of a file's bytes."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    found = rows = wrong = 0
    with tempfile.TemporaryDirectory(prefix="memdir-bench-") as folder:
        for tables in _printed(browser, Path(folder), read, count) if browser else ():
            wanted, known, got = tables
            rows += len(wanted)
            found += sum(row in got for row in wanted)
            wrong += sum(row not in known for row in got)
    if rows:
        note = f"rows of {rows:,} in tables of {_COLUMNS_MIN} columns and more, in {count} manuals printed by Chromium"
        yield Figure(name="pdf.printed_rows", value=found / rows, unit="share", samples=rows, better="higher", note=note)
        yield Figure(
            name="pdf.printed_rows_wrong", value=wrong / rows, unit="share", samples=rows, note="rows that no table has"
        )


def _printed(
    browser: str, folder: Path, read: Callable[[bytes, str], str], count: int
) -> Iterator[tuple[list[Row], set[Row], list[Row]]]:
    """Of each file: the rows that are looked for, all rows, and those in the text of the PDF."""
    paths = sorted(path for path in _DOCS.rglob("*.html") if path.is_file() and path.stat().st_size <= _FILE_MAX_BYTES)
    random.Random(7).shuffle(paths)  # noqa: S311  no secret
    for path in paths:
        tables = _tables(path)
        wanted = [row for table in tables if _is_plain(table) for row in table]
        if not wanted:
            continue
        made = folder / "a.pdf"
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", f"--print-to-pdf={made}"]
        subprocess.run([browser, *options, path.as_uri()], capture_output=True, timeout=_PRINT_MAX_S, check=False)
        if made.exists():
            lines = [line for line in read(made.read_bytes(), "a.pdf").split("\n") if re.fullmatch(r"\|.*[^|\s-].*\|", line)]
            got = [tuple(map(_plain, re.split(r"(?<!\\)\|", line[1:-1]))) for line in lines]
            yield wanted, {row for table in tables for row in table}, got
            made.unlink()
            count -= 1
        if not count:
            return


def _tables(path: Path) -> list[list[Row]]:
    from lxml import html

    tree: Any = html.fromstring(path.read_bytes() or b"<p>")
    inner = (table for table in tree.iter("table") if table.find(".//table") is None)
    return [
        [tuple(_plain(cell.text_content()) for cell in row if cell.tag in ("td", "th")) for row in table.iter("tr")]
        for table in inner
    ]


def _is_plain(table: list[Row]) -> bool:
    return len(table) >= _ROWS_MIN and len(table[0]) >= _COLUMNS_MIN and len({len(row) for row in table}) == 1


def _plain(cell: str) -> str:
    return re.sub(r"[\s\u00ad\u200b\x02]+", "", unicodedata.normalize("NFKC", cell.replace("\\|", "|")))
