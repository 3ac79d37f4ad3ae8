"""The manifest: which configurations of which models TLC checks, and what it must say.

A model lists its configurations. One configuration may build on another of the same model
(`base`): constants and replacements are added to those of the base, every other field replaces
the base's. So a broken configuration states only what it breaks and the property that must fail.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SPECS_DIR = Path(__file__).resolve().parent
MANIFEST = SPECS_DIR / "manifest.json"
PASS = "pass"
VIOLATION = "violation of "
SIZES = ("small", "medium")
_RELATIONS = ("base", "violates", "temporal")  # how one differs from its base


@dataclass(frozen=True)
class Configuration:
    """One run of TLC: what to check, with which constants, and what must come out.

    `replace` maps an operator of the module to the one that stands in for it (how a broken
    variant is made); `expect` is "pass" or "violation of NAME"; `distinct_states` is None where
    the number is not reproducible. `behaviours`: TLC draws so many, and does not visit all states;
    0: it does.
    """

    model: str
    name: str
    module: Path
    about: str
    expect: str
    time_class: str
    specification: str = "Spec"
    size: str = "small"
    broken: bool = False
    deadlock: bool = False
    distinct_states: int | None = None
    behaviours: int = 0
    symmetry: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    replace: Mapping[str, str] = field(default_factory=dict)
    invariants: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name people use: model/configuration."""
        return f"{self.model}/{self.name}"

    @property
    def checked(self) -> tuple[str, ...]:
        """Every property this run checks."""
        return self.invariants + self.properties

    def config_text(self) -> str:
        """The .cfg file for TLC. A constant that starts with `<-` names an operator."""
        lines = [
            *(f"SPECIFICATION {self.specification}", "CONSTANTS"),
            *(
                f"  {name} {value if value.startswith('<-') else f'= {value}'}"
                for name, value in self.constants.items()
            ),
            *(f"  {name} <- {other}" for name, other in self.replace.items()),
            *([f"SYMMETRY {self.symmetry}"] if self.symmetry else []),
            *(f"INVARIANT {name}" for name in self.invariants),
            *(f"PROPERTY {name}" for name in self.properties),
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Manifest:
    """All configurations, and the time limit in seconds of each time class."""

    time_classes: Mapping[str, float]
    configurations: tuple[Configuration, ...]

    def unbroken_properties(self) -> list[str]:
        """Properties, as model/name, that hold somewhere but that no configuration violates."""
        held = dict.fromkeys(
            f"{c.model}/{name}"
            for c in self.configurations
            if c.expect == PASS
            for name in c.checked
        )
        violated = {f"{c.model}/{c.expect.removeprefix(VIOLATION)}" for c in self.configurations}
        return [name for name in held if name not in violated]


def _merge(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**base, **own}
    for name in ("constants", "replace"):
        merged[name] = {**base.get(name, {}), **own.get(name, {})}
    if "violates" in own:
        merged |= {"invariants": [], "properties": [], "distinct_states": None}
        merged["expect"] = VIOLATION + own["violates"]
        merged["properties" if own.get("temporal") else "invariants"] = [own["violates"]]
    return merged


def _configurations(model: Mapping[str, Any]) -> Iterator[Configuration]:
    shared = {"module": model["module"], "deadlock": model["deadlock"], "time_class": "instant"}
    resolved: dict[str, dict[str, Any]] = {}
    for own in model["configurations"]:
        resolved[own["name"]] = _merge(resolved[own["base"]] if "base" in own else shared, own)
        fields = {k: v for k, v in resolved[own["name"]].items() if k not in _RELATIONS}
        fields |= {
            "module": SPECS_DIR / model["folder"] / f"{fields['module']}.tla",
            **{name: tuple(fields.get(name, ())) for name in ("invariants", "properties")},
        }
        yield Configuration(model=model["name"], **fields)


def load(path: Path = MANIFEST) -> Manifest:
    """Read a manifest.

    Raises:
        KeyError, TypeError: a field is missing or unknown; the message names it.
    """
    data = json.loads(path.read_text())
    configurations = [c for model in data["models"] for c in _configurations(model)]
    return Manifest(data["time_classes"], tuple(configurations))
