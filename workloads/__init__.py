"""One module or package per workload: prose spec, client, generator, checker."""

from importlib import import_module

from workloads.interface import Setting, Workload

# Name on the command line -> module with `build(setting) -> Workload`, imported only when it runs.
MODULES = {
    "echo": "workloads.echo",
    "kafka": "workloads.kafka",
    "lin-kv": "workloads.lin_kv",
}


def build(name: str, setting: Setting) -> Workload:
    """The workload of this name (`KeyError` when there is none), ready to run."""
    module = import_module(MODULES[name])
    workload: Workload = module.build(setting)
    return workload
