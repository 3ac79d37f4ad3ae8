"""A number of the policy is changed in real nodes, beside a busy core."""

from performance.ablation_rows import Run
from performance.virtual import Figures


def test_real_nodes_have_other_numbers() -> None:
    run = Run("lone client", {}, seed=1, real_s=1.0, busy=True)
    waits = {"commit_linger_s": 0.015, "message_worth_s": 1.0, "company_luck_min": 0.0}
    patient = run._replace(changes=waits)
    usual, slow = run.measure(), patient.measure()
    assert isinstance(usual, Figures)
    assert isinstance(slow, Figures)
    assert slow.p50 > 15 > usual.p50
    assert usual.ok == slow.ok == 1
