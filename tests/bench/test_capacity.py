"""The capacity table is computed from a recorded run of `memdir bench server`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "capacity.py"


def test_what_a_processor_carries_follows_from_what_an_item_costs(tmp_path: Path) -> None:
    figures = [
        {"name": "sqlite.get_16_server_cpu", "value": 0.5},
        {"name": "postgres.put_16_server_cpu", "value": 2.0},
        {"name": "sqlite.pipeline_cpu", "value": 70.0},
        {"name": "sqlite.pipeline_disk", "value": 2048.0},
        {"name": "sqlite.search_16_server_cpu", "value": None},
    ]
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"figures": figures}))
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        import capacity

        made = capacity.table({str(one["name"]): float(str(one["value"])) for one in figures if one["value"] is not None})
    finally:
        sys.path.remove(str(SCRIPT.parent))
    assert "| get | sqlite | 0.50 ms | 1,400 a second |" in made
    assert "| put | postgres | 2.00 ms | 350 a second |" in made
    assert "| document through the pipeline | sqlite | 70 ms | 36,000 an hour |" in made
    assert "2.0 KiB each" in made
    assert "search" not in made
    assert subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, check=False).returncode == 2
