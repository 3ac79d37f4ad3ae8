"""What a workload says to a node before the operations, such as its neighbours (`Workload.set_up`)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO

from bench.failure import RunFailure, indent
from bench.loop import Loop
from bench.net import Network
from bench.worker import Recorder, Worker
from runs.history import Op
from workloads.interface import Draft, Workload

SET_UP = "set-up"


def prepare(
    node: str,
    workload: Workload,
    loop: Loop,
    network: Network,
    new_client: Callable[[], str],
    *,
    nodes: Sequence[str],
    on_done: Callable[[str], object],
    on_failure: Callable[[RunFailure], None],
) -> None:
    """Begin the set-up of one of the `nodes`. `on_done(node)` is called when it succeeds, else `on_failure`."""
    assert workload.set_up

    def completed(_worker: Worker, op: Op) -> None:
        if op.type == "ok":
            on_done(node)
        else:
            on_failure(_report(node, op))

    worker = Worker(
        number=0,
        whose=lambda: node,
        concurrency=1,
        workload=replace(workload, open_client=partial(workload.set_up, nodes)),
        loop=loop,
        network=network,
        recorder=Recorder(loop, BytesIO()),  # a set-up is in no history
        new_client=new_client,
        on_complete=completed,
        on_failure=on_failure,
    )
    worker.invoke(Draft(SET_UP))


def _report(node: str, op: Op) -> RunFailure:
    return RunFailure(
        f"Node {node} did not take what every node is told before the operations:\n"
        f"{indent(str(op.extra.get('error')))}\n"
        "Answer this request, even if the node does not need it (docs/workloads.md)."
    )
