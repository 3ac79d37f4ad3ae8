"""The command `leaderless`: `leaderless node` runs a node, and the others work on a log in a store.

What a command needs is imported when it runs, so one that needs more packages costs the others nothing. With
`--json` a command prints one JSON object (`tail`: one a record), also for an error. Without it `read` and
`tail` print a line a record, and errors go to stderr.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import leaderless.api.commands
import leaderless.api.group_commands
import leaderless.api.tables  # noqa: F401 - these declare the commands
from leaderless import __version__
from leaderless.api.command import COMMANDS
from leaderless.arguments import COMMON, DEFAULT_STORE, add_arguments
from leaderless.errors import Indefinite, LogError

EXAMPLES = """\
examples:
  leaderless init --store sqlite:///orders.db
  leaderless --store sqlite:///orders.db produce eu '{"item": 7}'
  leaderless --store sqlite:///orders.db read eu
  leaderless --store sqlite:///orders.db --json tail eu --offset 0"""
EXIT_STATUSES = """\
exit status: 0 done; 1 an error, or `fsck` found something, or `ack` met another offset; 2 wrong arguments;
130 interrupted"""
INTERRUPTED = 130
SUMMARIES = {
    "node": "run a node that speaks Maelstrom's protocol on stdin and stdout",
    **{name: command.summary for name, command in COMMANDS.items()},
}
_FORM: Any = {
    "formatter_class": argparse.RawDescriptionHelpFormatter,
    "allow_abbrev": False,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the name of the command and its arguments; `None`: those of the process.

    Returns:
        The exit status of the command.

    Raises:
        SystemExit: `--help` or `--version` was given (0), or the arguments are wrong (2).
    """
    given = sys.argv[1:] if arguments is None else arguments
    found = _parser().parse_args(given)
    before = given[: len(given) - len(found.arguments) - 1]
    run = _node if found.command == "node" else partial(_run, found.command)
    return run([*before, *found.arguments])


def _node(arguments: Sequence[str]) -> int:
    from leaderless.runtime.lean import import_anyio

    import_anyio(arguments)
    from leaderless.runtime.main import main as run_node

    return run_node(arguments, program="leaderless node")


def _run(name: str, arguments: Sequence[str]) -> int:
    import logging

    import anyio

    from leaderless.api.output import Plain, show

    options = _parser_of(name).parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(Plain("%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    try:
        result = anyio.run(COMMANDS[name].run, options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LogError as error:
        told = {
            "error": str(error),
            "kind": type(error).__name__,
            "may_have_happened": isinstance(error, Indefinite),
        }
        show(told, options.json, sys.stdout if options.json else sys.stderr)
        return 1
    if result is not None:
        show(result, options.json)
    return 1 if result is not None and "error" in result else 0


def _parser() -> argparse.ArgumentParser:
    rows = [f"  {name:15}{summary}" for name, summary in SUMMARIES.items()]
    parser = argparse.ArgumentParser(
        prog="leaderless",
        usage="%(prog)s [--version] [options] COMMAND [arguments] [options]",
        description="A Kafka-style log without a leader.",
        epilog="\n".join(["commands:", *rows, "", EXAMPLES, "", EXIT_STATUSES]),
        **_FORM,
    )
    parser.add_argument("--version", action="version", version=f"leaderless {__version__}")
    parser.add_argument("command", choices=SUMMARIES, metavar="COMMAND", help="one of those below")
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="its arguments; leaderless COMMAND --help shows them",
    )
    return _with_common(parser)


def _parser_of(name: str) -> argparse.ArgumentParser:
    from leaderless.store.options import URLS

    command = COMMANDS[name]
    example = f"leaderless {name} {command.example}".rstrip()
    keys = "Keys of a store come from the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
    parser = argparse.ArgumentParser(
        prog=f"leaderless {name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=f"example:\n  {example}\n\nstores:\n{URLS}\n\n{keys}\n\n{EXIT_STATUSES}",
        **_FORM,
    )
    add_arguments(parser, command.arguments)
    return _with_common(parser)


def _with_common(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    add_arguments(parser.add_argument_group("options of every command on a log"), COMMON)
    parser.set_defaults(
        store=os.environ.get("LEADERLESS_STORE", DEFAULT_STORE),
        peers=os.environ.get("LEADERLESS_PEERS", "machine"),
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
