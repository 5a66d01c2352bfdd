"""`python -m memdir.cli`: the same as the `memdir` script, for places where that is not on PATH."""

import sys

from memdir.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
