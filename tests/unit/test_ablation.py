"""The harness of ablations: its table of numbers, its rows, its arithmetic, and what it keeps."""

from concurrent.futures import ProcessPoolExecutor
from math import exp, inf
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from leaderless.core.strategy import Options
from performance import ablation, ablation_effects
from performance.ablated import ALTERNATIVES, default_of, missing, told, varied
from performance.ablation_effects import Ablation, Baseline, Found, Kept, verdict
from performance.ablation_rows import ROWS, Run
from performance.virtual import Figures

SAME = Figures(p50=10, p99=20, longest=30, messages=2, per_second=100, ok=1, poll_p99=4)
BASE = Run("", {}, 0)
NO_POOL: Any = None


def test_every_number_of_the_pace_has_other_values() -> None:
    assert missing(ALTERNATIVES) == []
    without = {name for name in ALTERNATIVES if name != "rest_every"} | {"limits.nonsense"}
    assert missing(without) == ["limits.nonsense", "rest_every"]


def test_a_number_without_other_values_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation, "missing", lambda _: ["new_wait_s"])
    result = CliRunner().invoke(ablation.main, ["--rows", "2x2 durable"])
    assert result.exit_code
    assert "new_wait_s" in result.output


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_each_other_value_is_one_that_a_node_takes(name: str) -> None:
    for changes in ALTERNATIVES[name]:
        assert changes[name] != default_of(name)
        assert varied(Options(), changes) != Options()


def test_changes_are_told_without_their_section() -> None:
    assert told({"limits.lanes": 1, "rest_every": 1_000_000_000}) == "lanes 1, rest_every ∞"


@pytest.mark.parametrize("row", ROWS)
def test_the_nodes_of_a_run_have_its_changes_and_its_own_key(row: str) -> None:
    run = Run(row, {"rest_every": 3, "limits.lanes": 2}, seed=1)
    options = run.scenario.node_options
    assert (options.pace.rest_every, options.limits.lanes) == (3, 2)
    others = [run._replace(seed=2), run._replace(changes={})]
    others += [run._replace(real_s=1.0), run._replace(real_s=1.0, busy=True)]
    assert len({each.key for each in (run, *others)}) == 5


class Scripted(Kept):
    """Results by what changes and by seed."""

    def __init__(self, after: Figures | str, chance: float = 0.0) -> None:
        self.after = after
        self.chance = chance
        self.before: str | None = None

    def ensure(self, runs: Any, pool: ProcessPoolExecutor) -> None:
        """Nothing is missing."""

    def __getitem__(self, run: Run) -> Figures | str:
        if run.changes:
            return self.after
        return self.before or SAME._replace(p99=SAME.p99 * (1 + self.chance * (-1) ** run.seed))


def effects(kept: Kept) -> list[ablation_effects.Effect]:
    return list(Ablation(kept, NO_POOL, BASE, 2, 2).effects(["2x2 durable"], {"rest_every": 3}))


def test_a_move_of_5_percent_is_an_effect_and_a_smaller_one_is_none() -> None:
    assert effects(Scripted(SAME._replace(p50=10.4, per_second=104, poll_p99=3.9))) == []
    [slow, many] = effects(Scripted(SAME._replace(p50=10.6, per_second=110)))
    assert (slow.figure, many.figure) == ("p50", "per_second")
    assert slow.worse > 0 > many.worse  # more operations are better
    assert slow.told() == "2x2 durable: send p50 10 → 10.6 (+6%)"
    assert many.told() == "2x2 durable: ops/s 100 → 110 (+10%)"


def test_a_move_within_what_chance_does_is_no_effect() -> None:
    kept = Scripted(SAME._replace(p99=24), chance=0.1)
    assert effects(kept) == []
    kept.chance = 0.01
    assert [each.figure for each in effects(kept)] == ["p99"]


def test_a_run_that_breaks_an_invariant_is_the_worst_effect() -> None:
    [broken] = effects(Scripted("broken: Progress"))
    assert broken.worse == inf
    assert broken.told() == "2x2 durable: broken: Progress in 2 of 2 runs"


def test_verdicts() -> None:
    changes = {"rest_every": 3}
    [worse] = effects(Scripted(SAME._replace(p50=12)))
    [better] = effects(Scripted(SAME._replace(p50=8)))
    assert verdict([Found(changes, [worse]), Found(changes, [])]) == "pays"
    assert verdict([Found(changes, [better])]) == "costs"
    assert verdict([Found(changes, [worse]), Found(changes, [better])]) == "pays and costs"
    assert verdict([Found(changes, [])]) == "moves nothing"


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    made: list[Run] = []

    def measure(run: Run) -> Figures:
        made.append(run)
        return SAME._replace(p50=10 if not run.changes else 20)

    monkeypatch.setattr(Run, "measure", measure)
    return made


def test_what_is_kept_is_not_run_again_until_the_code_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, file = counted(monkeypatch), tmp_path / "runs.jsonl"
    run = BASE._replace(row="2x2 durable", seed=1)
    for _ in range(2):
        kept = Kept(file, real=True)
        kept.ensure([run, run], NO_POOL)
        assert kept[run] == SAME
    assert made == [run]
    monkeypatch.setattr(ablation_effects, "_digest", lambda: "changed")
    Kept(file, real=True).ensure([run], NO_POOL)
    assert made == [run, run]


def test_a_page_is_written_and_more_seeds_run_where_the_outcome_is_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = counted(monkeypatch)
    words = ["--fields", "rest_every", "--rows", "2x2 durable", "--real", "1", "--seeds", "1"]
    words += ["--candidate", "rest_every=5,limits.lanes=1", "--kept", str(tmp_path / "runs.jsonl")]
    result = CliRunner().invoke(ablation.main, [*words, "--more", "2", "--docs", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "ablation-real.md").read_text()
    assert (
        "| candidate 1 |  | rest_every 5, lanes 1 | 2x2 durable: send p50 10 → 20 (+100%) |" in page
    )
    assert "| `rest_every` | 8 | rest_every ∞ |" in page
    assert "| 10 ± 0% | 20 ± 0% |" in page
    assert len([run for run in made if run.changes]) == 3  # twice as slow is beyond all doubt
    assert len([run for run in made if not run.changes]) == 2


def test_a_busy_core_is_for_real_processes() -> None:
    result = CliRunner().invoke(ablation.main, ["--busy"])
    assert "Add --real" in result.output


def test_runs_of_the_same_seed_are_pairs() -> None:
    levels = (1, 3, 2, 9, 4)
    baseline = Baseline([SAME._replace(p99=10 * each) for each in levels])
    slower = [SAME._replace(p99=11 * each) for each in levels]
    moved, chance = baseline.difference("p99", slower)
    assert exp(moved) == pytest.approx(1.1)
    assert chance == pytest.approx(0, abs=1e-9)  # each seed says the same
    moved, chance = baseline.difference("p99", slower[:1])
    assert chance > abs(moved)  # one seed says nothing


def test_a_default_that_breaks_is_an_error() -> None:
    broken = Scripted(SAME)
    broken.before = "broken: Progress"
    with pytest.raises(ValueError, match="2x2 durable, as it is: broken: Progress"):
        effects(broken)
