"""`/v1/profile`: what is known of a container's owner, as texts."""

from __future__ import annotations

from memdir.api.wire import Wire


class ProfilePage(Wire):
    name: str
    """`core.md`, `recent.md`, `people.md`, `projects.md`, `changes.md`."""
    text: str
    """Markdown, at most 64 KiB."""


class ProfileAnswer(Wire):
    """GET /v1/profile?containerTag="""

    static: list[str]
    dynamic: list[str]
    """As in `profile.md`, the most important first."""
    pages: list[ProfilePage]
    """Longer ones, with the lines that say it: the folder `profile/` of a mount."""
