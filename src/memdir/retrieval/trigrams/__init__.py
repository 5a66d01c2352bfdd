"""Exact text and regular expressions over originals: which files can match, by their trigrams, and which lines do.

The index is derived: any file of it may be deleted. It says which contents cannot match; everything else is read and
matched.
"""
