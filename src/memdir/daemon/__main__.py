"""`python -m memdir.daemon ID [--ready-fd N]`: the process behind one mount."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from pathlib import Path

from memdir.core.errors import MemdirError
from memdir.core.heap import few_arenas
from memdir.core.log import log_to_file
from memdir.core.paths import app_paths, explained


def main(arguments: list[str] | None = None) -> int:
    """Mount what `mount.json` of the id says and serve it until it is unmounted. 2 when it could not start."""
    parser = argparse.ArgumentParser(prog="python -m memdir.daemon", description="Serve one mount.")
    parser.add_argument("id", help="the mount's id: the name of its folder")
    parser.add_argument("--ready-fd", type=int, help="file descriptor that gets 'ready', or an error and its hint")
    options = parser.parse_args(arguments)

    def report(text: str) -> None:
        if options.ready_fd is not None:
            fd, options.ready_fd = options.ready_fd, None
            try:
                os.write(fd, text.encode("utf-8", "backslashreplace") + b"\n")
            except BrokenPipeError:
                logging.getLogger(__name__).info("whoever started the mount did not wait for it")
            finally:
                os.close(fd)

    from memdir.core.sqlite import DiskFullError

    few_arenas()
    try:
        from memdir.daemon.lifecycle import MountDaemon
        from memdir.daemon.registry import MountRegistry

        paths = app_paths()
        record = MountRegistry(paths).get(options.id)
        log_to_file(Path(record.log_file))
        daemon = MountDaemon(paths, record)
        daemon.prepare()
    except MemdirError as error:
        logging.getLogger(__name__).warning("not mounted: %s", error.message)
        report(f"{error.message}\n{error.hint}")
        return 2
    except (OSError, DiskFullError) as error:
        logging.getLogger(__name__).warning("not mounted: %s", error)
        known = explained(error if isinstance(error, OSError) else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        hint = "`memdir doctor` checks the disk and the folders that memdir needs"
        report(f"{known.message}\n{known.hint}" if known else f"not mounted: {error}\n{hint}")
        return 2
    except Exception as error:
        logging.getLogger(__name__).exception("not mounted")
        report(f"{type(error).__name__}: {error}")
        return 2
    daemon.serve(on_ready=lambda: report("ready"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
