"""Exact text and POSIX extended regular expressions: what they mean, and the lines of a file that they match."""
