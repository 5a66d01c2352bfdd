"""Keys, and servers elsewhere: what a user types, with real servers behind it."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.client.credentials import Credentials, configured, pinned, refreshed, remove, save
from memdir.client.local import running_server, stop_server
from memdir.core.errors import UsageError
from memdir.core.paths import app_paths
from tests.cli import certificates
from tests.cli.certificates import Certificates
from tests.cli.test_end_to_end import Shell, shell
from tests.servers import ServerProcess, launch, start

__all__ = ["shell"]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("pem"))


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory, pem: Certificates) -> Iterator[ServerProcess]:
    """Somebody's server that speaks TLS, in another home."""
    running = start(tmp_path_factory.mktemp("remote"), "--port", "0", "--tls-cert", str(pem.cert), "--tls-key", str(pem.key))
    yield running
    assert running.stop() == 0


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def everything_below(folder: Path) -> str:
    return "\n".join(file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


# keys


@pytest.mark.promise("keys.created")
def test_a_key_is_made_listed_rotated_and_revoked_while_no_server_runs(run: Run, home: Path) -> None:
    code, out, _ = run("server", "key", "create", "--name", "ci", "--container", "docs", "--container", "team-*", "--json")
    made = json.loads(out)
    assert (code, made["key"][:3], made["containers"]) == (0, "md_", ["docs", "team-*"])
    assert made["key"] not in everything_below(home), "only its hash is stored"
    code, out, _ = run("server", "key", "list")
    assert (code, made["key"] in out, "ci: read/write in docs, team-*" in out) == (0, False, True)
    code, _, err = run("server", "key", "create", "--name", "ci")
    assert (code, "already" in err) == (2, True)
    code, out, err = run("server", "key", "rotate", "ci", "--keep", "1h")
    assert (code, out.startswith("md_"), "cannot be shown again" in err) == (0, True, True)
    code, out, _ = run("server", "key", "revoke", "ci", "--json")
    assert (code, json.loads(out)["name"]) == (0, "ci")
    code, _, err = run("server", "key", "revoke", made["key"])
    assert (code, "does not belong on a command line" in err, made["key"] in err) == (2, True, False)
    states = {key["name"]: key["state"] for key in json.loads(run("server", "key", "list", "--all", "--json")[1])["keys"]}
    assert states == {"ci": "revoked", "ci (replaced)": "active"}
    audit = json.loads(run("server", "audit", "--action", "admin", "--json")[1])["events"]
    assert {event["key_id"] for event in audit} == {"command line"}
    assert any((event["call"], event["target"], event["status"]) == ("POST /v1/keys", "ci", 409) for event in audit)


def test_users_and_organisations_are_managed_from_the_command_line(run: Run) -> None:
    assert run("server", "org", "add", "Example", "--max-documents", "5")[0] == 0
    assert run("server", "user", "add", "Anna", "--org", "Example", "--email", "anna@example.org")[0] == 0
    key = json.loads(run("server", "key", "create", "--name", "a", "--org", "Example", "--user", "Anna", "--json")[1])
    assert (key["org"], key["user"], key["actions"]) == ("Example", "Anna", ["read", "write"])
    assert "Anna" in run("server", "user", "list", "--org", "Example")[1]
    assert run("server", "user", "list")[0] == 1
    assert "Example: 0 documents" in run("server", "org", "list")[1]
    assert "1 key ended" in run("server", "user", "remove", "Anna", "--org", "Example")[1]
    assert run("server", "org", "remove", "Example")[0] == 0
    assert run("server", "org", "remove", "Example")[0] == 2


@pytest.mark.parametrize(
    "wrong",
    [
        ("--container", "a/b"),
        ("--prefix", "relative"),
        ("--expires", "soon"),
        ("--expires", "0d"),
        ("--user", "nobody"),
        ("--rate", "0"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(run: Run, wrong: tuple[str, str]) -> None:
    code, out, err = run("server", "key", "create", "--name", "x", *wrong)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_the_group_of_a_group_has_help(run: Run) -> None:
    assert "server key rotate" in run("server", "key", "--help")[1]
    assert "needs one of: create" in run("server", "key")[2]
    assert "did you mean `memdir server key`?" in run("server", "kye", "list")[2]


# login


@pytest.mark.promise("keys.login")
@pytest.mark.promise("keys.tls")
def test_login_whoami_logout_over_tls(
    run: Run, home: Path, remote: ServerProcess, pem: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, remote.key + "\n")
    code, _, err = run("login", remote.url)
    assert (code, "CERTIFICATE_VERIFY_FAILED" in err, remote.key in err) == (2, True, False)
    typed(monkeypatch, "md_wrong\n")
    code, _, err = run("login", remote.url, "--ca-file", str(pem.ca))
    assert (code, "not known here" in err) == (2, True)
    assert not (home / "config" / "login.json").exists(), "what does not work is not kept"

    typed(monkeypatch, f"  {remote.key} \n")
    code, out, err = run("login", remote.url, "--ca-file", str(pem.ca))
    assert (code, "as local user of local" in out) == (0, True)
    assert remote.key not in out + err
    assert stat.S_IMODE((home / "config" / "login.json").stat().st_mode) == 0o600

    code, out, _ = run("whoami", "--json")
    said = json.loads(out)
    assert (code, said["url"], said["source"], said["key"]["actions"]) == (0, remote.url, "user", ["read", "write", "admin"])
    assert remote.key not in out
    assert json.loads(run("server", "status", "--json")[1])["url"] == remote.url
    code, out, _ = run("server", "key", "create", "--name", f"made from afar {os.getpid()}")
    assert (code, out.startswith("md_")) == (0, True)
    assert run("server", "stop")[0] == 2, "not ours to stop"

    assert run("logout")[0] == 0
    assert run("logout")[0] == 1
    assert run("whoami")[0] == 1
    assert remote.key not in everything_below(home)


def test_a_certificate_file_for_all_programs_is_honoured(
    run: Run, remote: ServerProcess, pem: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(pem.ca))
    typed(monkeypatch, remote.key)
    assert run("login", remote.url)[0] == 0
    assert run("whoami")[0] == 0


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://memory.example.org", "can be read"),
        ("memory.example.org", "http(s) address"),
        ("https://me:secret@memory.example.org", "http(s) address"),
        ("ftp://memory.example.org", "http(s) address"),
    ],
)
def test_an_address_that_would_give_the_key_away_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, url: str, words: str
) -> None:
    typed(monkeypatch, "md_x\n")
    code, _, err = run("login", url)
    assert code == 2
    assert "secret" not in err
    assert words in err or "read" in err


def test_no_key_at_the_prompt_is_an_error(run: Run, remote: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "\n")
    assert "no key was given" in run("login", remote.url)[2]


@pytest.mark.promise("keys.precedence")
def test_flag_environment_project_and_user_are_asked_in_this_order(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    paths = app_paths()

    def chosen() -> str:
        found = configured(paths)
        return "local" if found is None else f"{found.source} {found.url}"

    def kept(name: str, source: str = "user") -> Credentials:
        return Credentials(url=f"https://{name}.example", api_key=f"md_{name}", source=source)

    assert chosen() == "local"
    save(paths, kept("user"))
    assert chosen() == "user https://user.example"
    inside = tmp_path / "project" / "deep"
    inside.mkdir(parents=True)
    save(paths, kept("project"), project=tmp_path / "project")
    monkeypatch.chdir(inside)
    assert chosen() == "project https://project.example"
    assert (tmp_path / "project" / ".memdir" / ".gitignore").read_text() == "credentials.json\n"
    assert pinned(paths) == {"MEMDIR_CREDENTIALS": str(tmp_path / "project" / ".memdir" / "credentials.json")}
    monkeypatch.setenv("MEMDIR_SERVER_URL", "https://env.example/")
    with pytest.raises(UsageError, match="MEMDIR_API_KEY is not"):
        configured(paths)
    monkeypatch.setenv("MEMDIR_API_KEY", "md_env")
    assert chosen() == "environment https://env.example"
    save(paths, kept("flag"), project=tmp_path / "flag")
    monkeypatch.setenv("MEMDIR_CREDENTIALS", str(tmp_path / "flag" / ".memdir" / "credentials.json"))
    assert chosen() == "flag https://flag.example"
    assert json.loads(run("server", "status", "--json", "--credentials", "local")[1])["running"] is False
    assert json.loads(run("server", "status", "--json")[1])["running"] is False, "the flag of this process went on to hold"
    monkeypatch.setenv("MEMDIR_CREDENTIALS", "local")
    assert chosen() == "local"
    assert "md_" not in repr(kept("x")).replace("md_x", "") or "md_x" not in repr(kept("x"))


def test_a_project_that_came_from_elsewhere_leads_nobody_to_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = app_paths()
    file = tmp_path / ".memdir" / "credentials.json"
    file.parent.mkdir()
    file.write_text('{"url": "https://evil.example", "api_key": "md_evil"}')
    file.chmod(0o600)
    with pytest.raises(UsageError, match="you did not log in here"):
        configured(paths)
    save(paths, Credentials(url="https://mine.example", api_key="md_mine", source="project"), project=tmp_path)
    assert configured(paths) is not None
    file.write_text(file.read_text().replace("mine.example", "evil.example"))
    with pytest.raises(UsageError, match="you did not log in here"):
        configured(paths)


def test_who_stays_with_a_server_takes_a_new_key_for_it_and_no_other_server(home: Path) -> None:
    del home
    paths = app_paths()
    save(paths, Credentials(url="https://mine.example", api_key="md_old", source="user"))
    before = configured(paths)
    assert before is not None
    save(paths, Credentials(url="https://mine.example", api_key="md_new", source="user"))
    after = refreshed(before)
    assert (after.url, after.api_key) == ("https://mine.example", "md_new")
    save(paths, Credentials(url="https://other.example", api_key="md_other", source="user"))
    assert refreshed(after) == after
    remove(paths)
    assert refreshed(after) == after


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ('{"url": "https://a.example", "api_key": "md_x"}', 0o644, "others may read"),
        ('{"url": "https://a.example", "api_key": "md_x"}', 0o640, "others may read"),
        ("{", 0o600, "no credentials file"),
        ('{"url": "https://a.example"}', 0o600, "no credentials file"),
        ('{"url": "file:///etc/passwd", "api_key": "md_x"}', 0o600, "http"),
    ],
)
def test_a_credentials_file_that_cannot_be_trusted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, mode: int, words: str
) -> None:
    file = tmp_path / "c.json"
    file.write_text(text)
    file.chmod(mode)
    monkeypatch.setenv("MEMDIR_CREDENTIALS", str(file))
    with pytest.raises(UsageError, match=words) as refused:
        configured(app_paths())
    assert "md_x" not in str(refused.value)


