"""What a run is called: its program, by its options, its cell in a sweep, or its folder."""

from pathlib import Path
from typing import Any

import pytest

from runs.facts import Settings, program, strategy

FILE, OURS = "/home/me/kafka.py", "/x/run.sh"


@pytest.mark.parametrize(
    ("options", "named", "ours"),
    [
        ({"bin": FILE}, "kafka.py", None),
        ({"bin": FILE, "args": ["--fast"]}, "kafka.py --fast", None),
        ({"bin": FILE, "args": ["--strategy", "mine"]}, "kafka.py --strategy mine", None),
        ({"bin": FILE, "args": ["a b"]}, "kafka.py 'a b'", None),
        ({"bin": FILE, "args": ["--fast"], "name": "second try"}, "second try", None),
        ({"bin": OURS}, "leaderless", "leaderless"),
        ({"bin": OURS, "args": ["--strategy", "cas"]}, "cas", "cas"),
        ({"bin": OURS, "args": ["--commits=deferred", "--strategy=cas"]},
         "cas --commits=deferred", "cas"),
        ({"bin": OURS, "args": ["--strategy"]}, "run.sh", None),
        ({"scenario": {"strategy": "leader"}}, "leader", "leader"),
        ({}, None, None),
    ],
)  # fmt: skip
def test_two_runs_have_one_program_only_if_started_alike(
    options: dict[str, Any], named: str | None, ours: str | None
) -> None:
    assert (program(options), strategy(options)) == (named, ours)


@pytest.mark.parametrize(
    ("folder", "cell", "workload", "named"),
    [
        ("mine/store/kafka/20261121T100709.972", None, "kafka", "mine"),
        ("mine/broadcast/20261121T100709.972", None, "broadcast", "mine"),
        ("stores/valid-3-nodes", None, None, "valid-3-nodes"),
        ("cell.1/store/kafka/20261121T100709.972", {"strategy": "cas"}, "kafka", "cas"),
        ("cell.1/store/kafka/20261121T100709.972", {"bin": "a/b.py", "args": "-x"}, "kafka", "b.py -x"),
        ("cell.1/store/kafka/20261121T100709.972", {"program": "old", "rate": 5}, "kafka", "old"),
    ],
)  # fmt: skip
def test_a_run_of_the_real_tool_is_called_by_its_cell_or_its_store(
    folder: str, cell: dict[str, Any] | None, workload: str | None, named: str
) -> None:
    found = Settings.of({}).placed(Path("/home/me") / folder, cell)
    assert (found.workload, found.program) == (workload, named)
