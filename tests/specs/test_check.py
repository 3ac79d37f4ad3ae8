"""The manifest and the comparison with it: each way to differ is told, and changes the status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from specs import check, tlc
from specs.manifest import SIZES, Manifest, load
from specs.tlc import Outcome

MODEL = {
    "name": "M",
    "folder": "M",
    "module": "M",
    "deadlock": True,
    "deadlock_reason": "never ends",
    "configurations": [
        {
            "name": "all",
            "about": "everything",
            "expect": "pass",
            "distinct_states": 7,
            "constants": {"A": "1", "B": "<- Two"},
            "invariants": ["I", "J"],
            "properties": ["P"],
        },
        {
            "name": "bad",
            "base": "all",
            "broken": True,
            "module": "MBroken",
            "about": "no look",
            "replace": {"Look": "NoLook"},
            "constants": {"A": "2"},
            "violates": "I",
        },
        {"name": "worse", "base": "all", "about": "", "violates": "P", "temporal": True},
    ],
}


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"time_classes": {"instant": 10}, "models": [MODEL]}))
    return load(path)


def test_a_configuration_builds_on_its_base(manifest: Manifest) -> None:
    everything, bad, worse = manifest.configurations
    assert everything.checked == ("I", "J", "P")
    assert (bad.checked, bad.expect, bad.distinct_states) == (("I",), "violation of I", None)
    assert bad.module.name == "MBroken.tla"
    assert bad.deadlock
    assert (worse.invariants, worse.properties) == ((), ("P",))


def test_the_cfg_file(manifest: Manifest) -> None:
    assert manifest.configurations[1].config_text().splitlines() == [
        "SPECIFICATION Spec",
        "CONSTANTS",
        "  A = 2",
        "  B <- Two",
        "  Look <- NoLook",
        "INVARIANT I",
    ]


def test_properties_without_a_broken_configuration_are_named(manifest: Manifest) -> None:
    assert manifest.unbroken_properties() == ["M/J"]


def test_an_unknown_field_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    model = MODEL | {"configurations": [{**MODEL["configurations"][0], "expct": "pass"}]}  # type: ignore[index]  # the mixed values of a JSON object
    path.write_text(json.dumps({"time_classes": {}, "models": [model]}))
    with pytest.raises(TypeError, match="expct"):
        load(path)


@pytest.mark.parametrize(
    ("number", "outcome", "told"),
    [
        (0, Outcome("pass", 7), ""),
        (0, Outcome("pass", 8), "expected 7 distinct states, got 8"),
        (0, Outcome("violation of J", 7), "expected pass, got violation of J"),
        (1, Outcome("pass", 7), "expected violation of I, got pass"),
        (1, Outcome("violation of J", 7), "expected violation of I, got violation of J"),
        (1, Outcome("error", None, message="boom\nbang"), "TLC could not check it: boom"),
    ],
)
def test_every_difference_is_told(
    number: int, outcome: Outcome, told: str, manifest: Manifest
) -> None:
    assert "; ".join(check.differences(manifest.configurations[number], outcome)) == told


def test_a_slow_run_is_told_and_is_no_difference(manifest: Manifest) -> None:
    expected = manifest.configurations[0]
    slow = check.slowness(11, limit_s=10)
    result = check.Result(expected, Outcome("pass", 7), 11, (), slow)
    assert slow == "11 s, longer than 10 s"
    assert check.slowness(10, limit_s=10) == ""
    assert check.summary([result], []) == [
        "1 of 1 configurations as expected",
        "0 of 0 broken configurations violated as expected",
    ]
    assert [*check.table([result]).columns[4].cells] == [slow]


def test_summary_counts_the_broken_ones(manifest: Manifest) -> None:
    good, bad, _ = manifest.configurations
    results = [
        check.Result(good, Outcome("pass", 7), 1, ()),
        check.Result(bad, Outcome("pass", 7), 1, ("expected violation of I, got pass",)),
    ]
    assert check.summary(results, ["M/J"]) == [
        "1 of 2 configurations as expected",
        "0 of 1 broken configurations violated as expected",
        "no broken configuration violates M/J: add one",
    ]


def test_the_real_manifest_is_whole() -> None:
    manifest = load()
    assert manifest.unbroken_properties() == []
    for configuration in manifest.configurations:
        assert configuration.module.is_file(), configuration.title
        assert configuration.time_class in manifest.time_classes
        assert configuration.size in SIZES
        assert configuration.about


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--only", "Prefetch/sealed", "--print-config"], 0, ["INVARIANT OrderedReads"]),
        (["--only", "NoSuchModel"], 2, ["NoSuchModel"]),
        pytest.param(
            ["--only", "Prefetch/shown-at-once", "--show"],
            0,
            ["violation of OrderedReads", "Poll"],
            marks=pytest.mark.tlc,
        ),
        pytest.param(  # it draws behaviours
            ["--size", "medium", "--only", "LeaderlessLog/published-medium-overlap", "--show"],
            0,
            ["violation of OverlapsOnlyWhileCompacting", "CompactWriteCompactedIndex"],
            marks=pytest.mark.tlc,
        ),
    ],
)
def test_the_command(
    words: list[str], status: int, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with an archive of classes that is damaged, which Java passes over."""
    damaged = tmp_path / "classes.jsa"
    damaged.write_bytes(b"not an archive")
    monkeypatch.setattr(tlc, "CLASSES", damaged)
    result = CliRunner().invoke(check.main, words)
    assert result.exit_code == status, result.output
    assert all(each in result.output for each in said)


def test_a_missing_jar_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TLA2TOOLS", str(tmp_path / "none.jar"))
    with pytest.raises(tlc.TlcUnavailableError, match="TLA2TOOLS"):
        tlc.find_jar()
