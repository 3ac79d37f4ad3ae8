"""`python -m analysis.live URL`: follow a log, and keep its windows for `./maelstrom serve`."""

import os
from pathlib import Path

import click

from analysis.cli import Stopped
from analysis.errors import AnalysisError, Interrupted


@click.command()
@click.argument("url")
@click.option("--topic", help="The topic there.")
@click.option("--endpoint", help="Of an S3-compatible server, else AWS_ENDPOINT_URL.")
@click.option("--region", help="Of the bucket, else AWS_REGION.")
@click.option(
    "--window", "window_s", type=click.FloatRange(min=0.1), default=1.0, show_default=True,
    help="Width of a window, in seconds.",
)  # fmt: skip
@click.option(
    "--every", "every_s", type=click.FloatRange(min=0), default=1.0, show_default=True,
    help="Seconds between two looks at the log.",
)  # fmt: skip
@click.option(
    "--store", type=click.Path(file_okay=False, path_type=Path), default=Path("results"), show_default=True,
    help="The store that ./maelstrom serve shows.",
)  # fmt: skip
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the windows and the checkpoint.  [default: STORE/live/NAME, by the URL]",
)  # fmt: skip
@click.option("--master", default="local[2]", show_default=True, help="Spark master to run on.")
def main(
    url: str,
    *,
    topic: str | None,
    endpoint: str | None,
    region: str | None,
    window_s: float,
    every_s: float,
    store: Path,
    output: Path | None,
    master: str,
) -> None:
    """Follow the log at URL while it grows: records, latency and lag in windows of time.

    It waits for a log that is not there yet. Ctrl-C stops it; the same command goes on from there.
    """
    from analysis.live.job import Following, default_folder, follow, wait_for_log
    from analysis.spark import session
    from leaderless.errors import LogError

    endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL")
    named = {"url": url, "topic": topic, "endpoint": endpoint, "region": region}
    options = {name: value for name, value in named.items() if value}
    folder = output or default_folder(store, f"{url}/{topic}" if topic else url)
    following = Following(options, folder, round(window_s * 1e9), every_s)
    try:
        for look, _ in enumerate(wait_for_log(following)):
            if look == 0:
                click.echo(f"There is no log at {following.url} yet; waiting for it.")
        with session(master, brief=False) as spark:
            click.echo(f"Following {following.url} into {folder}  (Ctrl-C ends)")
            follow(spark, following)
    except (Interrupted, KeyboardInterrupt):
        raise Stopped("Stopped by Ctrl-C. The same command goes on from there.") from None
    except (AnalysisError, LogError) as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main(prog_name="python -m analysis.live")
