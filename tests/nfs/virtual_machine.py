"""A small Linux in QEMU whose kernel mounts our NFS server: the client that others wrote, where this machine's kernel has none.

The guest is a kernel, its modules for virtio and NFS, and a static busybox in an initramfs; it runs `guest.sh` as its init and
talks on its serial console. QEMU's user network shows the host's 127.0.0.1 as 10.0.2.2, so our server sees a connection of the
user who runs QEMU.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

KERNEL_VARIABLE: Final = "MEMDIR_TEST_KERNEL"
"""A folder with `boot/vmlinuz-*` and `lib/modules/*`, as a Debian kernel package unpacks; default: the root."""
HOST: Final = "10.0.2.2"
GUEST_SCRIPT: Final = Path(__file__).with_name("guest.sh")
_WANTED: Final = ("virtio_pci", "virtio_net", "nfsv3")
_TIMEOUT_S: Final = 100
_QEMU: Final = "qemu-system-x86_64"


def missing() -> str:
    """What is not here; "" when all is."""
    if shutil.which(_QEMU) is None:
        return f"{_QEMU} is not installed"
    if _busybox() is None:
        return "no static busybox (Debian: busybox-static)"
    if _kernel() is None:
        return f"no kernel with an NFS client below {_base()} ({KERNEL_VARIABLE})"
    return ""


def run(folder: Path, *, port: int, export: str) -> str:
    """Boot, run the script against the server, and what it said on the console."""
    kernel, modules = _kernel() or (Path(), Path())
    image = folder / "initramfs"
    image.write_bytes(_initramfs(modules, port=port, export=export))
    done = subprocess.run(
        [
            _QEMU, "-accel", "tcg", "-cpu", "max", "-m", "512", "-nographic", "-no-reboot", "-kernel", str(kernel),
            "-initrd", str(image), "-append", "console=ttyS0 quiet panic=-1", "-netdev", "user,id=n",
            "-device", "virtio-net-pci,netdev=n,romfile=",
        ],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    return (done.stdout + done.stderr).decode("utf-8", "replace").replace("\r", "")


def _base() -> Path:
    return Path(os.environ.get(KERNEL_VARIABLE, "/"))


def _busybox() -> Path | None:
    found = shutil.which("busybox")
    if found is None or b"interpreter" in subprocess.run(["file", "-L", found], capture_output=True, check=False).stdout:
        return None
    return Path(found)


def _kernel() -> tuple[Path, Path] | None:
    for modules in sorted((_base() / "lib" / "modules").glob("*"), reverse=True):
        image = _base() / "boot" / f"vmlinuz-{modules.name}"
        if image.exists() and any(modules.glob("kernel/fs/nfs/nfsv3.ko")):
            return image, modules
    return None


def _ordered(modules: Path) -> Iterator[Path]:
    """The wanted modules behind those that they need."""
    known = {path.stem.replace("-", "_"): path for path in modules.rglob("*.ko")}
    done: set[str] = set()

    def walk(name: str) -> Iterator[Path]:
        if name in done or name not in known:  # built in
            return
        done.add(name)
        data = known[name].read_bytes()
        at = data.find(b"\0depends=") + len(b"\0depends=")
        needed = data[at : data.index(b"\0", at)].decode().split(",") if at >= len(b"\0depends=") else []
        for one in filter(None, needed):
            yield from walk(one.replace("-", "_"))
        yield known[name]

    for name in _WANTED:
        yield from walk(name)


def _initramfs(modules: Path, *, port: int, export: str) -> bytes:
    """A cpio archive in the format `newc` of the kernel's documentation (buffer-format.rst)."""
    busybox = _busybox()
    assert busybox is not None
    parts = [_entry(name, 0o040755, b"") for name in ("bin", "dev", "proc", "sys", "mnt", "modules")]
    parts.append(_entry("dev/console", 0o020600, b"", device=(5, 1)))
    parts.append(_entry("bin/busybox", 0o100755, busybox.read_bytes()))
    loaded = []
    for number, path in enumerate(_ordered(modules)):
        loaded.append(f"modules/{number:02d}-{path.name}")
        parts.append(_entry(loaded[-1], 0o100644, path.read_bytes()))
    script = GUEST_SCRIPT.read_text(encoding="utf-8")
    for name, value in {"@MODULES@": " ".join(loaded), "@HOST@": HOST, "@PORT@": str(port), "@EXPORT@": export}.items():
        script = script.replace(name, value)
    parts.append(_entry("init", 0o100755, script.encode()))
    parts.append(_entry("TRAILER!!!", 0, b""))
    return b"".join(parts)


def _entry(name: str, mode: int, data: bytes, *, device: tuple[int, int] = (0, 0)) -> bytes:
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name.encode() + b"\0"
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
