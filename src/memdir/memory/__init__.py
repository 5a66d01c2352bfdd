"""From documents under the memory paths to facts: extract (rules), reconcile (pure), profile (what is shown)."""

from __future__ import annotations

from memdir.memory.extract import extract
from memdir.memory.profile import Profile, profile
from memdir.memory.reconcile import Change, reconcile

__all__ = ["Change", "Profile", "extract", "profile", "reconcile"]
