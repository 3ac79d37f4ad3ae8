"""`python -m leaderless` is the command `leaderless`."""

import sys

from leaderless.cli import main

if __name__ == "__main__":
    sys.exit(main())
