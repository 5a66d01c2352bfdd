"""Which folders of real projects stay on this machine: what tools made, and nothing that a person wrote.

The layouts are those of well-known repositories, from memory, cut down to what decides: manifests, `.gitignore`, and a file in
each folder; and those of published source packages, from their archives (`repositories.txt`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.memory import MemoryFs
from memdir.sync.artifacts import Artifacts
from memdir.sync.records import open_records

TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"

SYNCED = {
    # A person wrote these, whatever their folders are called.
    "kubernetes": ("go.mod .gitignore=/_output", "build/run.sh build/lib/release.sh vendor/README.md cmd/kubectl/main.go"),
    "kubernetes vendored": ("go.mod .gitignore=/_output", "vendor/github.com/pkg/errors.go"),
    "bootstrap": ("package.json .gitignore=node_modules/", "build/build-plugins.mjs dist/css/bootstrap.css scss/_root.scss"),
    "jquery": ("package.json .gitignore=*.log", "build/tasks/build.js dist/jquery.js src/core.js"),
    "three.js": ("package.json .gitignore=node_modules", "build/three.module.js src/Three.js"),
    "electron": ("package.json .gitignore=/out", "build/args/all.gn build/npm.gni shell/app/main.cc"),
    "node": ("configure.py Makefile", "deps/v8/BUILD.gn out.txt lib/fs.js deps/uv/README.md"),
    "v8": ("BUILD.gn", "build/config/BUILD.gn src/api.cc"),
    "rust": ("Cargo.toml .gitignore=/build/", "src/bootstrap/lib.rs library/core/lib.rs"),
    "linux": ("Makefile", "scripts/Makefile.build tools/build/Makefile Documentation/conf.py"),
    "cpython": ("configure.ac Makefile.pre.in", "Doc/conf.py Doc/build.rst PCbuild/build.bat Lib/venv/__init__.py"),
    "django": ("pyproject.toml .gitignore=dist/", "docs/conf.py django/dist.py"),
    "flask": ("pyproject.toml", "docs/conf.py src/flask/app.py"),
    "rails": ("Gemfile .gitignore=/dist", "railties/bin/test activerecord/bin/test vendor/README.md"),
    "rails app": ("Gemfile .gitignore=/log/*", "bin/setup vendor/javascript/pin.js public/404.html"),
    "laravel app": ("composer.json .gitignore=/node_modules", "bootstrap/cache.md public/build.md"),
    "spring": ("build.gradle .gitignore=bin", "buildSrc/README.md gradle/wrapper.md src/main/java/A.java"),
    "maven": ("pom.xml .gitignore=*.class", "src/site/target.md src/main/java/target/Goal.java"),
    "phoenix": ("mix.exs .gitignore=/x", "lib/app.ex assets/vendor/topbar.js"),
    "elixir umbrella": ("mix.exs", "apps/a/lib/a.ex config/deps.exs"),
    "ocaml": ("dune-project", "bin/main.ml lib/a.ml"),
    "cmake project": ("CMakeLists.txt .gitignore=*.o", "build/README.md cmake/Find.cmake build/toolchain.cmake"),
    "llvm": ("CMakeLists.txt", "llvm/cmake/modules/A.cmake clang/bin/clang-format-diff"),
    "in-source cmake": ("CMakeLists.txt CMakeCache.txt", "src/main.c build.md"),
    "in-source meson": ("meson.build build.ninja", "src/main.c"),
    "venv in place": ("pyproject.toml pyvenv.cfg", "src/app.py README.md"),
    "dotnet": ("App.csproj .gitignore=*.user", "bin/README.md obj/notes.md"),
    "ansible": ("setup.py .gitignore=*.pyc", "bin/ansible hacking/build.py"),
    "vscode": ("package.json .gitignore=/out-*", "build/gulpfile.js build/lib/i18n.ts out.md"),
    "typescript": ("package.json .gitignore=/built", "lib/tsc.js scripts/build.mjs"),
    "grafana": ("package.json go.mod .gitignore=/x", "vendor.md pkg/build/main.go packages/build.md"),
    "hugo site": ("config.toml", "content/build/index.md static/dist/app.css"),
    "thesis": ("Makefile", "build/notes.md target/audience.md out/of/time.md dist/ances.md vendor/list.md"),
    "notes": ("README.md", "coverage/of-the-press.md bin/recycling.md deps/people.md obj/ects.md"),
    "recipes": ("", "target/2026.md build/shed.md cache/geocaching.md"),
    "nested modules": ("package.json", "docs/node_modules.md docs/git.md"),
    "gitignore brings back": ("package.json .gitignore=dist,!dist/", "dist/handmade.js"),
    "debian packaging": ("debian/control debian/rules", "debian/patches/build.patch debian/vendor/a.md"),
    "terraform": ("main.tf", "modules/cache/main.tf modules/build/main.tf"),
    "unity": ("Assets/A.cs", "Build/readme.md Library.md"),
}  # fmt: skip
KEPT = {
    # Tools made these and can make them again.
    "git": ("", ".git/HEAD .git/objects/aa/bb"),
    "mercurial": ("", ".hg/store/data"),
    "npm": ("package.json", "node_modules/left-pad/index.js"),
    "npm workspace": ("package.json", "packages/a/node_modules/b/index.js"),
    "venv": ("pyproject.toml", ".venv/pyvenv.cfg .venv/lib/python3.11/site-packages/a.py"),
    "venv by any name": ("setup.py", "env39/pyvenv.cfg env39/bin/python"),
    "conda": ("", "envs/conda-meta/history envs/lib/a.py"),
    "pycache": ("", "src/__pycache__/a.pyc"),
    "pytest": ("", ".pytest_cache/README.md"),
    "mypy": ("", ".mypy_cache/3.11/a.json"),
    "tox": ("tox.ini", ".tox/py311/a.py"),
    "egg-info": ("setup.py", "src/app.egg-info/PKG-INFO src/app.egg-info/SOURCES.txt"),
    "cargo": ("Cargo.toml .gitignore=/target", "target/debug/app.d"),
    "cargo without gitignore": ("Cargo.toml", "target/.rustc_info.json target/debug/app"),
    "maven target": ("pom.xml .gitignore=target/", "target/classes/A.class"),
    "gradle": ("build.gradle .gitignore=build", "build/libs/a.jar .gradle/7/a.bin"),
    "webpack": ("package.json .gitignore=/dist", "dist/main.js"),
    "next": ("package.json", ".next/static/a.js"),
    "sphinx": ("Makefile conf.py .gitignore=_build/", "_build/html/index.html"),
    "mix": ("mix.exs .gitignore=/_build,/deps", "_build/dev/a.beam deps/phoenix/mix.exs"),
    "composer": ("composer.json .gitignore=/x", "vendor/autoload.php vendor/a/b.php"),
    "go vendor": ("go.mod", "vendor/modules.txt vendor/github.com/a/b.go"),
    "cocoapods": ("Podfile", "Pods/A/a.m"),
    "cmake build": ("CMakeLists.txt", "cmake-out/CMakeCache.txt cmake-out/a.o"),
    "meson build": ("meson.build", "builddir/build.ninja builddir/a.o"),
    "dotnet build": ("App.csproj .gitignore=bin,obj", "bin/Debug/a.dll obj/a.json"),
    "coverage": ("package.json", "coverage/lcov.info coverage/index.html"),
    "cachedir tag": ("", f"anything/CACHEDIR.TAG={TAG} anything/a.bin"),
    "nested memdirignore": ("", "drafts/.memdirignore=old drafts/old/a.md"),
}  # fmt: skip


def tree_of(*texts: str) -> MemoryFs:
    tree = MemoryFs()
    for word in " ".join(texts).replace(TAG, TAG.replace(" ", "\0")).split(" "):
        if word:
            name, _, content = word.partition("=")
            data = content.replace("\0", " ").replace(",", "\n").encode() or b"x\n"
            tree.put_file(f"/app/{name}", [data], mode=0o644, mtime_ns=0, expected=None)
    return tree


def artifacts_of(tree: MemoryFs, folder: Path) -> Artifacts:
    return Artifacts(open_records(folder), tree, FakeClock())


def files(text: str) -> list[str]:
    return [f"/app/{word.partition('=')[0]}" for word in text.replace(TAG, "tag").split(" ") if word]


@pytest.mark.promise("real.artifacts")
@pytest.mark.parametrize("name", SYNCED)
def test_nothing_that_a_person_wrote_stays_behind(name: str, tmp_path: Path) -> None:
    artifacts = artifacts_of(tree_of(*SYNCED[name]), tmp_path)
    for text in SYNCED[name]:
        for path in files(text):
            assert artifacts.holding(path) is None, path
    assert artifacts.met() == []


@pytest.mark.parametrize("name", KEPT)
def test_what_tools_made_stays_here(name: str, tmp_path: Path) -> None:
    manifests, made = KEPT[name]
    artifacts = artifacts_of(tree_of(manifests, made), tmp_path)
    inside = [path for path in files(made) if not path.endswith("/.memdirignore")]
    assert all(artifacts.holding(path) is not None for path in inside)
    assert all(artifacts.holding(path) is None for path in files(manifests))
    met = artifacts.met()
    assert sum(map(artifacts.files_in, met)) == len(inside)


def test_a_pattern_brings_a_folder_back_and_it_is_forgotten(tmp_path: Path) -> None:
    tree = tree_of("package.json node_modules/a/index.js .git/HEAD")
    artifacts = artifacts_of(tree, tmp_path)
    assert artifacts.holding("/app/node_modules/a/index.js") is not None
    assert artifacts.holding("/app/.git/HEAD") is not None
    tree.put_file("/.memdirignore", [b"!node_modules/\n"], mode=0o644, mtime_ns=0, expected=None)
    assert artifacts.released() == ["/app/node_modules"]
    assert artifacts.holding("/app/node_modules/a/index.js") is None
    tree.put_file("/.memdirignore", [b"!*\n"], mode=0o644, mtime_ns=0, expected=tree.fact("/.memdirignore"))
    assert artifacts.released() == ["/app/.git"]
    assert artifacts.met() == []


def repositories() -> dict[str, list[tuple[str, str]]]:
    """Marks and paths of each package in `repositories.txt`."""
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in (Path(__file__).parent / "repositories.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(("  ", "- ", "! ")):
            found[name].append((line[0], line[2:]))
        elif not line.startswith("#"):
            name = line.rpartition(" ")[0]
            found[name] = []
    return found


def test_of_published_packages_only_what_tools_made_stays_here(tmp_path: Path) -> None:
    """Eighty-five of them; what each holds was looked at by hand, not by these rules."""
    wrong = []
    packages = repositories()
    for number, (name, entries) in enumerate(packages.items()):
        tree = tree_of()
        named = "\n".join(f"/{path}" for mark, path in entries if mark == "!")
        tree.put_file("/app/.gitignore", [named.encode() or b"# nothing\n"], mode=0o644, mtime_ns=0, expected=None)
        files = [(mark == "-", f"/app/{path}") for mark, path in entries if mark != "!"]
        for _, path in files:
            tree.put_file(path, [b"x"], mode=0o644, mtime_ns=0, expected=tree.fact(path))
        artifacts = artifacts_of(tree, tmp_path / str(number))
        wrong += [(name, path) for made, path in files if (artifacts.holding(path) is not None) is not made]
    assert wrong == []
    assert len(packages) == 85
    assert sum(mark == "-" for entries in packages.values() for mark, _ in entries) > 60
