"""Documents of strangers are read in a process of their own each: bounded in time, memory and output, without network.

`Sandbox` asks a fork server, which has the libraries loaded and opens no document itself, for a child for each document. What a
document does to its child (a crash, a bomb, code of an attacker) ends with the child.
"""

from memdir.ingest.sandbox.parent import NEEDS_TIME, Extraction, Limits, Sandbox

__all__ = ["NEEDS_TIME", "Extraction", "Limits", "Sandbox"]
