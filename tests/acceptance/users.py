"""Running the command line as an ordinary user, in a mount namespace of its own where that user may open /dev/fuse."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

import memdir

NOBODY = 65534
_LIMIT_S = 120

_SETUP = """
set -e
mknod "$BASE/fuse" c 10 229
chmod 666 "$BASE/fuse"
mount --make-rprivate /
mount --bind "$BASE/fuse" /dev/fuse
{outside}
cd "$BASE/work"
exec setpriv --reuid={uid} --regid={uid} --clear-groups bash "$BASE/script"
"""


def as_ordinary_user(script: str, *, outside: str = "", env: dict[str, str] | None = None) -> str:
    """Run a shell script as `nobody`; `memdir` is the command. Both of its streams, in the order in which they were written.

    `outside` runs before as root, in the same namespace: mounts made there go away with it.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    interpreter = _public_interpreter()
    base = Path(tempfile.mkdtemp(prefix="memdir-user-"))
    try:
        base.chmod(0o755)
        (base / "work").mkdir()
        os.chown(base / "work", NOBODY, NOBODY)
        command = f'memdir() {{ "{interpreter}" -m memdir.cli "$@"; }}\n'
        (base / "script").write_text(command + script)
        path = os.pathsep.join([str(Path(memdir.__file__).parent.parent), sysconfig.get_path("purelib")])
        variables = {
            "PATH": os.environ["PATH"], "BASE": str(base), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1",
            "HOME": "/nonexistent", "MEMDIR_HOME": str(base / "work" / ".home"),
        }  # fmt: skip
        inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c"]
        done = subprocess.run(
            [*inside, _SETUP.format(outside=outside, uid=NOBODY)], env=variables | (env or {}), timeout=_LIMIT_S, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        return done.stdout
    finally:
        shutil.rmtree(base)


def _public_interpreter() -> str:
    """A Python of this version that another user may start; the one of a virtual environment often lies in somebody's home."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (os.path.realpath(sys.executable), f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        probe = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh", "-c", '"$0" -c ""', candidate]
        if os.path.exists(candidate) and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return candidate
    pytest.skip(f"no {name} that an ordinary user may start")
