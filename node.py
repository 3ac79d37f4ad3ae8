"""The node's entry point; `./run.sh --help` tells its options."""

import sys

from leaderless.runtime.main import main

if __name__ == "__main__":
    sys.exit(main())
