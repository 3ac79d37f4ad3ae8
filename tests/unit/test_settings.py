"""The command line; what it says when it is wrong is in tests/process."""

import pytest

from leaderless.core.strategies import STRATEGIES
from leaderless.runtime.settings import parse


def test_defaults() -> None:
    settings = parse([])
    assert settings.strategy in STRATEGIES
    assert (settings.options.pace.store_timeout_s, settings.log_level, settings.backend) == (
        1.0,
        "warning",
        "asyncio",
    )


def test_a_node_without_options_has_the_defaults_of_its_options() -> None:
    assert parse([]) == parse(["--log-level", "warning"])


def test_all_of_it() -> None:
    options = {
        "strategy": "cas",
        "store-timeout-ms": "250",
        "log-level": "debug",
        "backend": "trio",
    }
    settings = parse([f"--{name}={value}" for name, value in options.items()])
    assert (settings.strategy, settings.options.pace.store_timeout_s) == ("cas", 0.25)
    assert (settings.log_level, settings.backend) == ("debug", "trio")


@pytest.mark.parametrize("milliseconds", ["0", "-1", "nan", "inf", "soon", ""])
def test_a_timeout_is_a_positive_number(milliseconds: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--store-timeout-ms", milliseconds])
    assert ended.value.code == 2


def test_options_are_not_abbreviated() -> None:
    with pytest.raises(SystemExit):
        parse(["--strat", "cas"])
