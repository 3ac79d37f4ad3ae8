"""A number of the policy is changed in real nodes, beside a busy core."""

from performance.ablation_rows import Run
from performance.virtual import Figures


def test_real_nodes_have_other_numbers() -> None:
    run = Run("2x2 durable", {"message_worth_s": 0.0}, seed=1, real_s=1.0, busy=True)
    patient = run._replace(changes={"message_worth_s": 1.0, "linger_s_max": 0.06})
    usual, slow = run.measure(), patient.measure()
    assert isinstance(usual, Figures)
    assert isinstance(slow, Figures)
    assert slow.p50 > usual.p50 + 15
    assert usual.ok == slow.ok == 1