# TLS at the server


@pytest.mark.promise("keys.tls")
def test_a_server_that_listens_wider_without_tls_warns(tmp_path: Path, pem: Certificates) -> None:
    plain = start(tmp_path / "plain", "--host", "0.0.0.0", "--port", "0")
    assert plain.stop() == 0
    assert "without TLS" in (tmp_path / "plain" / "state" / "server.log").read_text()
    secured = start(
        tmp_path / "tls", "--host", "0.0.0.0", "--port", "0", "--tls-cert", str(pem.cert), "--tls-key", str(pem.key)
    )
    assert secured.url.startswith("https://")
    assert secured.stop() == 0
    assert "without TLS" not in (tmp_path / "tls" / "state" / "server.log").read_text()


def test_a_certificate_that_cannot_be_used_is_said_before_anything_starts(tmp_path: Path, pem: Certificates) -> None:
    for arguments in (
        ("--tls-cert", str(pem.cert)),
        ("--tls-cert", str(pem.cert), "--tls-key", str(pem.ca)),
        ("--tls-cert", str(tmp_path / "absent"), "--tls-key", str(pem.key)),
    ):
        process, said = launch(tmp_path / "home", *arguments)
        assert process.wait(timeout=60) == 2
        assert "--tls-key" in said or "cannot be used" in said


