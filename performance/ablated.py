"""What is ablated: for every number that says how long something waits, its other values.

The first alternative of a number is neutral: as if its mechanism were not there. The others are sensible
values, mostly half and twice the default. A number has the name of its field in `Pace`; one of `Limits` or
`Options` stands behind `limits.` or `options.`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from leaderless.core.pace import Pace
from leaderless.core.strategy import Options

Changes = Mapping[str, float]  # name of a number -> its value

NEVER = 1e9  # seconds, deviations: longer than any run, more than any spread
MANY = 1_000_000_000  # counts


def _values(name: str, *values: float) -> dict[str, tuple[Changes, ...]]:
    return {name: tuple({name: each} for each in values)}


# Where a neutral value would break a relation of `Pace`, another number goes with it.
ALTERNATIVES: Mapping[str, tuple[Changes, ...]] = {
    **_values("message_worth_s", 0.0, 0.001, 0.02),
    **_values("linger_s_max", 0.0, 0.002, 0.04),
    **_values("hedge_deviations", NEVER, 1.5),
    **_values("hedge_s_min", 0.02, 0.3),
    **_values("late_s_max", NEVER, 1.0),
    **_values("rest_every", MANY, 2),
    **_values("store_timeout_s", 0.25, 4.0),
    **_values("timeout_deviations", 0, 8),
    **_values("timeout_growth", 1.000_001, 16),
    **_values("timeout_unmeasured_max_s", 0.001, 4.0),
    **_values("timeout_s_max", NEVER, 2.0),
    **_values("error_pause_s", 0.001, 0.1),
    **_values("error_pause_max_s", Pace().error_pause_s, 4.0),
    **_values("store_attempts", 1, 6),
    **_values("error_patience_s", Pace().error_pause_s, 1.0),
    **_values("reading_share", 1, 0.1),
    **_values("failures_max", MANY, 1),
    **_values("revived_after_leases", 1, MANY),
    **_values("push_period_s", 0.0, 0.05),
    **_values("limits.lanes", 1, 8),
    **_values("limits.batch_bytes", 1_024, 65_536),
    "limits.commit_bytes": (
        {"limits.commit_bytes": 1 << 20},
        {"limits.commit_bytes": 1_024, "limits.batch_bytes": 1_024},
    ),
    **_values("limits.commits_idle_s", 0.1, 60.0),
    **_values("options.freshness_s", 0.0, 1.0),
    **_values("options.combine", False),
}


def missing(names: Iterable[str]) -> list[str]:
    """The fields of `Pace` without an entry among `names`, and the names that are no field of anything."""
    names, options = set(names), Options()
    known = {each.name for each in fields(Pace)}
    strangers = [
        name
        for name in names - known
        if not hasattr(_section(options, name), name.rpartition(".")[2])
    ]
    return sorted({*known - names, *strangers})


def varied(options: Options, changes: Changes) -> Options:
    """These options with the numbers that `changes` has. Raises `ValueError` for a bad relation."""
    of: dict[str, dict[str, Any]] = {"pace": {}, "limits": {}, "options": {}}
    for name, value in changes.items():
        section, _, field = name.rpartition(".")
        of[section or "pace"][field] = value
    return options._replace(
        pace=replace(options.pace, **of["pace"]),
        limits=replace(options.limits, **of["limits"]),
        **of["options"],
    )


def default_of(name: str) -> float:
    """The default of a number."""
    value: float = getattr(_section(Options(), name), name.rpartition(".")[2])
    return value


def told(changes: Changes) -> str:
    """Changes in words."""
    return ", ".join(
        f"{name.rpartition('.')[2]} {_number(value)}" for name, value in changes.items()
    )


def _number(value: float) -> str:
    return "∞" if value >= NEVER else f"{value:g}"


def _section(options: Options, name: str) -> Any:
    return {"options": options, "limits": options.limits}.get(name.rpartition(".")[0], options.pace)
