"""The checker agrees with the real one: on 90 judged histories, and on the stores of five real runs."""

import json
from pathlib import Path

import pytest

from runs import edn
from runs.history import read_history
from workloads.kafka.checker import check, error_count
from workloads.kafka.checker.hash_order import clojure_hash, map_order, set_order

FIXTURES = Path(__file__).parent.parent / "fixtures"
JUDGED = FIXTURES / "judged-histories"
EXPECTED = [json.loads(line) for line in (JUDGED / "expected.jsonl").read_text().splitlines()]
STORES = sorted((FIXTURES / "maelstrom-stores").iterdir())


def test_there_are_90_judged_histories_and_five_stores():
    assert len(EXPECTED) == 90
    assert len(STORES) == 5


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda each: each["file"])
def test_agrees_with_the_judged_history(expected):
    result = check(read_history(JUDGED / f"{expected['file']}.gz"), {})
    assert result["valid?"] == expected["valid"]
    assert sorted(result["bad-error-types"]) == sorted(expected["bad"])
    counts = {each: error_count(each, result[each]) for each in result["error-types"]}
    assert counts == expected["errors"]
    assert round(result["worst-realtime-lag"]["lag"] * 1e9) == expected["lag"]
    assert _cases(result, "lost-write", "key", "value") == sorted(expected["lost"])
    assert _cases(result, "duplicate", "key", "value", "count") == sorted(expected["dups"])


def _cases(result, anomaly, *fields):
    cases = result.get(anomaly, {"errs": ()})["errs"]
    return sorted([case[field] for field in fields] for case in cases)


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_agrees_with_results_edn_of_a_real_run_to_the_last_witness(store):
    real = edn.loads((store / "results.edn").read_text())["workload"]
    ours = edn.loads(edn.dumps(check(read_history(store / "history.edn"), {})))
    assert ours == real


def test_walks_maps_and_sets_in_the_order_of_the_real_one():
    # Hashes of (hash 1), (hash "a") ... in Clojure; the order of a real poll's answer with 17 keys.
    assert [clojure_hash(value) for value in (0, 1, "")] == [0, 1392991556, 0]
    printed = _largest_map(STORES[0])
    assert [key for key, _ in map_order(dict(sorted(printed.items())))] == list(printed)
    assert set_order(printed) == list(printed)


def _largest_map(store):
    answers = (
        op.value[0][1]
        for op in read_history(store / "history.edn")
        if op.f == "poll" and op.type == "ok"
    )
    return max(answers, key=len)
