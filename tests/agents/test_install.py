"""`memdir init` and `memdir deinit` for agent hosts: in, and out again to the byte."""

from __future__ import annotations

import json
import os
import pty
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memdir.agents.hosts import HOSTS
from memdir.agents.installers import install, jsontext
from memdir.cli.main import main
from tests.agents.conftest import run_hook
from tests.agents.test_hook import CLAUDE_PROMPT
from tests.agents.test_jsontext import texts

Run = Callable[..., tuple[int, str, str]]
ALL = ",".join(HOSTS)

USER_FILES = {
    ".claude.json": "json", ".claude/settings.json": "json", ".claude/CLAUDE.md": "text", ".codex/config.toml": "toml",
    ".codex/hooks.json": "json", ".codex/AGENTS.md": "text", ".gemini/settings.json": "json", ".gemini/GEMINI.md": "text",
    ".cursor/mcp.json": "json", ".cursor/hooks.json": "json",
}  # fmt: skip
PROJECT_FILES = {
    ".mcp.json": "json", ".claude/settings.json": "json", "CLAUDE.md": "text", ".codex/config.toml": "toml",
    ".codex/hooks.json": "json", "AGENTS.md": "text", ".gemini/settings.json": "json", "GEMINI.md": "text",
    ".cursor/mcp.json": "json", ".cursor/hooks.json": "json",
}  # fmt: skip

