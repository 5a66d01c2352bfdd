"""The files that scripts are tried on: what an agent finds in a folder of notes, code and data."""

from __future__ import annotations

import json
from typing import Final

_LEVELS: Final = ("INFO", "WARN", "ERROR", "INFO", "DEBUG")
_USERS: Final = ("ann", "bo", "cy")
_PEOPLE: Final = (("Ann", 34, "Rome"), ("Bo", 28, "Oslo"), ("Cy", 45, "Rome"))


def _log() -> str:
    lines = [
        f"2024-03-{i % 28 + 1:02d} 10:{i:02d}:00 {_LEVELS[i % 5]} user={_USERS[i % 3]} code={200 + i * 7} took {i * 13 % 97}ms"
        for i in range(40)
    ]
    return "\n".join(lines) + "\n"


def _json() -> str:
    people = [{"name": name, "age": age, "city": city} for name, age, city in _PEOPLE]
    return json.dumps({"users": people, "version": 2, "ok": True, "none": None}, indent=2) + "\n"


FILES: Final[dict[str, str]] = {
    "README.md": "# Readme of the project\n\nIt reads a file and a table.\nSee src for the code\n",
    "notes/todo.md": "# Todo\n\n- [ ] TODO write tests\n- [x] fix the bug\n\n\n- buy milk\n",
    "notes/meeting one.md": "Meeting about tokens\nalice and bob\nTODO call carol\n",
    "src/main.py": (
        "import os\nimport sys\n\n\ndef main():\n    # TODO: arguments\n    print('hello')\n\n\n"
        "def other(a, b):\n    return a + b\n"
    ),
    "src/util.py": "import os\n\ndef helper(x):\n    return x * 2\n\nclass Foo:\n    def method(self):\n        pass\n",
    "src/pkg/__init__.py": "",
    "src/pkg/mod.py": "from src import util\n\ndef run():\n    return util.helper(3)\n",
    "data/words.txt": "banana\napple\ncherry\napple\none\nTwo\nthree\n",
    "data/numbers.txt": "10\n9\n100\n-3\n2.5\n10\n",
    "data/users.csv": "id,name,age,city\n1,alice,30,paris\n2,bob,25,rome\n3,carol,41,paris\n4,dave,35,oslo\n",
    "data/table.tsv": "name\tqty\tprice\nnut\t3\t1.50\nbolt\t12\t0.25\ngear\t1\t9.99\n",
    "data/sizes.txt": "10K\n1M\n512\n2G\n9K\n",
    "data/versions.txt": "v1.10\nv1.9\nv1.2.3\nv2.0\n",
    "data/paths.txt": "/usr/bin\n/etc/a.b/c\naxb\n",
    "data/conf.ini": "# comment\nhost=example\nport=8080\n\n# more\nuser=alice\n",
    "data/left.txt": "a 1\nb 2\nc 3\nd 4\n",
    "data/right.txt": "b x\nc y\ne z\n",
    "data/data.json": _json(),
    "data/conf.yaml": "name: shop\nport: 8080\ntags:\n  - a\n  - b\ndb:\n  host: local\n  on: true\n",
    "logs/app.log": _log(),
    "logs/old.log": "old line\nERROR old\n",
    "empty.txt": "",
}
"""Path -> contents."""
MODIFIED_S: Final = 1_700_000_000
"""When all of them were last changed."""
