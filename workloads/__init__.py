"""One module or package per workload: prose spec, client, generator, judge."""

import inspect
from importlib import import_module
from typing import cast

from workloads.interface import Judge, Module, Setting, Workload
from workloads.recognition import OPERATIONS

NAMES = tuple(OPERATIONS)


def build(name: str, setting: Setting) -> Workload:
    """The workload of this name (`KeyError` when there is none), ready to run; only its module is imported."""
    return _module(name).build(setting)


def judge(name: str) -> Judge:
    """What judges the histories of the workload of this name (`KeyError` when there is none)."""
    return _module(name).JUDGE


def prose(name: str) -> str:
    """What the workload of this name asks of a node, as its module says it (`KeyError` when there is none)."""
    return inspect.getdoc(_module(name)) or ""


def _module(name: str) -> Module:
    if name not in NAMES:
        raise KeyError(name)
    return cast(Module, import_module(f"workloads.{name.replace('-', '_')}"))
