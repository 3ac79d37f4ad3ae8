"""The cases of one section of S3-Queue's conformance matrix, by name."""

from collections.abc import Awaitable, Callable

from tests.contract.matrix.stage import Stage

Case = Callable[[Stage], Awaitable[None]]


class Section:
    """A table of cases, coroutines on a `Stage`. `aged`: those that wait for a lease or a retention."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}
        self.aged: set[str] = set()

    def case(self, name: str, *, aged: bool = False) -> Callable[[Case], Case]:
        """Take a case into the table."""

        def add(function: Case) -> Case:
            assert name not in self.cases
            self.cases[name] = function
            if aged:
                self.aged.add(name)
            return function

        return add
