"""Rules of a machine and its host, in a program and in a node on a store. Each is found by a test."""

from tests.mutants.mutant import Mutant

UPKEEP = "tests/unit/test_idle.py"
HOST = "hosting.host:Host"
MACHINE_TEST = "tests/unit/test_machine.py"
HOST_TEST = "tests/unit/test_host.py"

HOSTS = [
    Mutant(
        "caller-left-waiting",
        "a caller in a program is answered however late",
        "core.machine:Answers.__init__",
        (("limits.gone_s if clients_leave else inf", "limits.gone_s"),),
        test=f"{MACHINE_TEST}::test_who_does_not_leave_is_answered_however_late",
    ),
    Mutant(
        "early-calls-dropped",
        "store calls that were asked for before a host runs are made",
        f"{HOST}._carry_out",
        (("self._early.append(effect)", "pass"),),
        test=f"{HOST_TEST}::test_store_calls_that_were_asked_for_before_it_runs_are_made",
    ),
    Mutant(
        "broken-goes-on",
        "a broken invariant of the store ends the log of a program",
        f"{HOST}._call_store",
        (("if not self._goes_on:", "if False:"),),
        test=f"{HOST_TEST}::test_a_broken_invariant_of_the_store_ends_it_for_all_callers",
    ),
    Mutant(
        "node-ends-with-its-store",
        "a node goes on when a store call breaks an invariant",
        f"{HOST}._call_store",
        (("if not self._goes_on:", "if True:"),),
        test=f"{HOST_TEST}::test_a_node_goes_on_without_an_outcome",
    ),
    Mutant(
        "compaction-by-readers",
        "a process that never appended writes nothing",
        "hosting.maintenance:Maintenance.compact_now_and_then",
        (("not strategy.appends or", ""),),
        test=f"{UPKEEP}::test_who_only_reads_writes_nothing",
    ),
    Mutant(
        "producer-runs-ahead",
        "a producer waits for its compaction while too much waits",
        "core.headlog.writer:Writer._commit_all",
        (("if self._compactor.behind:", "if False:"),),
        test=f"{UPKEEP}::test_a_producer_compacts_as_it_goes",
    ),
    Mutant(
        "closed-amid-compaction",
        "a log is closed when compaction that is under way has ended",
        "hosting.maintenance:Maintenance.end",
        (("if not (strategy.upkeeps or self._merging.locked()):", "if True:"),),
        test=f"{UPKEEP}::test_a_program_that_is_opened_appends_little_and_is_closed_again_compacts",
    ),
]
