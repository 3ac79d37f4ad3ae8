"""One module or package per workload: prose spec, client, generator, checker."""

from collections.abc import Callable

from workloads.interface import Setting, Workload


def _echo(setting: Setting) -> Workload:
    from workloads.echo import build

    return build(setting)


def _kafka(setting: Setting) -> Workload:
    from workloads.kafka import build

    return build(setting)


def _lin_kv(setting: Setting) -> Workload:
    from workloads.lin_kv import build

    return build(setting)


# Name on the command line -> a function that imports the workload's module when it is used.
BUILDERS: dict[str, Callable[[Setting], Workload]] = {
    "echo": _echo,
    "kafka": _kafka,
    "lin-kv": _lin_kv,
}


def build(name: str, setting: Setting) -> Workload:
    """The workload of this name (`KeyError` when there is none), ready to run."""
    return BUILDERS[name](setting)
