"""Documents that nobody here wrote: more than 300 files of Debian packages, each with a phrase that is to be found in it.

`data/debian.tsv`: package, path, phrase. The phrases of texts were taken from what other programs read (pdftotext, pandoc, w3m,
Gnumeric, catdoc, Python's mail parser), those of pictures by looking at them. Words are compared, not what stands between them.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections import defaultdict
from pathlib import Path

import pytest

from memdir.ingest.extractors.formats import HEAD_BYTES, family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Sandbox
from memdir.ingest.text import decode

KNOWN = Path(__file__).parent / "data" / "debian.tsv"
STEP_LIMIT_S, DOWNLOAD_LIMIT_S = 120, 900
GONE_MAX = 30
"""So many of the files may be in no package any more: Debian's point releases change packages."""


def entries() -> list[tuple[str, str, str]]:
    lines = KNOWN.read_text(encoding="utf-8").splitlines()
    return [(package, path, phrase) for package, path, phrase in (line.split("\t") for line in lines)]


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def downloaded(packages: set[str], folder: Path) -> dict[str, Path]:
    """The archives of those packages that there are."""
    known = subprocess.run(
        ["apt-cache", "pkgnames"], capture_output=True, text=True, timeout=STEP_LIMIT_S, check=True
    ).stdout.split()
    command = ["apt-get", "download", "-qq", *sorted(packages & set(known))]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=DOWNLOAD_LIMIT_S, check=False)
    return {archive.name.partition("_")[0]: archive for archive in folder.glob("*.deb")}


def contents(archive: Path, paths: set[str]) -> dict[str, bytes]:
    """The files of a package that are there."""
    packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], capture_output=True, timeout=STEP_LIMIT_S, check=True)
    found = {}
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        for member in files:
            name = member.name.removeprefix("./")
            handle = files.extractfile(member) if member.isreg() and name in paths else None
            if handle is not None:
                found[name] = handle.read()
    archive.unlink()
    return found


def text_of(sandbox: Sandbox, data: bytes, name: str) -> str:
    found = family_of(data[:HEAD_BYTES], name)
    if found is None:
        decoded = decode(data)
        return decoded.text if decoded is not None else ""
    try:
        return sandbox.extract([data], found).text
    except ExtractionError as error:
        return f"({error.reason})"


def test_the_list_has_300_files_of_25_kinds() -> None:
    assert len(entries()) >= 300
    assert len({path.rpartition(".")[2].lower() for _, path, _ in entries()}) >= 25


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.promise("extract.debian")
def test_phrases_of_documents_in_debian_packages_are_found(tmp_path: Path) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("no Debian")
    by_package: dict[str, set[str]] = defaultdict(set)
    for package, path, _ in entries():
        by_package[package].add(path)
    archives = downloaded(set(by_package), tmp_path)
    if not archives:
        pytest.skip("no Debian package can be downloaded")
    files = {package: contents(archive, by_package[package]) for package, archive in archives.items()}
    gone = [(package, path) for package, path, _ in entries() if path not in files.get(package, {})]
    sandbox = Sandbox()
    missed = [
        (path, phrase)
        for package, path, phrase in entries()
        if path in files.get(package, {}) and words(phrase) not in words(text_of(sandbox, files[package][path], path))
    ]
    sandbox.close()
    assert not missed
    assert len(gone) <= GONE_MAX, gone
