"""The command line: sub-commands are imported only when they run, so that each starts fast."""

import sys
from contextlib import redirect_stderr
from importlib import import_module
from io import StringIO
from typing import cast

import click

from bench.failure import EXIT_BAD_ARGUMENTS, EXIT_CRASHED
from bench.flags import did_you_mean
from bench.system import lenient_stdout
from runs.house import IN_A_CHECKOUT, MAELSTROM, NODE

COMMANDS = {
    "check": "judge histories, ours or the real tool's",
    "demo": "run the example nodes, and tell their verdicts",
    "doc": "say what workloads ask of a node",
    "explore": "search every schedule of a small cluster",
    "glomers": "grade a node by a challenge of Gossip Glomers",
    "learn": "write the chapters, and the nodes in them, into a folder",
    "new": "write a first node in Python, JavaScript, Go or shell",
    "serve": "show the runs of a store in a browser",
    "simulate": "run clusters on a virtual clock, from seeds",
    "sweep": "run a matrix of tests, resumable",
    "tab": "write a page that simulates nodes in a browser tab",
    "test": "run a test and judge it",
}
# Where a command stands if not here: above the bench, which knows it by this name alone.
OF_SIMULATION = {"explore", "simulate"}


class LazyGroup(click.Group):
    """A click group that imports a command when it is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        room = "simulation" if cmd_name in OF_SIMULATION else "bench"
        return cast(click.Command, getattr(import_module(f"{room}.commands.{cmd_name}"), cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, but a mistyped command gets a suggestion."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = did_you_mean(args[0], sorted(COMMANDS))
            raise click.UsageError(f"{error.format_message()}{near}", ctx) from None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=IN_A_CHECKOUT and f"More{IN_A_CHECKOUT}: the analysis by Spark, and models in TLA+.",
)
def cli() -> None:
    """A Maelstrom-compatible bench for distributed systems that speak JSON over stdin and stdout."""


def _show(error: click.ClickException) -> None:
    from bench.terminal import say

    with redirect_stderr(StringIO()) as told:
        error.show()
    say(told.getvalue().rstrip("\n"), err=True)
    if isinstance(error, click.NoSuchOption) and error.ctx and error.ctx.info_name == "test":
        click.echo(
            f"Options of the node stand after `--`: {MAELSTROM} test ... -- {error.option_name} ..."
            f" ({NODE} --help lists those of our node)",
            err=True,
        )


def main() -> None:
    """Run the command line, with the exit statuses of the real tool."""
    try:
        with lenient_stdout():
            cli.main(prog_name="maelstrom", standalone_mode=False)
    except click.ClickException as error:
        _show(error)
        sys.exit(EXIT_BAD_ARGUMENTS)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted; what was written so far is kept.", err=True)
        sys.exit(EXIT_CRASHED)
    except Exception:
        import traceback

        from bench.terminal import say

        say(traceback.format_exc(), err=True)
        click.echo("The bench itself broke: please report the lines above.", err=True)
        sys.exit(EXIT_CRASHED)
