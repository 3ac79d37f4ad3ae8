"""`./maelstrom doc`: what each workload asks of a node, and what errors a node may answer."""

import click

import workloads
from bench.flags import OneOf
from runs.house import HOUSE
from workloads.interface import ERRORS

_PAGES = HOUSE / "docs" / "bench"


@click.command()
@click.argument("names", nargs=-1, type=OneOf(workloads.NAMES), metavar="[WORKLOAD]...")
def doc(names: tuple[str, ...]) -> None:
    """Print what workloads ask of a node: their requests, replies and rules; without a name, of all."""
    for name in names or workloads.NAMES:
        click.echo(f"# {name}\n\n{workloads.prose(name)}\n")
    click.echo(
        "# Errors that a node may answer, and whether the operation certainly did not happen\n\n"
        '    {"type": "error", "in_reply_to": <msg_id>, "code": 11, "text": "..."}\n'
    )
    for code, (name, definite) in ERRORS.items():
        click.echo(f"    {code:2}  {name:24}{'certain' if definite else 'unknown'}")
    click.echo(f"\nPages: {_PAGES / 'workloads.md'} and {_PAGES / 'from-maelstrom.md'}")
