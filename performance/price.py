"""What the price of a message buys: the curve of messages against latency, docs/performance/price.md.

    python -m performance.price [--docs docs/performance] [--seeds 2]

Two configurations are run with several prices (`Pace.message_worth_s`) and, last, with the strategy `cas`,
which waits for nobody and hands nothing over. Time is virtual, so the page is the same on every machine.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click

from performance.ablation import varying
from performance.age import line
from performance.harness import A_PATH, command_lines, program, replace_section, show, table_lines
from performance.measured import text
from performance.virtual import PARTS, measured
from runs.figures import number_of
from simulation.scenario import Scenario

PRICES_MS = (0.0, 2.0, 3.0, 5.0, 10.0)
FIGURES = ("server_messages_per_op", "send_p50_ms", "send_p99_ms")
BOTH = ("2-nodes", "25-nodes")  # where it decides most, and where waiting saves least


def tables(seeds: int) -> Iterator[str]:
    """Measure each configuration at each price, and yield its table."""
    with ProcessPoolExecutor() as pool:
        for name in BOTH:
            plain = PARTS[name].scenario(time_limit_s=4.0)
            scenarios: dict[str, Scenario] = {
                **{
                    f"{each:g}": varying(plain, {"message_worth_s": each / 1000})
                    for each in PRICES_MS
                },
                "`cas`": PARTS[name].scenario(time_limit_s=4.0, strategy="cas"),
            }
            rows = (
                [price, *(text(cell.summary(each), each) for each in FIGURES)]
                for price, cell in measured(scenarios, seeds, pool).items()
            )
            yield from ("", f"## {PARTS[name].title}", "")
            yield from table_lines(
                ("price, ms", *(number_of(each).heading for each in FIGURES)), rows
            )


@program(__doc__)
@click.option("--docs", type=A_PATH)
@click.option("--seeds", default=2)
def main(*, docs: Path | None, seeds: int) -> None:
    lines = show(tables(seeds))
    if docs:
        command = command_lines(f".venv/bin/python -m performance.price --seeds {seeds}")
        about = [command, "", line(["leaderless/core"])]
        replace_section(docs / "price.md", "tables", [*about, *lines, ""])


if __name__ == "__main__":
    main()
