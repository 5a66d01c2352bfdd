"""Bytes of files that are not on this machine: fetched when they are read, given up when room is short.

Start with `fetcher`.
"""
