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


def main() -> None:
    """Run a command of the bench.

    Raises:
        SystemExit: always, with the exit status of the command; 255 without the packages of the bench.
    """
    sys.path.insert(0, str(_INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent))
    try:
        run = import_module("bench.commands.main").main
    except ModuleNotFoundError as error:
        print(  # noqa: T201
            f"maelstrom: the package {error.name} is missing. The bench is installed with the extra"
            " `bench`: pip install '.[bench]' in a checkout of leaderless",
            file=sys.stderr,
        )
        sys.exit(255)
    run()


if __name__ == "__main__":
    main()
