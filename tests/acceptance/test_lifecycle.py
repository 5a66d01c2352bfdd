"""Mounting and ending, on purpose and by force: what was acknowledged is there afterwards, and nothing is left behind."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.driver import Memdir, eventually, is_mounted, kill, mounts_below, tree_of, wait_for_exit

pytestmark = pytest.mark.mount

WRITER = """
import os, sys
folder = sys.argv[1]
for number in range(100000):
    path = f"{folder}/d{number % 7}/f{number}.bin"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = (f"{number} " * (1 + number % 4000)).encode()
    with open(path + ".tmp", "wb") as out:
        out.write(data)
    os.rename(path + ".tmp", path)
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def content_of(number: int) -> bytes:
    return (f"{number} " * (1 + number % 4000)).encode()


@pytest.mark.promise("mount.default-path", "mount.within-2s", "mount.starts-server")
def test_mount_is_quick_and_brings_the_server(memdir: Memdir, name: str) -> None:
    elapsed = []
    for _ in range(3):  # the machine may be busy once; it is not busy three times
        started = time.monotonic()
        place = memdir.mount(name)
        elapsed.append(time.monotonic() - started)
        (place / "probe").write_text("usable")
        memdir.run("sync", name, "--wait")
        assert memdir.run("server", "status", "--json").json()["running"] is True
        memdir.run("unmount", name)
    assert place == memdir.folder / name
    assert min(elapsed) < 2.0


@pytest.mark.promise("mount.private-server", "cli.server-status")
def test_the_server_is_private(memdir: Memdir, notes: Path) -> None:
    (notes / "a.md").write_text("something")
    memdir.run("sync", notes, "--wait")
    status = memdir.run("server", "status", "--json").json()
    assert status.keys() >= {"url", "pid", "data_dir", "version"}
    assert status["url"].startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{status['url']}/v3/session", timeout=10)
    refused.value.close()
    assert refused.value.code == 401
    open_to_others = [
        path
        for path in memdir.home.rglob("*")
        if not path.is_symlink() and path.name in {"credentials.json", "server.json", "memdir.db", "cache.db", "sync.db"}
        and stat.S_IMODE(path.stat().st_mode) & 0o077 and stat.S_IMODE(path.parent.stat().st_mode) & 0o077
    ]  # fmt: skip
    assert open_to_others == []


