"""What a node says about itself, and that its page names every option and every field."""

import re
from pathlib import Path
from typing import Any

from leaderless.core.strategy import Options
from leaderless.runtime.settings import Settings, parse
from simulation.stepped import SteppedCluster

PAGE = (Path(__file__).parents[2] / "docs" / "node.md").read_text()


def status(cluster: SteppedCluster, node: str) -> dict[str, Any]:
    """The answer, which comes although nothing is delivered to or from the store."""
    cluster.request("c1", node, {"type": "status"})
    return cluster.to_clients[-1].body


def test_it_is_answered_at_once_before_anything_was_read() -> None:
    cluster = SteppedCluster(["n0", "n1"], "leaderless", Options())
    answer = status(cluster, "n0")
    assert answer["type"] == "status_ok"
    assert (answer["node"], answer["view_age_s"], answer["head"]["version"]) == ("n0", None, 0)
    assert cluster.flying == {}


def test_it_shows_what_waits_and_what_is_done() -> None:
    cluster = SteppedCluster(["n0", "n1"], "leaderless", Options())
    cluster.request("c1", "n0", {"type": "send", "key": "k", "msg": 1})
    assert status(cluster, "n0")["sends_waiting"] == 1  # the head is read
    cluster.deliver(next(iter(cluster.flying)))
    cluster.deliver(next(iter(cluster.flying)))
    assert status(cluster, "n0")["batches_under_way"] == 1
    cluster.run(0.2, every_s=0.01)
    done = status(cluster, "n0")
    assert (done["batches_under_way"], done["sends_waiting"], done["batches_to_commit"]) == (
        0,
        0,
        0,
    )
    assert (done["head"]["end"], done["head"]["by"], done["late_peers"]) == (1, "n0", [])
    assert done["compaction"].startswith("idle: 0 of ")
    assert (done["limits"]["lanes"], done["pace"]["store_timeout_s"]) == (4, 1.0)


def test_another_strategy_refuses_it() -> None:
    answer = status(SteppedCluster(["n0"], "cas", Options()), "n0")
    assert (answer["type"], answer["code"]) == ("error", 10)


def test_the_page_names_every_field() -> None:
    cluster = SteppedCluster(["n0"], "leaderless", Options())
    fields = status(cluster, "n0").keys() - {"type", "in_reply_to"}
    assert [field for field in fields if f"`{field}`" not in PAGE] == []


def test_the_page_lists_the_options_of_the_parser(capsys: Any) -> None:
    try:
        settings: Settings | None = parse(["--help"])
    except SystemExit:
        settings = None
    assert settings is None
    shown = set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, flags=re.MULTILINE))
    listed = set(re.findall(r"^\| `(--[a-z-]+)`", PAGE, flags=re.MULTILINE))
    assert listed == shown
