"""A process that appends until it is killed: `python -m tests.appending URL ENDPOINT NAME`.

It prints a line `KEY OFFSET VALUE` after each append that was acknowledged.
"""

import sys

import anyio

from leaderless import open_log
from tests.servers import options_of


async def main(*arguments: str) -> None:
    """Append as several tasks, without end."""
    url, endpoint, name = arguments
    options = options_of(url, endpoint)
    given = {
        "endpoint": options and options.endpoint,
        "access_key": options and options.access_key,
        "secret_key": options and options.secret_key,
        "region": options and options.region,
    }
    async with open_log(url, **given) as log, anyio.create_task_group() as tasks:  # type: ignore[arg-type]

        async def append(task: int) -> None:
            number = 0
            while True:
                value = f"{name}.{task}.{number}"
                offset = await log.append(f"k{task % 2}", value)
                sys.stdout.write(f"k{task % 2} {offset} {value}\n")
                sys.stdout.flush()
                number += 1

        for task in range(4):
            tasks.start_soon(append, task)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
