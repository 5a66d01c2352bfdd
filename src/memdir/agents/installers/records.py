"""What was put into whose file, kept until it is taken out again: `agent-hosts/installed.json` in the data folder, and beside
it the files as they were, each under the SHA-256 of its bytes. All of it is the user's alone (0600): settings may hold keys."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.agents.installers.filetext import Done
from memdir.agents.installers.hosts import Kind, Part
from memdir.agents.installers.jsontext import Put
from memdir.core.errors import StorageError
from memdir.core.markedblock import Inserted
from memdir.core.paths import AppPaths, write_private

_MAX_BYTES: Final = 4 << 20
_BACKUPS_MAX: Final = 50
"""Files as they were that nobody needs for a way back any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A part in the file, and the hosts that want it there."""

    hosts: tuple[str, ...]
    done: Done


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One file."""

    path: str
    """Links followed."""
    kind: Kind
    new: str
    """What a file that was not there began as."""
    original_sha256: str | None
    """Of the bytes before us, which are kept; None: it was not there."""
    written_sha256: str
    """Of the bytes that we left."""
    folders: tuple[str, ...]
    """Made for the file, innermost first."""
    entries: tuple[Entry, ...]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Records:
    """The records of this user, by path."""

    def __init__(self, paths: AppPaths) -> None:
        self._folder = paths.data_dir / "agent-hosts"
        self._file = self._folder / "installed.json"

    @property
    def lock_file(self) -> Path:
        return self._folder / ".lock"

    def backup_file(self, digest: str) -> Path:
        return self._folder / "backups" / digest

    def load(self) -> dict[str, Record]:
        """StorageError for a file that cannot be read: nothing may be taken out by guessing."""
        try:
            with open(self._file, "rb") as handle:
                fields = json.loads(handle.read(_MAX_BYTES))
            return {record.path: record for record in map(_record, fields["files"])}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StorageError(
                f"{self._file} cannot be read: {error}", hint=f"the files as they were: {self._folder}"
            ) from None

    def save(self, records: dict[str, Record]) -> None:
        if not records:
            self._file.unlink(missing_ok=True)
            return
        files = [dataclasses.asdict(records[path]) for path in sorted(records)]
        write_private(self._file, json.dumps({"version": 1, "files": files}, indent=1).encode("ascii"))

    def prune(self, records: dict[str, Record]) -> None:
        """Let the oldest backups go that no record needs."""
        needed = {record.original_sha256 for record in records.values()}
        free = [file for file in self.backup_file("").glob("*") if file.name not in needed]
        for file in sorted(free, key=lambda file: (file.stat().st_mtime_ns, file.name))[:-_BACKUPS_MAX]:
            file.unlink(missing_ok=True)

    def keep(self, data: bytes) -> None:
        """Keep the bytes of a file as it was."""
        file = self.backup_file(sha256(data))
        if not file.exists():
            write_private(file, data)

    def original(self, record: Record) -> bytes | None:
        """The bytes before us; None when there was no file. StorageError when they are gone or are others now."""
        if record.original_sha256 is None:
            return None
        file = self.backup_file(record.original_sha256)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise StorageError(f"{file} cannot be read: {error.strerror}") from None
        if sha256(data) != record.original_sha256:
            raise StorageError(f"{file} was changed")
        return data


def _record(fields: Any) -> Record:
    entries = tuple(Entry(hosts=tuple(entry["hosts"]), done=_done(entry["done"])) for entry in fields["entries"])
    return Record(**{**fields, "folders": tuple(fields["folders"]), "entries": entries})


def _done(fields: Any) -> Done:
    part = fields["part"]
    put, inserted = fields["put"], fields["inserted"]
    return Done(
        part=Part(path=tuple(part["path"]), key=part["key"], value=part["value"], lines=tuple(part["lines"])),
        put=None if put is None else Put(**{**put, "path": tuple(put["path"])}),
        inserted=None if inserted is None else Inserted(**{**inserted, "lines": tuple(inserted["lines"])}),
    )
