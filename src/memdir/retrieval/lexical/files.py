"""The files of one container's index: a manifest and the segments it names."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import CorruptError
from memdir.core.paths import ensure_private_dir
from memdir.retrieval import derived_index as index
from memdir.retrieval.lexical.arrays import FileSink, read_arrays
from memdir.retrieval.lexical.segment import Segment
from memdir.retrieval.lexical.terms import TERMS_VERSION

log = logging.getLogger(__name__)

MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1
_SUFFIX: Final = ".segment"
_HINT: Final = "it is made again from the store by itself"


class Files:
    """One thread at a time may write; the manifest's generation goes up by one with each change."""

    def __init__(self, folder: Path) -> None:
        """The folder is made when something is written."""
        self.folder = folder
        self._generation = 0
        self._numbers = itertools.count()
        self._named: frozenset[str] = frozenset()

    def load(self, *, verify: bool = True) -> list[tuple[str, Segment]]:
        """Segments and their names. Whatever is not whole, or of another version, is taken away, and nothing is there."""
        try:
            found = self.read(verify=verify)
        except CorruptError as error:
            log.warning("%s; the words of its passages are read again", error.message)
            self.clear()
            return []
        index.sweep(self.folder)
        self._named = frozenset(path.name for path in self.folder.glob(f"*{_SUFFIX}")) if self.folder.is_dir() else frozenset()
        self._tidy({name for name, _ in found})
        return found

    def read(self, *, verify: bool) -> list[tuple[str, Segment]]:
        """What the manifest names; CorruptError when that is not there or not what was written. Changes nothing."""
        path = self.folder / MANIFEST
        if not path.exists():
            return []
        manifest = self._manifest(path)
        if (manifest.get("format"), manifest.get("terms")) != (_FORMAT, TERMS_VERSION):
            raise CorruptError(f"{path} is of another version", hint=_HINT)
        found = []
        for one in manifest["segments"]:
            arrays = read_arrays(self.folder / one["name"], verify=verify)
            try:
                segment = Segment.of(arrays)
            except KeyError as error:
                raise CorruptError(f"{self.folder / one['name']} lacks {error}", hint=_HINT) from error
            if segment.size != one["rows"]:
                raise CorruptError(f"{self.folder / one['name']} has {segment.size} of {one['rows']} rows", hint=_HINT)
            found.append((one["name"], segment))
        self._generation = int(manifest["generation"])
        self._numbers = itertools.count(1 + max((int(name.removesuffix(_SUFFIX)) for name, _ in found), default=-1))
        return found

    def _manifest(self, path: Path) -> dict[str, Any]:
        try:
            manifest = json.loads(path.read_bytes())
            names = [one["name"].removesuffix(_SUFFIX) for one in manifest["segments"]]
            ours = all(name.isdigit() for name in names) and isinstance(manifest["generation"], int)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptError(f"{path} cannot be read: {error}", hint=_HINT) from error
        if not ours:
            raise CorruptError(f"{path} is no manifest of ours", hint=_HINT)
        assert isinstance(manifest, dict)
        return manifest

    def sink(self) -> tuple[str, FileSink]:
        """Where the next segment is written, and its name. It counts once `commit` names it."""
        ensure_private_dir(self.folder)
        name = f"{next(self._numbers):08d}{_SUFFIX}"
        return name, FileSink(self.folder / name)

    def commit(self, segments: Sequence[tuple[str, Segment]]) -> None:
        """These are the segments from now on; files of others go."""
        ensure_private_dir(self.folder)
        manifest = {
            "format": _FORMAT,
            "terms": TERMS_VERSION,
            "generation": self._generation + 1,
            "segments": [{"name": name, "rows": segment.size} for name, segment in segments],
        }
        index.write_synced(self.folder / MANIFEST, [json.dumps(manifest, sort_keys=True).encode()])
        self._generation += 1
        self._tidy({name for name, _ in segments})

    def discard(self, name: str) -> None:
        """Take a segment away that no manifest has named."""
        index.remove(self.folder / name)

    def _tidy(self, names: set[str]) -> None:
        """Take away what the manifest names no more (or what a process that died did not get to name)."""
        for name in sorted(self._named - names):
            index.remove(self.folder / name)
        self._named = frozenset(names)

    def clear(self) -> None:
        """Take all files away, the manifest first."""
        if self.folder.is_dir():
            index.remove(self.folder / MANIFEST)
            index.remove(self.folder)
        self._named = frozenset()
