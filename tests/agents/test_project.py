"""The project of a folder, beside real repositories, worktrees and submodules of git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from memdir.agents import project as projects
from memdir.agents.project import ENV_PROJECT, NAME_MAX_CHARS, Project
from memdir.core.limits import MEMORY_PROJECT_MAX_CHARS

_GIT = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder, check=True, capture_output=True, env={**os.environ, **_GIT},
    )  # fmt: skip


def _repository(folder: Path, *options: str) -> Path:
    folder.mkdir(parents=True)
    _git(folder, "init", "-q", *options)
    _git(folder, "commit", "-q", "--allow-empty", "-m", f"first of {folder}")
    return folder


def project_of(folder: str) -> str | None:
    """The name of its project."""
    found = projects.project_of(folder)
    return None if found is None else found.name


def current_project(cwd: str | None = None) -> str | None:
    """The name of the current one."""
    found = projects.current_project(cwd)
    return None if found is None else found.name


@pytest.mark.promise("agent.project")
def test_subfolders_and_worktrees_of_a_repository_are_one_project(tmp_path: Path) -> None:
    shop = _repository(tmp_path / "shop")
    (shop / "src" / "api").mkdir(parents=True)
    _git(shop, "worktree", "add", "-q", str(tmp_path / "elsewhere" / "fix-login"))
    (tmp_path / "elsewhere" / "fix-login" / "src").mkdir()
    found = {
        project_of(str(folder))
        for folder in (shop, shop / "src" / "api", shop / ".git" / "hooks", shop / "not-there-yet",
                       tmp_path / "elsewhere" / "fix-login", tmp_path / "elsewhere" / "fix-login" / "src")
    }  # fmt: skip
    assert found == {"shop"}


@pytest.mark.parametrize(("data", "named"), [("tool.git", "tool"), ("tool/.bare", "tool"), ("tool/.git", "tool")])
def test_worktrees_of_a_bare_repository_are_named_after_it(tmp_path: Path, data: str, named: str) -> None:
    origin = _repository(tmp_path / "origin")
    bare = tmp_path / data
    bare.parent.mkdir(exist_ok=True)
    _git(tmp_path, "clone", "-q", "--bare", str(origin), str(bare))
    _git(bare, "worktree", "add", "-q", str(tmp_path / "trees" / "one"))
    assert project_of(str(tmp_path / "trees" / "one")) == named


def test_a_worktree_whose_links_are_relative_is_found(tmp_path: Path) -> None:
    shop = _repository(tmp_path / "shop")
    _git(shop, "worktree", "add", "-q", str(tmp_path / "other"))
    (tmp_path / "other" / ".git").write_text("gitdir: ../shop/.git/worktrees/other\n", encoding="utf-8")
    assert project_of(str(tmp_path / "other")) == "shop"


def test_a_submodule_is_a_project_of_its_own_and_so_are_its_worktrees(tmp_path: Path) -> None:
    library = _repository(tmp_path / "library")
    shop = _repository(tmp_path / "shop")
    _git(shop, "submodule", "--quiet", "add", str(library), "vendor/lib")
    _git(shop / "vendor" / "lib", "worktree", "add", "-q", str(tmp_path / "lib-tree"))
    assert project_of(str(shop / "vendor" / "lib")) == "lib"
    assert project_of(str(tmp_path / "lib-tree")) == "lib"
    assert project_of(str(shop / "vendor")) == "shop"


def test_a_repository_whose_data_is_elsewhere_is_named_after_its_folder(tmp_path: Path) -> None:
    shop = _repository(tmp_path / "shop", f"--separate-git-dir={tmp_path / 'data'}")
    assert project_of(str(shop)) == "shop"


def test_without_a_repository_it_is_the_folder_itself(tmp_path: Path) -> None:
    assert project_of(str(tmp_path / "notes" / "api")) == "api"
    (tmp_path / "notes" / ".git").mkdir(parents=True)
    assert project_of(str(tmp_path / "notes" / "api")) == "api", "an empty .git is no repository"
    (tmp_path / "other" / "x").mkdir(parents=True)
    (tmp_path / "other" / ".git").write_bytes(b"\xff\xfe nonsense")
    assert project_of(str(tmp_path / "other" / "x")) == "x"


def test_the_home_folder_and_the_root_are_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    _git(tmp_path, "init", "-q")  # dotfiles
    for folder in (str(tmp_path), f"{tmp_path}/", str(tmp_path.parent), "/", "//", "/."):
        assert project_of(folder) is None, folder
    assert project_of(str(tmp_path / "work")) == "work", "a repository of the whole home is not the project of what is in it"


def test_the_folder_of_the_host_comes_before_the_environment_and_that_before_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv(ENV_PROJECT, raising=False)
    assert current_project(str(tmp_path / "told")) == "told"
    assert current_project() == "here"
    assert current_project("relative/folder") == "here"
    assert current_project(str(tmp_path / "home")) is None, "the host told where it is: the process's folder says nothing"
    monkeypatch.setenv(ENV_PROJECT, " billing ")
    assert current_project(str(tmp_path / "told")) == "told"
    assert current_project(str(tmp_path / "home")) == "billing"
    assert current_project() == "billing"


def test_names_can_be_sent_and_put_into_a_path(tmp_path: Path) -> None:
    assert NAME_MAX_CHARS == MEMORY_PROJECT_MAX_CHARS
    assert project_of(str(tmp_path / ("n" * 200))) == "n" * NAME_MAX_CHARS
    assert project_of(str(tmp_path / "a\tb\nc\x1b")) == "abc"
    assert project_of(str(tmp_path) + "/caf\udce9") == "caf"
    assert project_of(str(tmp_path / "Größe 2")) == "Größe 2"


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENV_PROJECT, raising=False)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert current_project() is None


def keys_of(folder: Path) -> tuple[str, ...]:
    found = projects.project_of(str(folder))
    assert found is not None
    return found.keys


@pytest.mark.promise("agent.project-identity")
@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:Acme/api.git", "https://github.com/acme/api", "https://user:token@github.com/acme/api.git/",
        "ssh://git@github.com:22/acme/api", "git://GitHub.com/acme/api.git", "github.com:acme/api",
    ],
)  # fmt: skip
def test_a_remote_is_the_same_however_it_is_written(tmp_path: Path, url: str) -> None:
    api = _repository(tmp_path / "api")
    _git(api, "remote", "add", "upstream", "https://example.org/else/where.git")
    _git(api, "remote", "add", "origin", url)
    assert keys_of(api)[0] == "remote:github.com/acme/api"
    assert "token" not in "".join(keys_of(api))


@pytest.mark.promise("agent.project-identity")
def test_a_repository_without_a_remote_is_known_by_its_first_commit_wherever_it_is_moved(tmp_path: Path) -> None:
    api = _repository(tmp_path / "api")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=api, check=True, capture_output=True, text=True).stdout.strip()
    _git(api, "commit", "-q", "--allow-empty", "-m", "second")
    before = keys_of(api)
    assert before[0] == f"root:{head}"
    moved = api.rename(tmp_path / "moved")
    assert keys_of(moved)[0] == f"root:{head}"
    assert keys_of(moved)[1] != before[1], "the folder is another one"
    other = _repository(tmp_path / "elsewhere" / "api")
    assert not set(keys_of(other)) & set(before)
    _git(tmp_path, "clone", "-q", str(moved), str(tmp_path / "clone"))
    _git(tmp_path, "clone", "-q", f"file://{moved}", str(tmp_path / "other-clone"))
    _git(moved, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert {keys_of(tmp_path / name) for name in ("clone", "other-clone", "tree")} == {keys_of(moved)}
    bare = tmp_path / "bare.git"
    _git(tmp_path, "clone", "-q", "--bare", str(moved), str(bare))
    _git(bare, "remote", "remove", "origin")
    for name in ("one", "two"):
        _git(tmp_path, "clone", "-q", str(bare), str(tmp_path / name))
    assert keys_of(tmp_path / "one") == keys_of(tmp_path / "two")


@pytest.mark.promise("agent.project-identity")
def test_a_part_of_a_repository_has_a_name_of_its_own_and_its_repository_around_it(tmp_path: Path) -> None:
    shop = _repository(tmp_path / "shop")
    _git(shop, "remote", "add", "origin", "git@github.com:acme/shop.git")
    payments = shop / "services" / "payments"
    (payments / "src").mkdir(parents=True)
    (payments / ".memdir.toml").write_text('project = "payments"\n', encoding="utf-8")
    found = projects.project_of(str(payments / "src"))
    assert found is not None
    assert (found.name, found.keys[0]) == ("payments", "remote:github.com/acme/shop#payments")
    assert found.parent == Project("shop", keys_of(shop))
    (shop / ".memdir.toml").write_text('project = "the shop"\n', encoding="utf-8")
    whole = projects.project_of(str(shop / "services"))
    assert whole == Project("the shop", keys_of(shop))
    plain = tmp_path / "thesis" / "text"
    plain.mkdir(parents=True)
    (tmp_path / "thesis" / ".memdir.toml").write_text('project = "thesis"\n', encoding="utf-8")
    assert projects.project_of(str(plain)) == Project("thesis", ("name:thesis",))
    for text, said in (("project = 7", "is not the name"), ("project =", "is no TOML"), ('project = " / "', "is not the name")):
        (plain / ".memdir.toml").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            projects.project_of(str(plain))
    (plain / ".memdir.toml").write_text("[other]\n", encoding="utf-8")
    assert projects.project_of(str(plain)) == Project("thesis", ("name:thesis",)), "one that names none"
