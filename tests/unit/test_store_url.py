"""Where a node keeps the log, as its command line and the environment say."""

import pytest

from leaderless.core.limits import Limits
from leaderless.core.shape import Shape
from leaderless.runtime.settings import LIN_KV, parse
from leaderless.runtime.store_url import place_of


def test_without_an_option_it_is_the_service_of_the_bench() -> None:
    assert parse([]).place is None
    assert place_of(LIN_KV, [], 5.0) is None


def test_an_endpoint_comes_from_the_option_or_else_from_the_environment() -> None:
    environment = {"AWS_ENDPOINT_URL": "http://other:1", "AWS_ENDPOINT_URL_S3": "http://here:1"}
    place = place_of("s3://b/p", [], 5.0, environment)
    assert place
    assert (place.url, place.options.endpoint) == ("s3://b/p", "http://here:1")
    given = ["endpoint=http://there:2?a=b", "region=here"]
    place = place_of("s3://b/p", given, 5.0, environment)
    assert place
    assert (place.options.endpoint, place.options.region) == ("http://there:2?a=b", "here")
    assert place.options.timeout_s == 5.0


def test_the_endpoint_of_s3_is_none_of_etcd() -> None:
    place = place_of("etcd://h:2379", [], 5.0, {"AWS_ENDPOINT_URL": "http://s3:1"})
    assert place
    assert place.options.endpoint is None


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
        parse(arguments)
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
