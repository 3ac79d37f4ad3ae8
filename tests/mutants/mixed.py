"""Processes that go by what is their own, where the log must say it: they lose records where they differ."""

from tests.mutants.mutant import Mutant

COMMITS = "core.headlog.commits:DurableCommits"
MIXED_WORLD = {"mixed": True, "nodes": 3, "rate": 300.0, "time_limit_s": 2.0}
OWN = "Shape(**(self._empty.shape.value | {'offset_registers': 1}))"
# Each process goes by the shape that it would give to a log; the heads that it writes all say one.
OWN_SHAPE = (
    (
        "core.headlog.replica:Replica._read_head",
        (
            (
                "return head or self._empty",
                f"return Head(head.heading._replace(shape={OWN}), head.tail) if head else self._empty",
            ),
        ),
    ),
    (
        "core.headlog.replica:Replica._follow_peer",
        (("Head(heading, tail)", f"Head(heading._replace(shape={OWN}), tail)"),),
    ),
    (
        "core.headlog.records:value_of_heading",
        (("heading.shape.value", "Shape().value"),),
    ),
)
NOT_COMPARED = (
    "core.headlog.replica:Replica._require_shape",
    (("old.version and head.shape != old.shape", "False"),),
)
CREATED = "if not (yield from create(name, segment.value)):"

MIXED = [
    Mutant(
        "limits-of-the-reader",
        "when a tail is full, and what its segment holds, stands in the log",
        "core.headlog.sealer:Sealer._write",
        ((CREATED, "yield from create(name, segment.value)\n        if False:"),),
        MIXED_WORLD,
        also=(*OWN_SHAPE, NOT_COMPARED),
    ),
    Mutant(
        "offset-registers-of-the-nodes",
        "how many registers of committed offsets there are stands in the log",
        f"{COMMITS}.__init__",
        (("self._place =", "self._nodes = len(peers)\n        self._place ="),),
        MIXED_WORLD | {"backlog": 50, "commits": "durable", "nodes": 1},
        also=(
            (
                f"{COMMITS}.read",
                (("self._replica.shape", "self._replica.shape.for_nodes(self._nodes)"),),
            ),
            (
                f"{COMMITS}._own",
                (("self._replica.shape", "self._replica.shape.for_nodes(self._nodes)"),),
            ),
        ),
    ),
    Mutant(
        "vacuum-by-the-clock",
        "a vacuum raises the epoch of the log before it looks for references",
        "hosting.vacuum:vacuum_values",
        (("await new_epoch()", "(await read_value(store, HEAD, head_of)).value"),),
        test="tests/simulation/test_programs.py::test_a_vacuum_whose_clock_is_ahead_deletes_no_value",
    ),
]
