"""`--strict`: every acknowledged message must be polled through every node at the end."""

import pytest
from history_language import history

from workloads.kafka.checker import check, explain

# Two nodes, two workers: processes 0, 2, ... talk to n0 and 1, 3, ... to n1.
OPTIONS = {"strict": True, "nodes": ["n0", "n1"], "concurrency": 2}
REPLICATED = """
0 send x=1@0
0 crash
1 crash
2 assign x rewind
3 assign x rewind
2 poll x=1@0
3 poll x=1@0
"""
UNREPLICATED = """
0 send x=1@0
1 poll x=1@0      # before the final polls: does not count
0 crash
1 crash
2 assign x rewind
3 assign x rewind
2 poll x=1@0
3 poll
"""


def test_a_replicated_log_is_valid():
    assert check(history(REPLICATED), OPTIONS)["valid?"] is True


def test_a_node_that_cannot_serve_everything_is_found_only_by_a_strict_check():
    ops = history(UNREPLICATED)
    assert check(ops, {})["valid?"] is True
    result = check(ops, OPTIONS)
    assert result["bad-error-types"] == ("unreplicated",)
    (case,) = result["unreplicated"]["errs"]
    assert (case["node"], case["key"], case["value"]) == ("n1", "x", 1)
    (finding,) = explain(result, ops)
    assert "node n1" in finding.sentence
    assert [op.f for op in finding.witness] == ["send"]


def test_workers_of_one_node_count_together():
    options = {"strict": True, "nodes": ["n0"], "concurrency": 2}
    assert check(history(UNREPLICATED), options)["valid?"] is True


def test_a_history_without_final_polls_is_unknown_unless_it_is_invalid_anyway():
    assert check(history("0 send x=1@0\n1 poll x=1@0"), OPTIONS)["valid?"] == "unknown"
    assert check(history("0 send x=1@0\n1 poll x=1@0,1@1"), OPTIONS)["valid?"] is False


def test_strict_checking_needs_to_know_the_nodes():
    with pytest.raises(ValueError, match="nodes and the concurrency"):
        check(history(REPLICATED), {"strict": True})
