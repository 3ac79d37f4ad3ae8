"""The command `maelstrom`: a bench that is compatible with Maelstrom's.

The bench is no module of this package. Its rooms (`bench`, `workloads`, `runs` and more) import each other by
these names, which other packages may have, too. So they stand in the folder `_bench` of the package, or in the
root of a checkout, and only this command puts that folder on the path.

It needs the packages of the extra `bench`.
"""

import sys
from importlib import import_module
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "_bench"
_CRASHED = 255  # the bench has this status, too, for what kept it from its work


def main() -> None:
    """Run a command of the bench.

    Raises:
        SystemExit: always, with the exit status of the command. Without the packages of the extra `bench` it is
            255, and stderr says what brings them.
    """
    sys.path.insert(0, str(_INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent))
    try:
        run = import_module("bench.commands.main").main
    except ModuleNotFoundError as error:
        install = "pip install '.[bench]' in a checkout of leaderless"
        sys.stderr.write(f"maelstrom: the package {error.name} is missing: {install}\n")
        sys.exit(_CRASHED)
    run()


if __name__ == "__main__":
    main()
