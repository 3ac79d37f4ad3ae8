"""One module or package per workload: prose spec, client, generator, checker."""

from workloads.interface import Setting, Workload

NAMES = ("echo", "kafka", "lin-kv")


def build(name: str, setting: Setting) -> Workload:
    """The workload of this name (`KeyError` when there is none), ready to run; only its module is imported."""
    match name:
        case "echo":
            from workloads.echo import build
        case "kafka":
            from workloads.kafka import build
        case "lin-kv":
            from workloads.lin_kv import build
        case _:
            raise KeyError(name)
    return build(setting)
