"""A node's command line, where it keeps the log, and what it says about itself; errors are in tests/process."""

import re
from pathlib import Path
from typing import Any

import pytest

from leaderless.core.limits import Limits
from leaderless.core.shape import Shape
from leaderless.core.strategies import STRATEGIES
from leaderless.runtime.command_line import parse_options, store_place
from leaderless.runtime.settings import LIN_KV, Settings
from tests.stepped import SteppedCluster


def test_defaults() -> None:
    settings = parse_options([])
    assert settings.strategy in STRATEGIES
    assert (settings.options.pace.store_timeout_s, settings.log_level, settings.backend) == (
        1.0,
        "warning",
        "asyncio",
    )


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


@pytest.mark.parametrize("milliseconds", ["0", "-1", "nan", "inf", "soon", ""])
def test_a_timeout_is_a_positive_number(milliseconds: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(["--store-timeout-ms", milliseconds])
    assert ended.value.code == 2


def test_options_are_not_abbreviated() -> None:
    with pytest.raises(SystemExit):
        parse_options(["--strat", "cas"])


# ---------------------------------------------------------------- where the log is kept


def test_without_an_option_it_is_the_service_of_the_bench() -> None:
    assert parse_options([]).place is None
    assert store_place(LIN_KV, [], 5.0) is None


def test_options_of_a_store() -> None:
    place = store_place("s3://b/p", ["endpoint=http://there:2?a=b", "region=here"], 5.0)
    assert place
    assert (place.options.endpoint, place.options.region) == ("http://there:2?a=b", "here")
    assert (place.url, place.options.timeout_s) == ("s3://b/p", 5.0)


@pytest.mark.parametrize(
    ("url", "given", "said"),
    [
        ("memory:", [], "nodes are processes"),
        ("etcd://root:geheim@h:1", [], "stands in the environment"),
        ("s3://b", ["secret_key=geheim"], "stands in the environment"),
        ("s3://b", ["access-key=geheim"], "stands in the environment"),
        ("s3://b", ["color=blue"], "write NAME=VALUE, of endpoint, region"),
        ("s3://b", ["endpoint"], "write NAME=VALUE"),
        (LIN_KV, ["region=x"], "needs --store"),
    ],
)
def test_what_cannot_be_meant_is_refused_without_a_secret(
    url: str, given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [f"--store={url}", *(f"--store-option={each}" for each in given)]
    with pytest.raises(SystemExit) as ended:
        parse_options(arguments)
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert said in told
    assert "geheim" not in told


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
