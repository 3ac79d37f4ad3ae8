"""The rules of the older release, which lose records where processes differ: each went by what is its own."""

from tests.mutants.mutant import Mutant

COMMITS = "core.headlog.commits:DurableCommits"
COMPACTOR = "core.headlog.compaction:Compactor"
MIXED_WORLD = {"mixed": True, "nodes": 3, "rate": 300.0, "time_limit_s": 2.0}
OWN = "Shape(**(self._empty.shape.value | {'offset_registers': 1}))"
# Each process goes by the shape that it would give to a log. As the older head, this one says none.
OWN_SHAPE = (
    (
        "core.headlog.replica:Replica._with_shape",
        (("if not head.shape.is_old:", "if False:"), ("self._old", OWN)),
    ),
    (
        "core.headlog.records:value_of_heading",
        (("heading.shape.value", "Shape().value"),),
    ),
)
NOT_COMPARED = (
    "core.headlog.replica:Replica._require_shape",
    (("not (is_first or is_upgrade or head.shape == old.shape)", "False"),),
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
                (
                    (
                        "shape = self._replica.shape",
                        "shape = self._replica.shape.for_nodes(self._nodes)",
                    ),
                ),
            ),
        ),
    ),
    Mutant(
        "page-parts-without-their-count",
        "the name of a part of a page says of how many it is one",
        f"{COMPACTOR}._write_page",
        (
            ("self._replica.shape", "self._replica._empty.shape"),
            ("counted = 0 if shape.is_old else 1", "counted = 0"),
        ),
        MIXED_WORLD | {"backlog": 200, "nemesis": ("kill", "store"), "nemesis_interval_s": 0.3},
        also=(
            (
                f"{COMPACTOR}._holds",
                (
                    (
                        "if (yield from create(register, part.value)):",
                        "yield from create(register, part.value)\n        if True:",
                    ),
                ),
            ),
        ),
    ),
    Mutant(
        "vacuum-by-the-clock",
        "a vacuum raises the epoch of the log before it looks for references",
        "library.vacuum:vacuum_values",
        (("await new_epoch()", "(await read_value(store, HEAD, head_of)).value"),),
        test="tests/simulation/test_objects.py::test_a_vacuum_whose_clock_is_ahead_deletes_no_value",
    ),
]
