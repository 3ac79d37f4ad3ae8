"""The command line: sub-commands are imported only when they run, so that each starts fast."""

import sys
from importlib import import_module

import click

from bench.stdout import lenient_stdout

EXIT_BAD_ARGUMENTS, EXIT_CRASHED = 254, 255

# Sub-command -> what it does, and the module in which it is a function of that name.
COMMANDS = {
    "check": ("judge histories, ours or the real tool's", "bench.commands.check"),
    "serve": ("show the runs of a store in a browser", "analysis.pages.command"),
    "simulate": ("run clusters on a virtual clock, from seeds", "simulation.command"),
    "sweep": ("run a matrix of tests, resumable", "bench.commands.sweep"),
    "test": ("run a test and judge it", "bench.commands.test"),
}


class LazyGroup(click.Group):
    """A click group that knows its commands by name and imports one when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name][1]), cmd_name)
        return command

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
