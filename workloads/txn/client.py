"""The client of the transactional workloads, and the transactions that it is given."""

from json import dumps
from random import Random
from typing import Any

from runs.history import Op
from runs.keyword import Keyword
from workloads.interface import Draft, Rpc, Setting, Steps
from workloads.keys import DEFAULT_COUNTS, DEFAULT_KEY_DIST, DISTRIBUTIONS, Keys
from workloads.replies import Form, require

READ = Keyword("r")

MicroOp = list[Any]  # [f, key, value]


class TxnClient:
    """Sends each operation as one transaction. `reads` says what a read may have for a value."""

    def __init__(self, node: str, reads: Form) -> None:
        self.node = node
        self._reads = reads

    def invoke(self, op: Op) -> Steps:
        request = {"type": "txn", "txn": [[str(f), key, value] for f, key, value in op.value]}
        reply = yield Rpc(self.node, request)
        require(
            request, reply, txn=Form("the transaction, its reads filled in", self._is_filled(op))
        )
        return [[Keyword(f), key, value] for f, key, value in reply["txn"]]

    def _is_filled(self, op: Op) -> Any:
        """A test: whether a value is the operation's transaction, with any values for its reads."""

        def accepts(txn: Any) -> bool:
            return (
                isinstance(txn, list)
                and len(txn) == len(op.value)
                and all(self._matches(*pair) for pair in zip(op.value, txn, strict=True))
            )

        return accepts

    def _matches(self, asked: MicroOp, got: Any) -> bool:
        # By their text, because in Python 1, 1.0 and true are equal.
        if not isinstance(got, list) or len(got) != 3 or dumps(got[:2]) != dumps(asked[:2]):
            return False
        return self._reads.accepts(got[2]) if asked[0] == READ else dumps(got[2]) == dumps(asked[2])


class Transactions:
    """Draws transactions; `write` names the micro-operation that writes."""

    def __init__(self, keys: Keys, longest: int, write: str, random: Random) -> None:
        self._keys = keys
        self._longest = longest
        self._write = Keyword(write)
        self._random = random

    @classmethod
    def of(cls, setting: Setting, write: str) -> "Transactions":
        """By the options `key_dist`, `key_count`, `max_writes_per_key` and `max_txn_length`."""
        options = setting.options
        name = options.get("key_dist") or DEFAULT_KEY_DIST
        count = options.get("key_count") or DEFAULT_COUNTS[name]
        writes = options["max_writes_per_key"]
        keys = Keys(count, writes, setting.random("txn/keys"), DISTRIBUTIONS[name])
        return cls(keys, options["max_txn_length"], write, setting.random("txn"))

    def draw(self) -> Draft:
        """The next one."""
        length = self._random.randint(1, self._longest)
        return Draft("txn", [self._micro_op() for _ in range(length)])

    def _micro_op(self) -> MicroOp:
        key, value = self._keys.draw()
        return [READ, key, None] if value is None else [self._write, key, value]
