"""Checking one configuration: run TLC, and compare what it says with what the manifest says."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from specs.tools import output, tlc
from specs.tools.manifest import Configuration, Manifest


@dataclass(frozen=True)
class Result:
    """What came out of one configuration, and how that differs from the manifest."""

    configuration: Configuration
    outcome: output.Outcome
    duration_s: float
    differences: tuple[str, ...]


def _differences(
    configuration: Configuration, outcome: output.Outcome, duration_s: float, limit_s: float
) -> Iterator[str]:
    if outcome.verdict == "error":
        yield f"TLC could not check it: {outcome.message.splitlines()[0]}"
        return
    if outcome.verdict != configuration.expect:
        yield f"expected {configuration.expect}, got {outcome.verdict}"
    expected = configuration.distinct_states
    if expected is not None and outcome.distinct_states != expected:
        yield f"expected {expected} distinct states, got {outcome.distinct_states}"
    if duration_s > limit_s:
        yield f"took {duration_s:.0f} s, more than {limit_s:.0f} s ({configuration.time_class})"


def check(configuration: Configuration, limit_s: float, workers: str = "1") -> Result:
    """Run TLC on one configuration.

    Args:
        limit_s: its time class in seconds; TLC is stopped at twice that.
        workers: threads of TLC.

    Raises:
        specs.tools.tlc.TlcUnavailableError: Java or TLC is missing.
    """
    small = configuration.size == "small"
    try:
        text, duration_s = tlc.run(
            configuration.module,
            configuration.config_text(),
            deadlock=configuration.deadlock,
            workers=workers,
            heap_mb=1024 if small else 4096,
            long_run=not small,
            timeout_s=2 * limit_s,
        )
    except subprocess.TimeoutExpired:
        outcome = output.Outcome("error", None, message=f"stopped after {2 * limit_s:.0f} s")
        duration_s = 2 * limit_s
    else:
        outcome = output.parse(text, configuration.properties)
    differences = tuple(_differences(configuration, outcome, duration_s, limit_s))
    return Result(configuration, outcome, duration_s, differences)


def check_all(
    manifest: Manifest,
    configurations: Iterable[Configuration],
    *,
    jobs: int,
    workers: str,
    progress: Callable[[Result], None],
) -> list[Result]:
    """Check several configurations, `jobs` at a time; the longest classes start first."""
    limits = manifest.time_classes
    ordered = sorted(configurations, key=lambda c: -limits[c.time_class])

    def one(configuration: Configuration) -> Result:
        result = check(configuration, limits[configuration.time_class], workers)
        progress(result)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        results = {r.configuration.title: r for r in pool.map(one, ordered)}
    return [results[c.title] for c in manifest.configurations if c.title in results]