_TOML = (
    "", "# only a comment", 'model = "gpt-5.5"\n', '[mcp_servers.docs]\ncommand = "npx"\nargs = ["-y", "x"]\n\n# the end',
    'a = """\n# memdir:begin x\n"""\n[features]\nhooks = true\n', "[[profiles]]\nx = 1\n[[profiles]]\nx = 2",
)  # fmt: skip
_MARKDOWN = (
    "",
    "# Rules\n",
    "no line end",
    "a\n\n\n",
    "# Other\n\n<!-- memdir:begin notes -->\nx\n<!-- memdir:end notes -->\n",
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home, with a project in it as the current folder."""
    home = Path(tempfile.mkdtemp(prefix="md-hosts-", dir=tmp_path))
    (home / "shop" / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "memdir"))
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(variable, raising=False)
    (home / "shop" / "src").mkdir()
    monkeypatch.chdir(home / "shop" / "src")
    return home


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def _write(base: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(data)


def _tree(base: Path) -> dict[str, bytes | None]:
    """Every file, and every folder (None), below `base`."""
    return {str(path.relative_to(base)): None if path.is_dir() else path.read_bytes() for path in sorted(base.rglob("*"))}


def _object(path: Path) -> Any:
    return jsontext.parse(path.read_bytes().decode("utf-8-sig")).value


contents = {
    "json": texts | st.sampled_from(["", "\n", "{}", '{"a": 1}', '{"hooks": {"Stop": [{"hooks": []}]}}\n', "{ nonsense"]),
    "toml": st.sampled_from(_TOML),
    "text": st.sampled_from(_MARKDOWN),
}


def _starting(files: dict[str, str]) -> st.SearchStrategy[dict[str, bytes]]:
    def as_bytes(text: str, crlf: bool, bom: bool) -> bytes:
        data = text.replace("\r\n", "\n").replace("\n", "\r\n" if crlf else "\n").encode()
        return (b"\xef\xbb\xbf" if bom else b"") + data

    def one(kind: str) -> st.SearchStrategy[bytes]:
        return st.builds(as_bytes, contents[kind], st.booleans(), st.booleans() if kind == "json" else st.just(False))

    return st.fixed_dictionaries({}, optional={name: one(kind) for name, kind in files.items()})


def _round_trip(home: Path, files: dict[str, bytes], *, project: bool) -> bool:
    """Whether the installation took the files; they are what they were in either case."""
    base = home / "shop" if project else home
    for path in list(home.iterdir()):
        if path.name != "shop":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in list((home / "shop").iterdir()):
        if path.name not in (".git", "src"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    _write(base, files)
    before = _tree(home)
    reach = "--project" if project else "--user"
    took = main(["init", "--agent", ALL, reach, "--yes"]) == 0
    if took:
        assert _tree(home) != before
        assert main(["init", "--agent", ALL, reach, "--check"]) == 0
        between = _tree(home)
        assert main(["init", "--agent", ALL, reach, "--yes"]) == 0
        assert _tree(home) == between
        assert main(["deinit", "--yes"]) == 0
    assert _tree(home) == before
    return took


@pytest.mark.promise("agent.deinit", "agent.init")
@pytest.mark.parametrize("project", [False, True])
def test_whatever_stood_there_is_there_again_after_deinit(place: Path, project: bool) -> None:
    taken = []

    @given(files=_starting(PROJECT_FILES if project else USER_FILES))
    @settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    def check(files: dict[str, bytes]) -> None:
        taken.append(_round_trip(place, files, project=project))

    check()
    assert taken.count(True) >= 2
    assert taken.count(False) >= 1, "settings that cannot be read are refused"


@pytest.mark.long
@pytest.mark.parametrize("project", [False, True])
def test_whatever_stood_there_is_there_again_after_deinit_at_length(place: Path, project: bool) -> None:
    @given(files=_starting(PROJECT_FILES if project else USER_FILES))
    @settings(max_examples=600, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    def check(files: dict[str, bytes]) -> None:
        _round_trip(place, files, project=project)

    check()


@pytest.mark.promise("agent.deinit")
def test_what_was_changed_meanwhile_stays_and_only_our_parts_go(place: Path, run: Run) -> None:
    settings_text = '{\n\t// mine\n\t"model": "opus", // best\n\t"hooks": {"Stop": []}\n}\n'
    _write(
        place,
        {".claude/settings.json": settings_text.encode(), ".codex/config.toml": b"a = 1\n", ".claude/CLAUDE.md": b"# Me\n"},
    )
    assert run("init", "--agent", ALL, "--user", "--yes")[0] == 0
    file = place / ".claude" / "settings.json"
    text, _ = jsontext.put(file.read_text(), ("hooks", "Stop"), None, {"hooks": [{"type": "command", "command": "true"}]})
    file.write_text(text.replace('"opus"', '"sonnet"'))
    (place / ".claude" / "CLAUDE.md").write_text((place / ".claude" / "CLAUDE.md").read_text() + "\nlater\n")
    toml = place / ".codex" / "config.toml"
    toml.write_text(toml.read_text() + "\n[tui]\nx = 1\n")
    made = place / ".gemini" / "settings.json"
    made.write_text(jsontext.put(made.read_text(), (), "theme", "dark")[0])
    assert run("deinit", "--yes")[0] == 0
    expected, _ = jsontext.put(
        settings_text.replace('"opus"', '"sonnet"'),
        ("hooks", "Stop"),
        None,
        {"hooks": [{"type": "command", "command": "true"}]},
    )
    assert file.read_text() == expected
    assert (place / ".claude" / "CLAUDE.md").read_text() == "# Me\n\nlater\n"
    assert toml.read_text() == "a = 1\n\n[tui]\nx = 1\n"
    assert _object(made) == {"theme": "dark"}
    assert not (place / ".cursor").exists(), "what we made goes, folders too"
    assert run("deinit", "--yes")[0] == 1


def test_our_entries_are_known_when_other_settings_were_put_around_them(place: Path, run: Run) -> None:
    assert run("init", "--agent", "claude-code", "--yes")[0] == 0
    file = place / ".claude" / "settings.json"
    file.write_text(file.read_text().replace('"timeout": 5', '"timeout": 9'))
    assert run("init", "--check", "--agent", "claude-code")[0] == 0
    assert run("deinit", "--yes")[0] == 0
    assert not file.exists()


@pytest.mark.promise("agent.init")
def test_what_changes_is_shown_and_kept_before_it_is_written(place: Path, run: Run, tmp_path: Path) -> None:
    before = b'{"model": "opus", "key": "kept-as-it-was"}'
    _write(place, {".claude/settings.json": before})
    (place / ".claude" / "settings.json").chmod(0o600)
    code, out, _ = run("init", "--agent", "claude-code", "--dry-run")
    assert code == 0
    assert '+{"model": "opus", "key": "kept-as-it-was", "hooks": ' in out
    assert (place / ".claude" / "settings.json").read_bytes() == before
    code, out, err = run("init", "--agent", "claude-code", "--yes", "--json")
    report = json.loads(out)
    assert (code, report["done"], report["hosts"]) == (0, True, ["claude-code"])
    assert [file["state"] for file in report["files"]] == ["made", "changed", "made"]
    assert stat.S_IMODE((place / ".claude" / "settings.json").stat().st_mode) == 0o600
    backups = list((tmp_path / "memdir" / "data" / "agent-hosts" / "backups").iterdir())
    assert [file.read_bytes() for file in backups] == [before]
    assert stat.S_IMODE(backups[0].stat().st_mode) == 0o600
    code, out, err = run("init", "--agent", "claude-code", "--yes")
    assert (code, out) == (0, "")
    assert "nothing was changed" in err


@pytest.mark.promise("agent.init")
def test_hosts_that_are_here_are_found_and_checked(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place / "bin"))
    assert run("init", "--yes")[0] == 2, "none is here"
    code, _, err = run("init", "--check")
    assert code == 1
    assert "no agent host is here" in err
    (place / ".gemini").mkdir()
    (place / "bin").mkdir()
    (place / "bin" / "codex").write_text("#!/bin/sh\n")
    (place / "bin" / "codex").chmod(0o755)
    code, out, _ = run("init", "--check", "--json")
    assert code == 1
    assert {row["host"]: row["state"] for row in json.loads(out)["files"]} == {"codex": "missing", "gemini": "missing"}
    assert run("init", "--yes")[0] == 0
    assert run("init", "--check")[0] == 0
    assert not (place / ".claude").exists()
    code, _, err = run("deinit", "--agent", "codex", "--yes")
    assert code == 0
    assert err.strip().endswith("3 files changed; what memdir put there is out")
    _write(place, {".gemini/settings.json": b"{ broken"})
    code, out, _ = run("init", "--check")
    assert code == 1
    assert "it is no JSON: line 1" in out


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        (".claude/settings.json", b'{"a": 1,,}', "line 1, column 9"),
        (".claude/settings.json", b"\xff\xfe{\x00}\x00", "UTF-16"),
        (".claude/settings.json", b'{"a": "\xff"}', "no UTF-8"),
        (".claude/settings.json", b'{"hooks": []}', "hooks is no object"),
        (".claude.json", b'{"mcpServers": null}', "mcpServers is no object"),
        (".codex/config.toml", b"a = ", "no TOML"),
        (".codex/config.toml", b"mcp_servers = 3\n", "mcp_servers is no table"),
        (".codex/config.toml", b"mcp_servers = {a = {command = 'x'}}\n", "written inline"),
        (".cursor/hooks.json", b'{"version": 1, "hooks": {"sessionStart": {}}}', "is no list"),
    ],
)
def test_a_file_that_cannot_take_it_is_named_and_nothing_at_all_is_changed(
    place: Path, run: Run, name: str, data: bytes, said: str
) -> None:
    _write(place, {name: data, ".gemini/settings.json": b"{}"})
    before = _tree(place)
    code, out, err = run("init", "--agent", ALL, "--yes")
    assert (code, out) == (2, "")
    assert str(place / name) in err
    assert said in err
    assert _tree(place) == before


def test_read_only_linked_and_foreign_files_are_left_alone(place: Path, run: Run) -> None:
    file = place / ".claude" / "settings.json"
    _write(place, {".claude/settings.json": b"{}"})
    file.chmod(0o400)
    assert "read-only" in run("init", "--agent", "claude-code", "--yes")[2]
    file.chmod(0o600)
    os.link(file, place / "second")
    assert "hard links" in run("init", "--agent", "claude-code", "--yes")[2]
    (place / "second").unlink()
    (place / "outside.json").write_bytes(b"{}")
    (place / "shop" / ".mcp.json").symlink_to(place / "outside.json")
    assert "outside of the project" in run("init", "--agent", "claude-code", "--project", "--yes")[2]
    file.unlink()
    file.mkdir()
    assert "Is a directory" in run("init", "--agent", "claude-code", "--yes")[2]
    assert _tree(place)["outside.json"] == b"{}"


def test_a_link_to_settings_kept_elsewhere_is_followed_and_stays(place: Path, run: Run) -> None:
    _write(place, {"dotfiles/claude.json": b'{"x": 1}\n'})
    (place / ".claude").mkdir()
    (place / ".claude" / "settings.json").symlink_to("../dotfiles/claude.json")
    assert run("init", "--agent", "claude-code", "--yes")[0] == 0
    assert (place / ".claude" / "settings.json").is_symlink()
    assert "hooks" in _object(place / "dotfiles" / "claude.json")
    assert run("deinit", "--yes")[0] == 0
    assert (place / "dotfiles" / "claude.json").read_bytes() == b'{"x": 1}\n'
    assert (place / ".claude" / "settings.json").is_symlink()


def test_an_entry_of_the_users_own_stays_and_is_told(place: Path, run: Run) -> None:
    own = {"mcpServers": {"memdir": {"command": "my-wrapper"}}}
    table = b"[mcp_servers.memdir]\ncommand = 'my-wrapper'\n"
    guide = b"<!-- memdir:begin agent-memory -->\nhalf a block\n"
    _write(place, {".claude.json": json.dumps(own).encode(), ".claude/CLAUDE.md": guide, ".codex/config.toml": table})
    code, _, err = run("init", "--agent", "claude-code,codex", "--yes")
    assert code == 0
    for said in ("an entry memdir of its own", "a table mcp_servers.memdir of its own", "a block 'memdir:begin agent-memory'"):
        assert said in err
    assert _object(place / ".claude.json") == own
    assert ".claude.json: other" in run("init", "--agent", "claude-code", "--check")[1]
    run("deinit", "--yes")
    assert _object(place / ".claude.json") == own
    assert (place / ".claude" / "CLAUDE.md").read_bytes() == guide
    assert (place / ".codex" / "config.toml").read_bytes() == table


def test_a_guide_that_two_hosts_read_is_told_once_and_keeps_the_block_until_both_are_gone(place: Path, run: Run) -> None:
    guide = place / "shop" / "AGENTS.md"
    guide.write_bytes(b"# Shop")
    assert run("init", "--agent", "codex", "--project", "--yes")[0] == 0
    assert run("init", "--agent", "cursor", "--project", "--yes")[0] == 0
    assert guide.read_text().count("memdir:begin") == 1
    assert run("deinit", "--agent", "codex", "--yes")[0] == 0
    assert guide.read_text().count("memdir:begin") == 1
    assert not (place / "shop" / ".codex").exists()
    assert run("deinit", "--agent", "cursor", "--project", "--yes")[0] == 0
    assert guide.read_bytes() == b"# Shop"


def test_a_moved_installation_renews_its_commands(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = b'{"mcpServers": {"other": {"command": "x"}}}'
    _write(place, {".claude.json": before})
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/old/bin/python")
        assert run("init", "--agent", "claude-code", "--yes")[0] == 0
    assert run("init", "--agent", "claude-code", "--check")[0] == 1
    assert run("init", "--agent", "claude-code", "--yes")[0] == 0
    assert b"/old/bin" not in b"".join(data or b"" for data in _tree(place).values())
    assert run("init", "--agent", "claude-code", "--check")[0] == 0
    assert run("deinit", "--yes")[0] == 0
    assert (place / ".claude.json").read_bytes() == before


def test_an_installation_that_was_cut_short_goes_without_a_trace(
    place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(place, {name: b"{}" for name, kind in USER_FILES.items() if kind == "json"})
    before = _tree(place)
    written: list[Path] = []

    def failing(path: Path, data: bytes, info: os.stat_result | None) -> None:
        if len(written) == 3:
            raise OSError(28, "No space left on device", str(path))
        written.append(path)
        real(path, data, info)

    real = install.replace_file
    with monkeypatch.context() as patch:
        patch.setattr(install, "replace_file", failing)
        assert run("init", "--agent", ALL, "--yes")[0] == 2
    assert _tree(place) != before
    assert run("deinit", "--yes")[0] == 0
    assert {name: data for name, data in _tree(place).items() if data is not None} == {
        name: data for name, data in before.items() if data is not None
    }


def test_lines_added_to_our_table_are_not_handed_to_another(place: Path, run: Run) -> None:
    _write(place, {".codex/config.toml": b"[tui]\nx = 1\n"})
    assert run("init", "--agent", "codex", "--yes")[0] == 0
    toml = place / ".codex" / "config.toml"
    changed = toml.read_bytes() + b"startup_timeout_sec = 20\n"
    toml.write_bytes(changed)
    code, _, err = run("deinit", "--yes")
    assert code == 2
    assert "lines were added to the table mcp_servers.memdir" in err
    assert toml.read_bytes() == changed
    assert not (place / ".codex" / "hooks.json").exists(), "the other files are done"


def test_nobody_to_ask_means_saying_so(run: Run, place: Path) -> None:
    for words in (("init",), ("init", "--agent", "codex"), ("deinit",)):
        code, out, err = run(*words)
        assert (code, out) == (2, ""), words
        assert "nobody to ask" in err
    assert run("init", "--shell", "bash", "--agent", "codex")[0] == 2
    assert run("init", "--install")[0] == 2
    assert _tree(place) == {"shop": None, "shop/.git": None, "shop/src": None}


@pytest.mark.promise("agent.init")
@pytest.mark.parametrize(("answers", "code"), [(b"codex\nuser\ny\n", 0), (b"\n\nno\n", 1)])
def test_a_person_is_asked(place: Path, answers: bytes, code: int) -> None:
    (place / ".codex").mkdir()
    (place / ".codex" / "config.toml").write_bytes(b"a = 1\n")
    keyboard, screen = pty.openpty()
    try:
        os.write(keyboard, answers)
        ended = subprocess.run(
            [sys.executable, "-m", "memdir.cli", "init"], stdin=screen, stderr=screen, stdout=subprocess.PIPE, timeout=60,
            check=False, env={**os.environ, "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
    finally:
        os.close(screen)
        os.close(keyboard)
    assert ended.returncode == code
    assert b"+[mcp_servers.memdir]" in ended.stdout
    assert (b"mcp_servers" in (place / ".codex" / "config.toml").read_bytes()) is (code == 0)


@pytest.mark.promise("agent.hosts")
@pytest.mark.parametrize("reach", ["--user", "--project"])
def test_what_is_installed_runs(place: Path, run: Run, reach: str, fake_home: Path) -> None:
    assert run("init", "--agent", "claude-code", reach, "--yes")[0] == 0
    base = place / "shop" if reach == "--project" else place
    command = _object(base / ".claude" / "settings.json")["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    told = json.dumps(CLAUDE_PROMPT).encode()
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for _ in range(6):
        ran = run_hook(told, "sh", "-c", command, home=fake_home, cwd=place, env={"PATH": path})
        if ran.out:
            break
    assert "<memdir-memory>" in json.loads(ran.out)["hookSpecificOutput"]["additionalContext"]
    if reach == "--project":
        without = run_hook(told, "sh", "-c", command, home=fake_home, cwd=place, env={"PATH": "/usr/bin:/bin"})
        assert (without.code, without.out, without.err) == (0, b"", b""), "who has no memdir sees nothing of it"


def test_hosts_that_were_moved_are_found_where_they_are(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place / "c"))
    monkeypatch.setenv("CODEX_HOME", str(place / "x"))
    assert run("init", "--agent", "claude-code,codex", "--yes")[0] == 0
    assert {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()} == {
        "c/.claude.json", "c/settings.json", "c/CLAUDE.md", "x/config.toml", "x/hooks.json", "x/AGENTS.md",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("host", "name", "data", "said"),
    [
        ("claude-code", ".claude/settings.json", b'{"disableAllHooks": true}', "disableAllHooks is true"),
        ("gemini", ".gemini/settings.json", b'{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled is false"),
        ("codex", ".codex/config.toml", b"[features]\nhooks = false\n", "features.hooks is false"),
    ],
)
def test_hooks_that_are_turned_off_are_told(place: Path, run: Run, host: str, name: str, data: bytes, said: str) -> None:
    assert "turns hooks off" not in run("init", "--agent", host, "--yes")[2]
    run("deinit", "--yes")
    _write(place, {name: data})
    assert said in run("init", "--agent", host, "--yes")[2]
    assert said in json.loads(run("init", "--agent", host, "--check", "--json")[1])["notes"][0]
