"""What the installer makes hosts run: `python -I -S …/hookrun.py --host HOST`.

Isolated and without `site`, the interpreter starts in half the time, reads no `.pth` file, and takes no module from the folder
that the host works in; so this one says itself where memdir is. Short, because a script is compiled each time it runs.
"""

import sys

sys.path.append(__file__.rsplit("/", 3)[0])

from memdir.agents.hook import main

main()
