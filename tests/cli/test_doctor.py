"""`memdir doctor` on machines with something wrong. The healthy machine is in test_end_to_end."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memdir.cli.mounts import doctor_checks
from memdir.cli.mounts.doctor_checks import Check
from memdir.core.limits import MIB
from memdir.core.paths import app_paths
from memdir.daemon.registry import MountRegistry
from tests.cli.fakes import FakeMount

Run = Callable[..., tuple[int, str, str]]
Mounts = Callable[..., FakeMount]


def failing(check: Check | list[Check], status: str = "fail") -> Check:
    found = check if isinstance(check, list) else [check]
    bad = [one for one in found if one.status == status]
    assert bad, found
    assert bad[0].repair, "what fails says how to repair it"
    return bad[0]


def test_a_missing_fuse_device_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks, "_FUSE_DEVICE", tmp_path / "fuse")
    assert "modprobe fuse" in failing(doctor_checks.check_fuse_device()).repair
    (tmp_path / "fuse").write_bytes(b"")
    assert "not a device" in failing(doctor_checks.check_fuse_device()).detail


def test_a_fuse_device_that_may_not_be_opened_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    check = doctor_checks.check_fuse_device()
    monkeypatch.undo()
    assert "Permission denied" in failing(check).detail


def test_an_ordinary_user_needs_fusermount3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install -y fuse3" in failing(doctor_checks.check_mount_helper()).repair
    helper = tmp_path / "fusermount3"
    helper.write_text("#!/bin/sh\n", encoding="utf-8")
    helper.chmod(0o755)
    assert "setuid" in failing(doctor_checks.check_mount_helper()).detail


@pytest.mark.parametrize(
    ("release", "status"), [("5.10.0-1-amd64", "ok"), ("6.18.44", "ok"), ("5.9.16", "fail"), ("4.19", "fail"), ("x", "warn")]
)
def test_old_kernels_fail(release: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    assert doctor_checks.check_kernel().status == status


def test_a_readable_credentials_file_fails() -> None:
    paths = app_paths()
    assert [check.status for check in doctor_checks.check_folders(paths)] == ["ok"]
    paths.credentials_file.write_text("{}", encoding="utf-8")
    paths.credentials_file.chmod(0o644)
    assert "chmod 600" in failing(doctor_checks.check_folders(paths)).repair


def test_a_folder_that_others_may_write_to_is_a_warning() -> None:
    paths = app_paths()
    paths.data_dir.mkdir(parents=True)
    paths.data_dir.chmod(0o777)
    assert str(paths.data_dir) in failing(doctor_checks.check_folders(paths), "warn").detail


def test_a_file_in_the_place_of_a_folder_fails() -> None:
    paths = app_paths()
    paths.cache_dir.write_text("x", encoding="utf-8")
    assert str(paths.cache_dir) in failing(doctor_checks.check_folders(paths)).detail


@pytest.mark.parametrize(("free", "status"), [(50 * MIB, "fail"), (500 * MIB, "warn"), (5000 * MIB, "ok")])
def test_little_disk_space_is_said(free: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = SimpleNamespace(f_bavail=free // 4096, f_frsize=4096, f_files=10_000, f_favail=9000)
    monkeypatch.setattr(os, "statvfs", lambda path: figures)
    assert doctor_checks.check_disk(app_paths()).status == status


def test_few_inodes_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = SimpleNamespace(f_bavail=10**7, f_frsize=4096, f_files=10_000, f_favail=10)
    monkeypatch.setattr(os, "statvfs", lambda path: figures)
    assert "inodes" in failing(doctor_checks.check_disk(app_paths()), "warn").detail


def test_a_clock_in_the_past_is_a_warning(fake_mount: Mounts, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = MountRegistry(app_paths())
    assert doctor_checks.check_clock(registry).status == "ok"
    monkeypatch.setattr("memdir.cli.mounts.doctor_checks.time.time", lambda: 1_000_000.0)
    assert doctor_checks.check_clock(registry).status == "warn"


def test_dead_mounts_damaged_records_and_parked_changes_are_warnings(fake_mount: Mounts) -> None:
    dead = fake_mount("dead")
    dead.die()
    fake_mount("busy", status=lambda args: {"parked": 2, "uptime_s": 1})
    broken = Path(dead.record.cache_dir).parent / "broken"
    broken.mkdir()
    (broken / "mount.json").write_text("[]", encoding="utf-8")
    found = doctor_checks.check_mounts(MountRegistry(app_paths()))
    assert {check.status for check in found} == {"warn"}
    text = "\n".join(f"{check.detail} {check.repair}" for check in found)
    for part in ("memdir mount dead", "memdir recover dead", str(broken), "busy: 2 changes parked"):
        assert part in text


def test_a_mount_that_does_not_answer_fails(fake_mount: Mounts) -> None:
    fake_mount()
    assert "--force" in failing(doctor_checks.check_mounts(MountRegistry(app_paths()))).repair


def test_models_that_do_not_load_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    from memdir.core.errors import MemdirError
    from memdir.retrieval.embed import static

    def broken(self: object) -> None:
        raise MemdirError("the file is damaged", hint="install it again")

    monkeypatch.setattr(static.StaticEmbedder, "__init__", broken)
    check = failing(doctor_checks.check_models(app_paths()))
    assert (check.detail, check.repair) == ("the file is damaged", "install it again")


def test_a_server_that_cannot_be_reached_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_SERVER_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MEMDIR_API_KEY", "md_x")
    check, _, started = doctor_checks.check_server(app_paths())
    assert failing(check)
    assert not started


@pytest.mark.mount
def test_quick_is_the_machine_only_and_0_when_all_is_well(run: Run) -> None:
    code, out, _ = run("doctor", "--quick", "--json")
    report = json.loads(out)
    assert (code, report["ok"], report["failed"]) == (0, True, 0), report
    assert [check["name"] for check in report["checks"]] == [
        "fuse device", "mount helper", "kernel", "folders", "disk", "clock", "mounts",
    ]  # fmt: skip


def test_a_warning_is_1_and_a_failure_2(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    warning = Check(name="kernel", status="warn", detail="old \x1b[2J", repair="renew it")
    monkeypatch.setattr(doctor_checks, "check_kernel", lambda: warning)
    code, out, _ = run("doctor", "--quick")
    assert code == 1
    assert "warn  kernel        old \\x1b[2J\n" in out
    assert "repair: renew it" in out
    assert "nothing failed, 1 of 7" in out
    monkeypatch.setattr(
        doctor_checks, "check_disk", lambda paths: Check(name="disk", status="fail", detail="full", repair="free some")
    )
    code, out, _ = run("doctor", "--quick")
    assert code == 2
    assert "1 of 7 checks failed" in out


def test_a_check_that_breaks_is_a_failure_and_the_others_still_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise ZeroDivisionError("bug")

    monkeypatch.setattr(doctor_checks, "check_kernel", broken)
    code, out, _ = run("doctor", "--quick")
    assert code == 2
    assert "could not be checked: ZeroDivisionError: bug" in out
    assert "ok    mounts" in out


@pytest.mark.mount
def test_the_device_of_this_machine_is_fine() -> None:
    assert stat.S_ISCHR(os.stat("/dev/fuse").st_mode)
    assert doctor_checks.check_fuse_device().status == "ok"