@pytest.mark.promise("cli.status", "cli.list")
def test_status_and_list_say_what_is_mounted(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    status = memdir.status(name)
    assert status.keys() >= {"name", "path", "pid", "uptime_s", "queue_length", "server"}
    assert (status["name"], status["path"]) == (name, str(place))
    assert status["uptime_s"] >= 0
    os.kill(status["pid"], 0)
    assert [entry["path"] for entry in memdir.run("list", "--json").json() if entry["name"] == name] == [str(place)]
    memdir.run("unmount", name)
    assert [entry for entry in memdir.run("list", "--json").json() if entry["name"] == name] == []


@pytest.mark.promise("cli.sync", "cli.logs", "cli.server")
def test_sync_logs_and_server_answer_in_json(memdir: Memdir, notes: Path) -> None:
    for number in range(20):
        (notes / f"{number}.md").write_text(f"Entry {number} of the diary.")
    synced = memdir.run("sync", notes, "--wait", "--json").json()
    assert synced["queue_length"] == 0
    assert memdir.run("logs", notes, "--json").json() is not None
    memdir.run("server", "stop")
    assert memdir.run("server", "status", "--json", expect=1).json()["running"] is False
    memdir.run("server", "start")
    (notes / "after.md").write_text("The umbrella stands behind the wardrobe.")
    memdir.run("sync", notes, "--wait")
    assert memdir.hits("where is protection from rain", notes)[0]["path"].endswith("after.md")


@pytest.mark.promise("mount.path")
def test_another_place(memdir: Memdir, name: str, tmp_path: Path) -> None:
    place = tmp_path / "with space" / "here"
    memdir.mount(name, "--path", place)
    (place / "a.md").write_text("there")
    memdir.run("unmount", place)
    assert not is_mounted(place)


@pytest.mark.promise("mount.refuse-non-empty")
def test_a_folder_with_files_is_refused_and_left_alone(memdir: Memdir, name: str) -> None:
    place = memdir.folder / name
    place.mkdir()
    (place / "mine.txt").write_text("mine")
    refused = memdir.run("mount", name, expect=2)
    assert "not empty" in refused.err
    assert "--import" in refused.err
    assert not is_mounted(place)
    assert (place / "mine.txt").read_text() == "mine"


@pytest.mark.promise("mount.import", "mount.import-skips")
def test_import_copies_and_lists_what_it_skips(memdir: Memdir, name: str) -> None:
    place = memdir.folder / name
    (place / "build").mkdir(parents=True)
    (place / "drafts").mkdir()
    (place / ".gitignore").write_text("build/\n")
    (place / ".memdirignore").write_text("drafts/*.tmp\n")
    (place / "build" / "out.o").write_text("object")
    (place / "drafts" / "a.tmp").write_text("scratch")
    (place / "drafts" / "a.md").write_text("The spare key hangs at the bakery.")
    (place / "deploy.env").write_text("AWS_ACCESS_KEY_ID=" + "AKIA" + "Q3EGRTV7XKJ2MNBP" + "\n")
    answer = memdir.run("mount", name, "--import", "--json").json()
    skipped = {entry["path"].strip("/"): entry["reason"] for entry in answer["import"]["skipped"]}
    assert is_mounted(place)
    assert set(tree_of(place)) == {".gitignore", ".memdirignore", "drafts/a.md"}
    assert skipped.keys() >= {"drafts/a.tmp", "deploy.env"}
    assert any(path.startswith("build") for path in skipped)
    assert memdir.hits("how do I get in when locked out", place)[0]["path"].endswith("drafts/a.md")
    memdir.run("unmount", name)
    assert (place / "build" / "out.o").read_text() == "object"


@pytest.mark.promise("mount.no-sync", "grep.offline-marked")
def test_no_sync_keeps_everything_local(tmp_path: Path) -> None:
    runner = Memdir(folder=tmp_path.resolve(), home=tmp_path.resolve() / "home")
    try:
        place = runner.mount("local", "--no-sync")
        (place / "keys.md").write_text("The spare key hangs at the bakery downstairs.\n")
        ran = runner.run("grep", "spare key", place, "--json")
        assert [hit["kind"] for hit in ran.json()] == ["pending"]
        assert ran.err != ""
        assert runner.run("server", "status", "--json", expect=1).json()["running"] is False
        assert runner.status("local")["queue_length"] == 0
    finally:
        runner.close()


@pytest.mark.promise("mount.sigterm")
def test_sigterm_unmounts_cleanly(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    (place / "a.md").write_text("kept")
    kill(memdir.status(name)["pid"], signal.SIGTERM, timeout_s=40)
    assert not is_mounted(place)
    memdir.mount(name)
    assert (place / "a.md").read_text() == "kept"
    memdir.run("unmount", name)


@pytest.mark.promise("mount.foreground", "mount.ctrl-c")
def test_ctrl_c_ends_a_foreground_mount_cleanly(memdir: Memdir, name: str) -> None:
    place = memdir.folder / name
    with subprocess.Popen(
        [sys.executable, "-m", "memdir.cli", "mount", name, "--foreground"],
        cwd=memdir.folder,
        env=memdir.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stderr is not None
        heard = b""
        deadline = time.monotonic() + 20
        while not is_mounted(place) and time.monotonic() < deadline:  # what it logs wakes us; else look again after 0.2 s
            if select.select([child.stderr], [], [], 0.2)[0]:
                heard += os.read(child.stderr.fileno(), 65536)
        assert is_mounted(place), heard.decode("utf-8", "replace")
        (place / "a.md").write_text("kept")
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=40)
        assert child.returncode in (0, 130)
    assert not is_mounted(place)


@pytest.mark.promise("mount.after-kill")
def test_a_mount_goes_on_after_its_daemon_was_killed(memdir: Memdir, name: str) -> None:
    place = memdir.mount(name)
    (place / "deep").mkdir()
    for number in range(50):
        (place / "deep" / f"{number}.md").write_text(f"Entry {number}: the umbrella stands behind the wardrobe.")
    before = tree_of(place)
    kill(memdir.status(name)["pid"])
    assert place in mounts_below(place)  # dead, still in the kernel's table
    memdir.mount(name)
    assert tree_of(place) == before
    memdir.run("sync", name, "--wait")
    assert memdir.hits("where is protection from rain", place) != []
    memdir.run("unmount", name)


@pytest.fixture
def writer(memdir: Memdir, notes: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes into the mount and says, file by file, what was acknowledged."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(notes)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as child:
        yield child
        child.kill()


@pytest.mark.parametrize("after", [1, 40, 300])
@pytest.mark.promise("files.acknowledged")
def test_no_acknowledged_byte_is_lost_when_the_daemon_is_killed_during_a_copy(
    memdir: Memdir, notes: Path, writer: subprocess.Popen[bytes], after: int
) -> None:
    assert writer.stdout is not None
    pid = memdir.status(notes.name)["pid"]
    acknowledged = [int(writer.stdout.readline()) for _ in range(after)]
    os.kill(pid, signal.SIGKILL)
    acknowledged += [int(line) for line in writer.stdout.read().split()]  # what was said before the mount died
    wait_for_exit(pid, 20)
    writer.wait(timeout=20)
    findings = memdir.run("fsck", notes.name, "--json", expect=(0, 1))
    assert findings.code == 0, findings.out
    memdir.mount(notes.name)
    lost = [
        number for number in acknowledged if (notes / f"d{number % 7}" / f"f{number}.bin").read_bytes() != content_of(number)
    ]
    assert lost == []
    assert len(acknowledged) >= after


@pytest.mark.promise("mount.xdg")
def test_data_lives_in_the_xdg_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.mktemp("x").resolve()  # short: a socket's path has 107 bytes
    runner = Memdir(folder=base, home=base / "unused")
    del runner.env["MEMDIR_HOME"]
    for variable, folder in {"HOME": "h", "XDG_CONFIG_HOME": "c", "XDG_DATA_HOME": "d", "XDG_STATE_HOME": "s",
                             "XDG_CACHE_HOME": "k", "XDG_RUNTIME_DIR": "r"}.items():  # fmt: skip
        (base / folder).mkdir(mode=0o700)
        runner.env[variable] = str(base / folder)
    try:
        place = runner.mount("notes")
        (place / "a.md").write_text("The umbrella stands behind the wardrobe.")
        runner.run("sync", "notes", "--wait")
        made = {folder for folder in "hcdskr" if list((base / folder).iterdir())}
        assert made >= {"c", "d", "s", "r"}
        assert "h" not in made
        assert list((base / "d" / "memdir").rglob("cache.db")) != []
    finally:
        runner.close()


@pytest.mark.promise("cli.doctor", "cli.doctor-live")
def test_the_doctor_checks_everything_and_cleans_up(memdir: Memdir) -> None:
    answer = memdir.run("doctor", "--json", expect=(0, 1), limit_s=120).json()
    checks = {check["name"]: check for check in answer["checks"]}
    assert [name for name, check in checks.items() if check["status"] == "fail"] == []
    for word in ("fuse", "server", "disk", "model", "folder"):
        assert any(word in f"{name} {check['detail']}".casefold() for name, check in checks.items()), word
    assert checks["round trip"]["status"] == "ok"
    assert "found by meaning" in checks["round trip"]["detail"]
    assert [entry for entry in memdir.run("list", "--json").json() if "doctor" in entry["name"]] == []


@pytest.mark.promise("read-only.follows")
def test_a_read_only_mount_follows_what_another_one_writes(memdir: Memdir, notes: Path, tmp_path: Path) -> None:
    (notes / "a.md").write_text("first")
    memdir.run("sync", notes, "--wait")
    reader = memdir.mount(notes.name, "--path", tmp_path / "reader", "--read-only")
    eventually(lambda: (reader / "a.md").exists() and (reader / "a.md").read_text() == "first", "the file arrives")
    (notes / "a.md").write_text("second")
    eventually(lambda: (reader / "a.md").read_text() == "second", "its change arrives")
    with pytest.raises(OSError, match="Read-only"):
        (reader / "b.md").write_text("refused")
    memdir.run("unmount", reader)