def test_this_users_own_server_may_speak_tls(
    remote: ServerProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pem: Certificates
) -> None:
    """Its certificate is known from its state file, and needs no name that fits and no authority."""
    monkeypatch.setenv("MEMDIR_HOME", str(remote.home))
    found = running_server(app_paths())
    assert found is not None
    assert (found.is_local, found.url, found.pinned_file) == (True, remote.url, str(pem.cert))
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "nobody"))
    assert stop_server(app_paths()) is False


# end to end


def login(shell: Shell, server: ServerProcess, *options: str) -> None:
    done = subprocess.run(
        shell.command("login", server.url, *options), env=shell.environment, input=server.key + "\n",
        capture_output=True, text=True, timeout=120, check=False, cwd=shell.cwd,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.mount
def test_a_mount_of_a_server_elsewhere(
    shell: Shell, remote: ServerProcess, sqlite_server: ServerProcess, pem: Certificates
) -> None:
    """The key reaches neither arguments nor environments nor logs of any process."""
    name = f"far-{os.getpid()}"
    login(shell, remote, "--ca-file", str(pem.ca))
    shell.ok("mount", name)
    (shell.cwd / name / "note.md").write_text("the ferry leaves at nine\n")
    shell.ok("sync", name, "--wait")
    with remote.client() as client:
        assert client.get("/v1/files/note.md", params={"containerTag": name}).text == "the ferry leaves at nine\n"
    assert "note.md" in shell.ok("grep", "--literal", "ferry", str(shell.cwd / name))
    assert "note.md" in shell.ok("grep", "--container", name, "--literal", "ferry")
    pid = shell.json("status", name)["pid"]
    for file in ("cmdline", "environ"):
        assert remote.key.encode() not in Path(f"/proc/{pid}/{file}").read_bytes()
    shell.ok("logout")
    (shell.cwd / name / "later.md").write_text("it stays with the server that it was mounted with\n")
    shell.ok("sync", name, "--wait")
    login(shell, sqlite_server)
    (shell.cwd / name / "latest.md").write_text("also when its user logs in elsewhere\n")
    shell.ok("sync", name, "--wait")
    with remote.client() as client:
        there = client.get("/v1/files", params={"containerTag": name}).json()["entries"]
    assert {file["path"] for file in there} >= {"/note.md", "/later.md", "/latest.md"}
    with sqlite_server.client() as client:
        assert client.get("/v1/files", params={"containerTag": name}).json()["entries"] == []
    shell.ok("unmount", name, "--force")
    logs: list[Any] = [file for file in shell.home.rglob("*.log*") if file.is_file()]
    assert all(remote.key not in file.read_text(errors="replace") for file in logs)
