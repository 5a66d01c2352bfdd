"""memdir: memory as a directory."""

__version__ = "0.1.0"
