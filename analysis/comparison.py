"""Runs compared: is a difference more than what two series of the same thing would show?"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from scipy import stats

from analysis.schemas import INT, REAL, TEXT, map_groups, struct
from runs.facts import grouped
from runs.operations import Row

CONFIDENCE = 0.95
RESAMPLES = 9_999
SEED = 20261121  # of the resampling: the same runs give the same table
_SETTINGS: Any = {  # of a bootstrap
    "confidence_level": CONFIDENCE,
    "n_resamples": RESAMPLES,
    "method": "percentile",
    "rng": SEED,
}
LESS, MORE, SAME, TOO_FEW = "less", "more", "no difference told", "too few runs"
Compared = dict[str, Any]  # a row of `comparison`
_KEYS = ("workload", "figure")
_ORDER = ("figure", "program", "run_id")
_MEANS = struct(
    **dict.fromkeys((*_KEYS, "program"), TEXT),
    run_count=INT,
    **dict.fromkeys(("mean", "mean_low", "mean_high"), REAL),
)
_ROWS = struct(
    **dict.fromkeys((*_KEYS, "baseline", "other"), TEXT),
    **dict.fromkeys(("baseline_runs", "other_runs"), INT),
    **dict.fromkeys(("baseline_mean", "other_mean", "difference"), REAL),
    **dict.fromkeys(("difference_low", "difference_high", "p_value", "q_value"), REAL),
    comparisons=INT,
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

    The difference is that of the means. Its interval (95 %, of this comparison alone) is a percentile bootstrap
    over the runs of both programs [scipy.stats.bootstrap]; p is that of an exact permutation test of the means
    [scipy.stats.permutation_test]. Of twenty comparisons of the same thing one would have p <= 0.05. So p is
    corrected to q for all comparisons of the workload that can tell a difference, by the procedure of Benjamini
    and Hochberg [scipy.stats.false_discovery_control]: of the differences with q <= 0.05 at most 5 % are
    expected to be none. With few runs the intervals are too narrow, so the verdict asks for two things: that
    the interval leaves out 0, and q <= 0.05.

    A comparison can tell a difference if its values are not all equal, and if there are runs enough for
    p <= 0.05 (four against four, or three against five).

    Args:
        figures: workload, program, run_id, figure, value.
        baselines: by workload, the program that the others are compared with.
    Returns:
        workload, figure, baseline, other, baseline_runs, other_runs, baseline_mean, other_mean, difference
        (other - baseline), difference_low, difference_high, p_value, q_value, comparisons (for how many q is
        corrected; both null where no difference can be told), verdict (less | more | no difference told | too
        few runs: of the other against the baseline); ordered by workload, figure, other.
    """
    groups = figures.groupBy("workload")
    compared = map_groups(groups, partial(_compare_all, baselines=dict(baselines)), _ROWS)
    return compared.orderBy(*_KEYS, "other")


def _mean(rows: pa.Table) -> list[Row]:
    # In a fixed order: what resampling draws depends on it.
    values = rows.sort_by("run_id")["value"].to_numpy()
    low, high = interval(values)
    mean = {"run_count": len(values), "mean": values.mean(), "mean_low": low, "mean_high": high}
    return [{name: rows[name][0].as_py() for name in (*_KEYS, "program")} | mean]


def interval(values: np.ndarray) -> tuple[float | None, float | None]:
    """The confidence interval of the mean; None of a single value, which tells nothing of the spread."""
    if len(values) < 2:
        return None, None
    found = stats.bootstrap((values,), np.mean, **_SETTINGS).confidence_interval
    return float(found.low), float(found.high)


def _compare_all(rows: pa.Table, baselines: Mapping[str, str]) -> list[Compared]:
    workload = rows["workload"][0].as_py()
    baseline = baselines[workload]
    in_order = rows.sort_by([(name, "ascending") for name in _ORDER]).to_pylist()  # as above
    groups = grouped(((row["figure"], row["program"]), row["value"]) for row in in_order)
    names = {"workload": workload, "baseline": baseline}
    compared = [
        names | {"figure": figure, "other": other} | compare(groups[figure, baseline], values)
        for (figure, other), values in groups.items()
        if other != baseline and (figure, baseline) in groups
    ]
    return decided(compared)


def compare(base_values: Sequence[float], other_values: Sequence[float]) -> Compared:
    """The columns of `comparison` from `baseline_runs` on; what cannot be known is left out.

    So is the verdict where `decided` has to say it.
    """
    base, other = np.array(base_values), np.array(other_values)
    row: Compared = {
        "baseline_runs": len(base),
        "other_runs": len(other),
        "baseline_mean": base.mean(),
        "other_mean": other.mean(),
        "difference": other.mean() - base.mean(),
    }
    if min(len(base), len(other)) < 2:
        return row | {"verdict": TOO_FEW}
    samples = (other, base)
    low, high = stats.bootstrap(samples, _difference, **_SETTINGS).confidence_interval
    test = stats.permutation_test(samples, _difference, n_resamples=RESAMPLES, rng=SEED)
    row |= {"difference_low": low, "difference_high": high, "p_value": test.pvalue}
    # The p of groups that do not overlap at all.
    if 2 / comb(len(base) + len(other), len(base)) > 1 - CONFIDENCE:
        return row | {"verdict": TOO_FEW}
    return row if np.ptp(np.concatenate(samples)) else row | {"verdict": SAME}


def decided(compared: Sequence[Compared]) -> list[Compared]:
    """Rows of `compare` with their verdicts, corrected for how many of them are decided here."""
    undecided = [row for row in compared if "verdict" not in row]
    p_values = [row["p_value"] for row in undecided]
    q_values = stats.false_discovery_control(p_values) if p_values else ()
    for row, q_value in zip(undecided, q_values, strict=True):
        row |= {"q_value": float(q_value), "comparisons": len(undecided)}
        row["verdict"] = _verdict(row)
    return [*compared]


def _verdict(row: Compared) -> str:
    """What may be said of a difference, from its interval and its q."""
    low, high = row["difference_low"], row["difference_high"]
    if row["q_value"] > 1 - CONFIDENCE or low <= 0 <= high:
        return SAME
    return LESS if high < 0 else MORE


def _difference(other: np.ndarray, base: np.ndarray, axis: int = -1) -> np.ndarray:
    difference: np.ndarray = other.mean(axis=axis) - base.mean(axis=axis)
    return difference
