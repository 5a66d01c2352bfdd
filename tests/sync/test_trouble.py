"""What keeps the loops from their work is told once, and no longer than it lasts."""

from __future__ import annotations

import errno
import logging

import pytest

from memdir.core.sqlite import DiskFullError
from memdir.fs.errors import FsError
from memdir.sync.trouble import DISK_FULL, Troubles


@pytest.mark.parametrize("error", [DiskFullError("full"), OSError(errno.ENOSPC, "full"), FsError(errno.ENOSPC)])
def test_a_full_disk_is_one_line_of_the_log_however_often_it_is_met(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    troubles = Troubles()
    for _ in range(5):
        troubles.begin("intake", "changes cannot be noted", error)
        troubles.begin("worker", "changes cannot be pushed", error)
    assert troubles.text() == DISK_FULL
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "Traceback" not in caplog.text


def test_a_trouble_lasts_until_the_last_loop_that_met_it_works_again() -> None:
    troubles = Troubles()
    troubles.begin("intake", "changes cannot be noted", DiskFullError("full"))
    troubles.begin("worker", "changes cannot be pushed", DiskFullError("full"))
    troubles.end("intake")
    assert troubles.text() == DISK_FULL
    troubles.end("worker")
    assert troubles.text() is None


def test_a_bug_is_logged_with_its_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    troubles = Troubles()
    for _ in range(5):
        try:
            raise ZeroDivisionError("a bug")
        except ZeroDivisionError as error:
            troubles.begin("feed", "the feed cannot be applied", error)
    assert caplog.text.count("Traceback") == 1
    assert troubles.text() == "the feed cannot be applied: ZeroDivisionError('a bug')"
