"""The command line: sub-commands are imported only when they run, so that each starts fast."""

import sys

import click

from bench.system import lenient_stdout

EXIT_BAD_ARGUMENTS, EXIT_CRASHED = 254, 255


def _check() -> click.Command:
    from commands.check import check

    return check


def _serve() -> click.Command:
    from commands.serve import serve

    return serve


def _simulate() -> click.Command:
    from commands.simulate import simulate

    return simulate


def _sweep() -> click.Command:
    from commands.sweep import sweep

    return sweep


def _test() -> click.Command:
    from commands.test import test

    return test


# Sub-command -> its description, and the function that imports it.
COMMANDS = {
    "check": ("judge histories, ours or the real tool's", _check),
    "serve": ("show the runs of a store in a browser", _serve),
    "simulate": ("run clusters on a virtual clock, from seeds", _simulate),
    "sweep": ("run a matrix of tests, resumable", _sweep),
    "test": ("run a test and judge it", _test),
}


class LazyGroup(click.Group):
    """A click group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return COMMANDS[cmd_name][1]() if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (text, _) in sorted(COMMANDS.items())])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """A Maelstrom-compatible bench for distributed systems that speak JSON over stdin and stdout."""


def main() -> None:
    """Run the command line, with the exit statuses of the real tool."""
    try:
        with lenient_stdout():
            cli.main(prog_name="maelstrom", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_BAD_ARGUMENTS)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted; what was written so far is kept.", err=True)
        sys.exit(EXIT_CRASHED)
    except Exception:
        import traceback

        traceback.print_exc()
        click.echo("The bench itself broke: please report the lines above.", err=True)
        sys.exit(EXIT_CRASHED)
