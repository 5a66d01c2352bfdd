"""What can go wrong between a user's wish to mount and a working mount."""

from __future__ import annotations

from memdir.core.errors import BusyError, MemdirError


class MountError(MemdirError):
    """The mount or unmount did not happen; `hint` says what to do."""


class MountBusyError(BusyError):
    """Something is mounted there already, or files in the mount are still open."""
