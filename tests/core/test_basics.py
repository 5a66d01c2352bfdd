"""Ids, times, folders and logs."""

from __future__ import annotations

import logging
import stat
import tempfile
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock, iso_ms
from memdir.core.errors import UsageError
from memdir.core.ids import new_id, new_secret
from memdir.core.log import log_to_file
from memdir.core.paths import app_paths, ensure_private_dir, write_private


def test_ids_are_distinct_and_26_characters_long_and_sort_as_they_were_made() -> None:
    ids = [new_id() for _ in range(2000)]
    assert len(set(ids)) == 2000
    assert {len(value) for value in ids} == {26}
    assert sorted(ids) == ids


def test_secrets_carry_their_prefix_and_256_bits() -> None:
    assert new_secret("md").startswith("md_")
    assert len(new_secret("md")) == 3 + 43


def test_wire_time_is_utc_with_milliseconds() -> None:
    assert iso_ms(0) == "1970-01-01T00:00:00.000Z"
    assert iso_ms(1_795_300_000_007) == "2026-11-21T22:26:40.007Z"


def test_a_fake_clock_moves_only_when_told() -> None:
    clock = FakeClock(now_ns=5)
    assert (clock.now_ns(), clock.monotonic_s()) == (5, 0.0)
    clock.advance(1.5)
    assert (clock.now_ns(), clock.monotonic_s()) == (1_500_000_005, 1.5)


def test_everything_moves_under_memdir_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path))
    paths = app_paths()
    assert paths.server_dir == tmp_path / "data" / "server"
    assert paths.credentials_file == tmp_path / "config" / "credentials.json"


def test_a_relative_memdir_home_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_HOME", "here")
    with pytest.raises(UsageError, match="absolute"):
        app_paths()


def test_several_homes_may_share_their_derived_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_MODELS_DIR", str(tmp_path))
    assert app_paths().models_dir == tmp_path
    monkeypatch.setenv("MEMDIR_MODELS_DIR", "here")
    with pytest.raises(UsageError, match="absolute"):
        _ = app_paths().models_dir
    monkeypatch.delenv("MEMDIR_MODELS_DIR")
    assert app_paths().models_dir == app_paths().cache_dir / "models"


def test_relative_xdg_values_are_ignored_as_the_specification_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMDIR_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert app_paths().data_dir == tmp_path / ".local" / "share" / "memdir"


def test_sockets_stay_short_when_the_home_is_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / ("deep" * 30)))
    runtime = app_paths().runtime_dir
    assert len(str(runtime)) <= 80
    assert app_paths().runtime_dir == runtime


def test_sockets_fit_even_when_the_temporary_folder_is_deep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("t" * 100)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    monkeypatch.setenv("MEMDIR_HOME", str(deep / "home"))
    assert len(str(app_paths().runtime_dir)) <= 80
    assert app_paths().runtime_dir == app_paths().runtime_dir


def test_a_private_folder_is_closed_to_others_and_a_link_is_refused(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir(mode=0o755)
    assert stat.S_IMODE(ensure_private_dir(loose).stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(loose)
    with pytest.raises(UsageError, match="not a folder of this user"):
        ensure_private_dir(tmp_path / "link")


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "sub" / "file.json"
    write_private(target, b"one")
    write_private(target, b"two")
    assert target.read_bytes() == b"two"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [entry.name for entry in target.parent.iterdir()] == ["file.json"]


def test_keys_never_reach_a_log_file(tmp_path: Path) -> None:
    root = logging.getLogger("memdir")
    before, level = list(root.handlers), root.level
    log_to_file(tmp_path / "a.log")
    try:
        secret = new_secret("md")
        logging.getLogger("memdir.test").warning("header %s", f"Bearer {secret}")
        try:
            raise ValueError(f"bad key {secret}")
        except ValueError:
            logging.getLogger("memdir.test").exception("refused")
        text = (tmp_path / "a.log").read_text()
    finally:
        root.setLevel(level)
        for handler in [handler for handler in root.handlers if handler not in before]:
            root.removeHandler(handler)
            handler.close()
    assert secret not in text
    assert "md_[redacted]" in text
    assert stat.S_IMODE((tmp_path / "a.log").stat().st_mode) == 0o600
