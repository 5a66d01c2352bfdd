"""`memdir bench posix`: the same work on a native folder, on memdir and on every installed peer, in one run."""
