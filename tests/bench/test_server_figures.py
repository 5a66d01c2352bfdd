"""What the docs say of the server is computed from recorded runs of `memdir bench server`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "server_figures.py"


def test_what_a_processor_carries_follows_from_what_an_item_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = [
        {"name": "sqlite.get_16_server_cpu", "value": 0.5},
        {"name": "postgres.put_16_server_cpu", "value": 2.0},
        {"name": "sqlite.pipeline_cpu", "value": 70.0},
        {"name": "sqlite.document_100000_disk", "value": 2048.0},
        {"name": "sqlite.search_16_server_cpu", "value": None},
        {"name": "sqlite.put_16_rate", "value": 612.0, "unit": "1/s", "goal": 500, "met": True},
        {"name": "sqlite.put_16_p50", "value": 20.0},
        {"name": "sqlite.put_16_p95", "value": 31.25},
        {"name": "sqlite.put_16_p99", "value": 40.0},
    ]
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        import server_figures
    finally:
        sys.path.remove(str(SCRIPT.parent))
    for page, begin in (("benchmarks.md", server_figures.FIGURES), ("scale.md", server_figures.CAPACITY)):
        (tmp_path / page).write_text(f"before\n{begin}\nold\n<!-- end -->\nafter\n<!-- end -->\n")
    run = tmp_path / "run.json"
    run.write_text(json.dumps({"figures": figures}))
    monkeypatch.setattr(server_figures, "DOCS", tmp_path)
    assert server_figures.main([str(run)]) == 0
    made = (tmp_path / "scale.md").read_text()
    assert "| get | sqlite | 0.50 ms | 1,400 a second |" in made
    assert "| put | postgres | 2.00 ms | 350 a second |" in made
    assert "| document through the pipeline | sqlite | 70 ms | 36,000 an hour |" in made
    assert "2.0 KiB each" in made
    assert "search" not in made
    assert "old" not in made
    assert made.endswith("<!-- end -->\nafter\n<!-- end -->\n")
    reported = (tmp_path / "benchmarks.md").read_text()
    assert "| `sqlite.put_16_rate` | 612 1/s | 500 | yes |" in reported
    assert "| put | sqlite |  | 612/s, 20 / 31.2 / 40 ms |  |" in reported
    assert subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, check=False).returncode == 2
