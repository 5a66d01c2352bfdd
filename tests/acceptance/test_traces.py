"""`memdir mount --traces`, `memdir traces`, `memdir habits`: a real mount, real tools, and a watched folder."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memdir.traces.events import applied
from tests.acceptance.driver import Memdir, eventually

PYTHON = (
    "import os, shutil, pathlib\n"
    "pathlib.Path('py.txt').write_text('one\\ntwo\\n')\n"
    "shutil.copy('py.txt', 'py-copy.txt')\n"
    "with open('py.txt', 'a') as f: f.write('three\\n')\n"
    "open('save.tmp', 'w').write('one\\n2\\nthree\\n'); os.replace('save.tmp', 'py.txt')\n"
    "shutil.move('py-copy.txt', 'sub/py-copy.txt')\n"
    "os.makedirs('tree/a/b'); pathlib.Path('tree/a/b/f.txt').write_text('x')\n"
    "shutil.rmtree('tree')\n"
)
SCRIPTS: list[tuple[str, list[tuple[str, str]]]] = [
    ("mkdir -p sub/deep", [("dir_create", "/sub"), ("dir_create", "/sub/deep")]),
    ("echo hello > a.md", [("file_write", "/a.md")]),
    ("for i in 1 2 3; do echo $i > n$i.txt; done", [("file_write", f"/n{i}.txt") for i in (1, 2, 3)]),
    ("cat a.md", [("file_read", "/a.md")]),
    ("mv n1.txt n2.txt n3.txt sub/", [("file_move", f"/sub/n{i}.txt") for i in (1, 2, 3)]),
    ("mv a.md b.md", [("file_rename", "/b.md")]),
    ("cp b.md sub/b.md", [("file_copy", "/sub/b.md")]),
    ("cp b.md b.md.bak", [("file_copy", "/b.md.bak")]),
    ("sed -i s/hello/goodbye/ b.md", [("file_edit", "/b.md")]),
    ("echo more >> b.md", [("file_edit", "/b.md")]),
    ("rm sub/n1.txt sub/n2.txt", [("file_delete", "/sub/n1.txt"), ("file_delete", "/sub/n2.txt")]),
    ("rmdir sub/deep", [("file_delete", "/sub/deep")]),
    ("ls sub", [("file_browse", "/sub")]),
    ("truncate -s 3 b.md", [("file_edit", "/b.md")]),
    ("mv sub renamed", [("file_rename", "/renamed")]),
    ("mv renamed sub", [("file_rename", "/sub")]),
    (
        f"{sys.executable} -I PROGRAM",
        [
            ("file_write", "/py.txt"), ("file_copy", "/py-copy.txt"), ("file_edit", "/py.txt"), ("file_edit", "/py.txt"),
            ("file_move", "/sub/py-copy.txt"), ("dir_create", "/tree"), ("dir_create", "/tree/a"), ("dir_create", "/tree/a/b"),
            ("file_write", "/tree/a/b/f.txt"), ("file_delete", "/tree/a/b/f.txt"), ("file_delete", "/tree/a/b"),
            ("file_delete", "/tree/a"), ("file_delete", "/tree"),
        ],
    ),
    (
        "tar cf ../t.tar sub && mkdir out && tar xf ../t.tar -C out",
        [
            ("dir_create", "/out"), ("dir_create", "/out/sub"), ("file_write", "/out/sub/n3.txt"),
            ("file_write", "/out/sub/b.md"), ("file_write", "/out/sub/py-copy.txt"),
        ],
    ),
]  # fmt: skip
MORE: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("rsync", "rsync -a sub/ synced/", [("file_write", "/synced/n3.txt"), ("file_write", "/synced/b.md")]),
    ("git", "git init -q r && cd r && echo x > f && git add f && git mv f g", [("file_rename", "/r/g")]),
]


def recorded(memdir: Memdir) -> list[dict[str, Any]]:
    out = memdir.run("traces", "list", "--limit", "10000", "--json", expect=(0, 1)).out
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.promise("traces.complete")
def test_what_tools_do_in_a_traced_mount_is_recorded(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name, "--traces")
    program = place.parent / "program.py"
    program.write_text(PYTHON)
    wanted: list[tuple[str, str]] = []
    scripts = SCRIPTS + [(script, found) for tool, script, found in MORE if shutil.which(tool)]
    for script, found in scripts:
        memdir.shell(script.replace("PROGRAM", str(program)), cwd=place)
        wanted += found
    memdir.run("grep", "goodbye", cwd=place, expect=(0, 1))
    wanted.append(("file_search", "/"))
    eventually(lambda: any(one["type"] == "file_search" for one in recorded(memdir)), "the last event")
    events = [one for one in recorded(memdir) if one["root"] == str(place)]
    told = Counter((one["type"], one["path"]) for one in events)
    missing = [one for one, count in Counter(wanted).items() if told[one] < count]
    assert missing == [], sorted(told)
    changes = ("file_edit", "file_delete", "file_rename", "file_move", "file_copy")
    extra = [one for one in told if one[0] in changes and one not in wanted]
    assert [one for one in extra if not one[1].startswith("/r/.git")] == []
    assert {one["session"] for one in events if one["actor"]["name"]} != set()
    assert all(set(one) >= {"type", "path", "timestamp_ms", "session", "actor"} for one in events)
    assert all("/.git/" not in one["path"] for one in events), "what a repository keeps is no work of a person"
    texts: dict[str, str] = {}
    for one in events:  # the log rebuilds the files
        if one["type"] in ("file_write", "file_copy") and "content" in one:
            texts[one["path"]] = one["content"]
        elif one["type"] == "file_edit":
            texts[one["path"]] = applied(texts[one["path"]], one["delta"])
        elif one["type"] in ("file_rename", "file_move"):
            for path in [path for path in texts if path == one["old_path"] or path.startswith(one["old_path"] + "/")]:
                texts[one["new_path"] + path[len(one["old_path"]) :]] = texts.pop(path)
        elif one["type"] == "file_delete":
            texts.pop(one["path"], None)
    there = {f"/{path.relative_to(place)}" for path in place.rglob("*.*") if path.is_file() and "/.git/" not in str(path)}
    assert {path for path in there if path.endswith(("/b.md", "/py.txt"))} <= texts.keys()
    for path, text in texts.items():
        assert (place / path[1:]).read_text() == text, path
    habits = memdir.run("habits", cwd=place).out
    assert habits.startswith("## Procedural Patterns")
    assert json.loads(memdir.run("habits", "--json", cwd=place).out)["sessions"] >= 1
    assert "<svg" in _plot(memdir, place)
    memdir.run("traces", "forget", "--path", str(place / "sub"))
    assert not [one for one in recorded(memdir) if one["path"].startswith("/sub/")]
    memdir.run("traces", "pause")
    count = len(recorded(memdir))
    (place / "while-paused.md").write_text("x")
    memdir.run("unmount", name)
    assert len(recorded(memdir)) == count
    memdir.run("traces", "resume")
    memdir.run("traces", "forget", "--all")
    assert recorded(memdir) == []
    assert memdir.run("habits", expect=1).out.startswith("## Procedural Patterns")


@pytest.mark.promise("traces.complete")
def test_work_in_bulk_is_recorded_without_contents(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name, "--traces")
    for at in range(150):
        file = place / f"notes/{at:03}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"note {at} of many\n")
    memdir.shell("cp -r notes again && sed -i s/note/page/ again/*.md && rm -r again && echo done > done.md", cwd=place)
    eventually(lambda: any(one["path"] == "/done.md" for one in recorded(memdir)), "the last event")
    events = recorded(memdir)
    for kind, program in (("file_copy", "cp"), ("file_edit", "sed"), ("file_delete", "rm")):
        found = [one for one in events if one["type"] == kind and one["path"].startswith("/again/")]
        assert {one["path"] for one in found} == {f"/again/{at:03}.md" for at in range(150)}, kind
        assert {one["actor"]["name"] for one in found} == {program}
        assert all(one["is_bulk"] and "content" not in one for one in found), kind


def _plot(memdir: Memdir, place: Path) -> str:
    picture = place.parent / "drift.svg"
    memdir.run("habits", "drift", "--plot", picture, cwd=place)
    return picture.read_text()


@pytest.mark.promise("traces.watched")
def test_a_watched_folder_is_recorded(memdir: Memdir, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "a.md").write_text("one\ntwo\n")
    watcher = subprocess.Popen(
        [sys.executable, "-m", "memdir.cli", "traces", "watch", str(folder)],
        env=memdir.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert watcher.stderr is not None
        sees_reads = "Reads are seen too" in watcher.stderr.readline()
        steps = [  # one after the other: a folder that is renamed at once is not watched yet
            ("echo new > b.md", [("file_write", "/b.md")]), ("sed -i s/two/TWO/ old/a.md", [("file_edit", "/old/a.md")]),
            ("mkdir -p x/y", [("dir_create", "/x"), ("dir_create", "/x/y")]), ("mv b.md x/", [("file_move", "/x/b.md")]),
            ("mv x/b.md x/c.md", [("file_rename", "/x/c.md")]), ("rm old/a.md", [("file_delete", "/old/a.md")]),
            ("mv x z", [("file_rename", "/z")]), ("echo 1 > z/y/f.txt", [("file_write", "/z/y/f.txt")]),
        ]  # fmt: skip
        for script, wanted in steps:
            memdir.shell(script, cwd=folder)
            eventually(
                lambda wanted=wanted: (
                    {(one["type"], one["path"]) for one in recorded(memdir) if one["root"] == str(folder)}  # type: ignore[misc]
                    >= set(wanted)
                ),
                script,
            )
        if sees_reads:  # root alone is told who it was, and of what ended at once not the name
            lasting = "python3 -c 'import time; open(\"z/y/f.txt\").read(); time.sleep(2)'"
            memdir.shell(f"cat z/c.md && ls z/y && cp z/c.md z/copy.md && {lasting}", cwd=folder)
            seen = {("file_read", "/z/c.md"), ("file_browse", "/z/y"), ("file_copy", "/z/copy.md"), ("file_read", "/z/y/f.txt")}
            eventually(lambda: {(one["type"], one["path"]) for one in recorded(memdir)} >= seen, "reads in a watched folder")
            assert "python3" in {one["actor"]["name"] for one in recorded(memdir) if one["path"] == "/z/y/f.txt"}
        (edit,) = [one for one in recorded(memdir) if one["type"] == "file_edit" and one["root"] == str(folder)]
        assert applied("one\ntwo\n", edit["delta"]) == "one\nTWO\n"
    finally:
        watcher.send_signal(signal.SIGINT)
        out, _ = watcher.communicate(timeout=20)
    assert "recorded" in out
    memdir.run("traces", "forget", "--path", folder)


def test_a_published_trajectory_is_taken_over_once(memdir: Memdir, tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    rows = [
        {"event_type": "file_read", "timestamp": 1700000000 + at, "file_path": f"/d{at}.md", "session_id": "p1"}
        for at in range(9)
    ]
    file.write_text(json.dumps(rows))
    assert memdir.run("traces", "import", file).out == "9 events taken over\n"
    memdir.run("traces", "import", file, expect=1)
    assert "1 of 1 sessions agree" in memdir.run("habits", "--session", "p1").out
    file.write_text("{}")
    assert "a trajectory is a list of events" in memdir.run("traces", "import", file, expect=2).err
    memdir.run("traces", "forget", "--session", "p1")
