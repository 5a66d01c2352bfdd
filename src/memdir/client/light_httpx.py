"""httpx without its command line.

`import httpx` also imports `httpx._main`, and with it rich and pygments when they happen to be installed: a fifth of a second
that every mount would wait for before it can sync. httpx does without when that module cannot be imported.
"""

from __future__ import annotations

import sys
from typing import Any, Final, cast

_NAME: Final = "httpx._main"
_modules = cast("dict[str, Any]", sys.modules)
_is_held_back = _NAME not in _modules
if _is_held_back:
    _modules[_NAME] = None  # what importlib takes for "cannot be imported"
try:
    import httpx
finally:
    if _is_held_back:
        del _modules[_NAME]

__all__ = ["httpx"]
