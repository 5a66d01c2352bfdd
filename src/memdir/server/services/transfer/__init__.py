"""A container as an archive: written from one moment, taken over in steps that can be repeated.

Start with `exporting`.
"""
