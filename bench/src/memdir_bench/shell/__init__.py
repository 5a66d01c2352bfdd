"""Compares the in-process shell with real bash: what scripts do, and how long they take."""
