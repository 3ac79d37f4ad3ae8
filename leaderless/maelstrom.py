"""The command `maelstrom`: a bench that is compatible with Maelstrom's.

The bench is no module of this package. Its rooms (`bench`, `workloads`, `runs` and more) import each other by
these names, which other packages may have, too. So they stand in the folder `_bench` of the package, or in the
root of a checkout, and only this command puts that folder on the path.

It needs the packages of the extra `bench`.
"""

import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Run a command of the bench.

    Raises:
        SystemExit: always, with the exit status of the command. Without the packages of the extra `bench` it is
            255, and stderr says what brings them.
    """
    installed = Path(__file__).resolve().with_name("_bench")
    sys.path.insert(0, str(installed if installed.is_dir() else installed.parents[1]))
    try:
        run = import_module("bench.commands.main").main
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"maelstrom: the package {error.name} is missing: pip install '.[bench]' in a checkout of"
            " leaderless\n"
        )
        sys.exit(255)  # as of a bench that could not do its work
    run()


if __name__ == "__main__":
    main()
