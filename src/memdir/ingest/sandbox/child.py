"""One document in one process: confined, read, its text written to a file, the rest told over a pipe."""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from memdir.core.processes import end_with_parent
from memdir.ingest.extractors.formats import Format, refined
from memdir.ingest.extractors.output import TITLE_MAX_CHARS, ExtractionError, Output, OutputFullError, clean
from memdir.ingest.extractors.speech import ENV_MODEL
from memdir.ingest.sandbox.confinement import allow_recognition, bound, close_files
from memdir.ingest.sandbox.messages import SOURCE_FILE, TEXT_FILE

_TOLD_EVERY_S: Final = 0.2
_SYSTEM: Final = (
    *(
        "/usr",
        "/lib",
        "/lib32",
        "/lib64",
        "/bin",
        "/dev/null",
        "/dev/zero",
        "/dev/urandom",
        "/etc/ld.so.cache",
        "/etc/localtime",
    ),
    *("/etc/fonts", "/etc/alternatives", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu"),
)
TOO_LARGE_HINT: Final = "split it or make it smaller"


def run(request: dict[str, Any], pipe: int, server_pid: int) -> None:
    """Does not return."""
    os.setsid()
    end_with_parent(server_pid)
    _tell(pipe, {"pid": os.getpid()})
    folder = Path(request["folder"])
    os.chdir(folder)
    os.environ["TMPDIR"] = os.environ["HOME"] = str(folder)
    close_files(folder, _readable())
    bound(memory_bytes=request["memory_bytes"], recognition_bytes=request["recognition_bytes"], cpu_s=request["cpu_s"])
    try:
        _extract(request, folder, pipe)
        _tell(pipe, {"whole": True})
    except ExtractionError as error:
        _tell(pipe, {"error": error.reason, "hint": error.hint, "needs": error.needs})
    except MemoryError:
        _tell(pipe, {"error": _needs_memory(), "hint": TOO_LARGE_HINT})
    except RecursionError:
        _tell(pipe, {"error": "its parts are nested too deeply", "hint": TOO_LARGE_HINT})
    except OSError as error:
        full = error.errno in (errno.EFBIG, errno.ENOMEM)
        _tell(pipe, {"error": _needs_memory() if full else f"it cannot be read: {error}", "hint": TOO_LARGE_HINT})
    except Exception:  # noqa: BLE001  a library met bytes that it was not written for
        _tell(pipe, {"error": "it is damaged, or of a form that its library does not know", "detail": traceback.format_exc()})
    os._exit(0)


def _readable() -> list[Path]:
    """Python, its packages, programs of the system and what they need; speech weights and languages of text recognition."""
    said = (os.environ.get(ENV_MODEL), os.environ.get("TESSDATA_PREFIX"))
    places = (*_SYSTEM, sys.prefix, sys.base_prefix, *sys.path, *(place for place in said if place))
    return [Path(place) for place in dict.fromkeys(places) if place.startswith("/")]


def _needs_memory() -> str:
    return f"reading it needs more than {resource.getrlimit(resource.RLIMIT_AS)[0] >> 20} MiB of memory"


def _extract(request: dict[str, Any], folder: Path, pipe: int) -> None:
    """Whatever ends it, what was read until then is in the file, and what is known of it is told."""
    source = folder / SOURCE_FILE
    found = refined(Format(kind=request["kind"], media_type=request["media_type"], module=request["module"]), source)
    told_s = 0.0

    def keep() -> None:
        text.write(out.new_text())
        text.flush()

    def progress(done: int, total: int) -> None:
        nonlocal told_s
        keep()
        message: dict[str, Any] = {"done": done, "total": total}
        if time.monotonic() - told_s >= _TOLD_EVERY_S:
            told_s = time.monotonic()
            message["known"] = _known(out)
        _tell(pipe, message)

    def recognising() -> None:
        keep()
        allow_recognition()
        _tell(pipe, {"recognising": True})

    _tell(pipe, {"kind": found.kind})
    out = Output(kind=found.kind, media_type=found.media_type, progress=progress, recognising=recognising)
    out.first_part, out.facts = request.get("first_part", 0), request.get("facts", {})
    with (folder / TEXT_FILE).open("a", encoding="utf-8") as text:
        try:
            import_module(f"memdir.ingest.extractors.{found.module}").extract(source, out)
        except OutputFullError:
            out.truncated = True
        finally:
            keep()
            _tell(pipe, {"known": _known(out)})


def _known(out: Output) -> dict[str, Any]:
    return {
        "kind": out.kind,
        "media_type": out.media_type,
        "engine": out.engine,
        "title": " ".join(clean(out.title).split())[:TITLE_MAX_CHARS],
        "facts": out.facts,
        "truncated": out.truncated,
        "needs": out.needs,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
    }


def _tell(pipe: int, message: dict[str, Any]) -> None:
    os.write(pipe, json.dumps(message).encode() + b"\n")
