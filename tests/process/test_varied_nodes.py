"""Numbers of the policy in real nodes, beside a busy core."""

import pytest
from click.testing import CliRunner

from performance.ablation import busy_core, main, result_of


def test_real_nodes_have_other_numbers() -> None:
    with busy_core(on=True):
        usual, eager = (
            result_of("2 nodes", each, 1, 1.0) for each in ({}, {"options.freshness_s": 0})
        )
    assert not isinstance(usual, str)
    assert not isinstance(eager, str)
    messages = "server_messages_per_op"
    assert (eager[messages] or 0) > (usual[messages] or 0) + 0.5  # each poll reads the head
    assert usual["failed"] == eager["failed"] == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--busy"], "Add --real"),
        (["--real", "1", "--rows", "kills"], "only the simulator has kills"),
    ],
)
def test_what_real_processes_do_not_have_is_refused(options: list[str], why: str) -> None:
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 2
    assert why in result.output
