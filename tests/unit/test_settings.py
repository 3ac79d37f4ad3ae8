"""A node's command line, where it keeps the log, and what it says about itself; errors are in tests/process."""

import re
from pathlib import Path
from typing import Any

import pytest

from leaderless.core.limits import Limits
from leaderless.core.shape import Shape
from leaderless.runtime.command_line import parse_options, store_place
from leaderless.runtime.settings import LIN_KV, Settings
from tests.stepped import SteppedCluster


def test_a_node_without_options_has_the_defaults_of_its_options() -> None:
    assert Settings() == parse_options([])


def test_all_of_it() -> None:
    options = {
        "strategy": "cas",
        "store-timeout-ms": "250",
        "log-level": "debug",
        "backend": "trio",
    }
    settings = parse_options([f"--{name}={value}" for name, value in options.items()])
    assert (settings.strategy, settings.options.pace.store_timeout_s) == ("cas", 0.25)
    assert (settings.log_level, settings.backend) == ("debug", "trio")


# ---------------------------------------------------------------- where the log is kept


def test_without_an_option_it_is_the_service_of_the_bench() -> None:
    assert parse_options([]).place is None
    assert store_place(LIN_KV, [], 5.0) is None


def test_options_of_a_store() -> None:
    place = store_place("s3://b/p", ["endpoint=http://there:2?a=b", "region=here"], 5.0)
    assert place
    assert (place.options.endpoint, place.options.region) == ("http://there:2?a=b", "here")
    assert (place.url, place.options.timeout_s) == ("s3://b/p", 5.0)


@pytest.mark.parametrize("register_bytes", [1 << 20, 3 << 20, 1 << 24, 1 << 30])
def test_registers_fit_into_the_objects_of_a_store(register_bytes: int) -> None:
    shape = Shape().for_registers(register_bytes)
    assert shape.register_bytes <= register_bytes
    Limits().fitted(shape).require_fit(shape)  # no line is longer than what a process reads anyway
    assert Limits().fitted(Shape()) == Limits()


# ---------------------------------------------------------------- status


PAGE = (Path(__file__).parents[2] / "docs" / "log" / "node.md").read_text()


def test_the_page_names_every_field_of_status() -> None:
    fields = SteppedCluster(["n0"], "leaderless").ask("n0", {"type": "status"}).keys()
    assert [each for each in fields - {"type", "in_reply_to"} if f"`{each}`" not in PAGE] == []


def test_the_page_lists_the_options_of_the_parser(capsys: Any) -> None:
    try:
        settings: Settings | None = parse_options(["--help"])
    except SystemExit:
        settings = None
    assert settings is None
    shown = set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, flags=re.MULTILINE))
    listed = set(re.findall(r"^\| `(--[a-z-]+)`", PAGE, flags=re.MULTILINE))
    assert listed == shown
