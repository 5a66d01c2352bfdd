"""Moments as people type them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from memdir.cli.times import here, past_moment

NOW = datetime(2026, 11, 22, 9, 15, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def vienna(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import time

    monkeypatch.setenv("TZ", "Europe/Vienna")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026-11-20", "2026-11-20T00:00:00+01:00"),
        ("2026-11-20 18:30", "2026-11-20T18:30:00+01:00"),
        ("2026-07-20 18:30", "2026-07-20T18:30:00+02:00"),
        ("2026-11-20T18:30:00Z", "2026-11-20T19:30:00+01:00"),
        ("2026-11-20T18:30:00-05:00", "2026-11-21T00:30:00+01:00"),
        ("10:00", "2026-11-22T10:00:00+01:00"),
        ("10:30", "2026-11-21T10:30:00+01:00"),
        ("2h ago", "2026-11-22T08:15:30+01:00"),
        ("90 minutes ago", "2026-11-22T08:45:30+01:00"),
        ("3 days", "2026-11-19T10:15:30+01:00"),
        ("1 week ago", "2026-11-15T10:15:30+01:00"),
        ("yesterday", "2026-11-21T10:15:30+01:00"),
        ("Yesterday  18:00", "2026-11-21T18:00:00+01:00"),
        ("today", "2026-11-22T00:00:00+01:00"),
        ("now", "2026-11-22T10:15:30+01:00"),
    ],
)
def test_a_moment_is_read_in_the_zone_of_this_machine(text: str, iso: str) -> None:
    assert past_moment(text, now=NOW) == datetime.fromisoformat(iso)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "25:00", "2026-13-01", "2026-11-23", "today 23:59", "-1h ago", "2h from now", "99999999d", "yesterday noon"],
)
def test_what_is_no_moment_of_the_past_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        past_moment(text, now=NOW)


def test_times_of_the_wire_are_shown_in_the_zone_of_this_machine() -> None:
    assert here("2026-11-22T09:15:30.123Z") == "2026-11-22 10:15:30"
    assert here(None) == "?"
