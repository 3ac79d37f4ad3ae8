"""Runs compared: is a difference more than what two series of the same thing would show?"""

from collections.abc import Mapping
from functools import partial
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from scipy import stats

from analysis.schemas import INT, REAL, TEXT, Row, map_groups, struct

CONFIDENCE = 0.95
RESAMPLES = 9_999
SEED = 20261121  # of the resampling: the same runs give the same table
LESS, MORE, SAME, TOO_FEW = "less", "more", "no difference told", "too few runs"
_KEYS = ("workload", "figure")
_MEANS = struct(
    **dict.fromkeys((*_KEYS, "program"), TEXT),
    run_count=INT,
    **dict.fromkeys(("mean", "mean_low", "mean_high"), REAL),
)
_ROWS = struct(
    **dict.fromkeys((*_KEYS, "baseline", "other"), TEXT),
    **dict.fromkeys(("baseline_runs", "other_runs"), INT),
    **dict.fromkeys(("baseline_mean", "other_mean", "difference"), REAL),
    **dict.fromkeys(("difference_low", "difference_high", "p_value"), REAL),
    verdict=TEXT,
)


def means(figures: DataFrame) -> DataFrame:
    """The mean of each figure over the runs of each program, with its bootstrap confidence interval.

    Args:
        figures: workload, program, run_id, figure, value.
    Returns:
        workload, figure, program, run_count, mean, mean_low, mean_high (95 % interval, percentile bootstrap
        [scipy.stats.bootstrap]; of one run: null), ordered by the first three.
    """
    return map_groups(figures.groupBy(*_KEYS, "program"), _mean, _MEANS).orderBy(*_KEYS, "program")


def comparison(figures: DataFrame, baselines: Mapping[str, str]) -> DataFrame:
    """Each program against the baseline of its workload, figure by figure.

    The difference is that of the means. Its interval (95 %) is a percentile bootstrap over the runs of both
    programs [scipy.stats.bootstrap]. With few runs such intervals are too narrow, so the verdict asks for
    two things: that the interval leaves out 0, and that an exact permutation test of the means
    [scipy.stats.permutation_test] gives p <= 0.05. Where there are too few runs for any p to be so small
    (three against three), that is the verdict.

    Args:
        figures: workload, program, run_id, figure, value.
        baselines: by workload, the program that the others are compared with.
    Returns:
        workload, figure, baseline, other, baseline_runs, other_runs, baseline_mean, other_mean, difference
        (other - baseline), difference_low, difference_high, p_value, verdict (less | more | no difference
        told | too few runs: of the other against the baseline); ordered by workload, figure, other.
    """
    groups = figures.groupBy(*_KEYS)
    compared = map_groups(groups, partial(_compare_all, baselines=dict(baselines)), _ROWS)
    return compared.orderBy(*_KEYS, "other")


def _mean(rows: pa.Table) -> list[Row]:
    # In a fixed order: what resampling draws depends on it.
    values = rows.sort_by("run_id")["value"].to_numpy()
    low, high = interval(values)
    mean = {"run_count": len(values), "mean": values.mean(), "mean_low": low, "mean_high": high}
    group = {name: rows[name][0].as_py() for name in (*_KEYS, "program")}
    return [group | mean]


def interval(values: np.ndarray) -> tuple[float | None, float | None]:
    """The confidence interval of the mean; None of a single value, which tells nothing of the spread."""
    if len(values) < 2:
        return None, None
    found = stats.bootstrap((values,), np.mean, **_settings()).confidence_interval
    return float(found.low), float(found.high)


def _compare_all(rows: pa.Table, baselines: Mapping[str, str]) -> list[Row]:
    groups: dict[str, list[float]] = {}
    for row in rows.sort_by([("program", "ascending"), ("run_id", "ascending")]).to_pylist():
        groups.setdefault(row["program"], []).append(row["value"])
    names = {name: rows[name][0].as_py() for name in _KEYS}
    names["baseline"] = baselines[names["workload"]]
    base = np.array(groups.pop(names["baseline"], []))
    return [
        {**names, "other": name, **compare(base, np.array(values))}
        for name, values in groups.items()
        if len(base)
    ]


def compare(base: np.ndarray, other: np.ndarray) -> dict[str, Any]:
    """The columns of `comparison` from `baseline_runs` on; what cannot be known is left out."""
    row = {
        "baseline_runs": len(base),
        "other_runs": len(other),
        "baseline_mean": base.mean(),
        "other_mean": other.mean(),
        "difference": other.mean() - base.mean(),
        "verdict": TOO_FEW,
    }
    if min(len(base), len(other)) < 2:
        return row
    samples = (other, base)
    low, high = stats.bootstrap(samples, _difference, **_settings()).confidence_interval
    test = stats.permutation_test(samples, _difference, n_resamples=RESAMPLES, rng=_random())
    bounds = {"difference_low": low, "difference_high": high, "p_value": test.pvalue}
    return row | bounds | {"verdict": verdict(len(base), len(other), low, high, test.pvalue)}


def verdict(base_runs: int, other_runs: int, low: float, high: float, p_value: float) -> str:
    """What may be said of the difference, from its interval and the test's p."""
    # The p of groups that do not overlap at all.
    if 2 / comb(base_runs + other_runs, base_runs) > 1 - CONFIDENCE:
        return TOO_FEW
    if p_value > 1 - CONFIDENCE or low <= 0 <= high:
        return SAME
    return LESS if high < 0 else MORE


def _difference(other: np.ndarray, base: np.ndarray, axis: int = -1) -> np.ndarray:
    difference: np.ndarray = other.mean(axis=axis) - base.mean(axis=axis)
    return difference


def _settings() -> dict[str, Any]:
    return {
        "confidence_level": CONFIDENCE,
        "n_resamples": RESAMPLES,
        "method": "percentile",
        "rng": _random(),
    }


def _random() -> np.random.Generator:
    return np.random.default_rng(SEED)
