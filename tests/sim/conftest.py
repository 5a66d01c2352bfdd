"""Databases for a module, and silence."""

from tests.sim.lane import quiet, shelf

__all__ = ["quiet", "shelf"]
