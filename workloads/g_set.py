"""g-set: a set that only grows. Clients add elements at any node, and read all of them.

    {"type": "add", "element": 0}  ->  {"type": "add_ok"}
    {"type": "read"}               ->  {"type": "read_ok", "value": [1, 0, 4]}

Half of the operations add 0, 1, 2, ...; the others read. With `--strict` one add in eight repeats an earlier
element. The real tool never does that, so it passes a node that counts an element twice. A node that refuses
the second add shows it with `--availability total`.

The order of a read's elements does not matter. A node may need time to show an element. After the faults are
healed and the recovery time is over, every worker reads once more. The result is that of `workloads.set_full`,
which says what is lost, stale or never read.

As in the real tool, every error of an operation leaves its outcome unknown, even a definite one: an add that
failed and yet took effect is allowed.

The rules are those of Maelstrom's workload of this name and Jepsen's `set-full` checker.
"""

from functools import partial

from workloads.interface import Draft, Setting, Workload
from workloads.mixes import OnceEach, mix, read
from workloads.replies import ARRAY, Stateless, add_or_read
from workloads.set_full import judge_of

REPEATED = 1 / 8  # of the adds of a strict run
JUDGE = judge_of("add")


def build(setting: Setting) -> Workload:
    """The workload for this run; of the options only `strict` counts."""
    random, count = setting.random("g-set/repeated"), 0

    def add() -> Draft:
        nonlocal count
        if setting.options.get("strict") and count and random.random() < REPEATED:
            return Draft("add", random.randrange(count))
        count += 1
        return Draft("add", count - 1)

    return Workload(
        generator=mix(setting.random("g-set"), add, read),
        final_generator=OnceEach(setting.concurrency, read),
        open_client=partial(Stateless, perform=partial(add_or_read, field="element", value=ARRAY)),
        judge=JUDGE,
    )
