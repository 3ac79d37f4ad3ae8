"""The oracle of the leaderless log: a list of entries as the store accepted them.

It sees every change of a register beside all requests and answers. What a change must keep is said once, in
`leaderless.upkeep.laws`; here is what only who knows clients and clocks can judge.
"""

from bisect import bisect_right
from math import inf
from typing import Any

from leaderless.core.claims import Claim, claim_of
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.headlog.records import entry_of
from leaderless.core.messages import Entry
from leaderless.core.pace import Pace
from leaderless.core.strategy import Options
from leaderless.upkeep.laws import Laws
from simulation.oracle import (
    Asked,
    Body,
    Oracle,
    Pairs,
    Polled,
    Promises,
    Rising,
    Violation,
    raise_to,
    require,
    require_kept,
)

ENVELOPE_BYTES_MAX = 32  # what a node takes off a long message
MESSAGE_BYTES_MIN = 8  # and counts for a short one


class HeadLogOracle(Oracle):
    """What is in the log, since when, and what each node acknowledged.

    Each rule of `Oracle` for sends and polls is replaced by a stronger one, since the log itself is known.
    A deferred commit (not `promises.commits_kept`) is acknowledged before it is in the log: only the node that
    did so has to list it, while it lives.
    `lease_s`: how long a claim of compaction stands still before it may be taken over. `commit_bytes`: the most
    that several batches of one commit have together.
    """

    def __init__(
        self, promises: Promises, lease_s: float = Pace().lease_s, commit_bytes: float = inf
    ) -> None:
        super().__init__(promises)
        self._lease_s = lease_s
        self._commit_bytes = commit_bytes
        self.laws = Laws()
        self.entries: list[Entry] = []
        self.messages: dict[str, list[Any]] = {}
        self._since: dict[str, list[float]] = {}  # when each message of a key got into the log
        self._logged: set[tuple[str, Any]] = set()  # (key, msg)
        self.commits_in_log: dict[str, Rising] = {}  # of each key, the highest in an entry
        self._run_ends: set[tuple[str, int]] = set()  # where a key ends in a run
        self._claim_moved_s = 0.0  # when the claim of compaction was last changed
        self._commits_of: dict[str, dict[str, int]] = {}  # node -> what it acknowledged, alive

    # ------------------------------------------------------------ the store

    def changed(self, register: str, old: Any, new: Any, now_s: float) -> None:
        """A register that held `old` (None: it was missing) holds `new`. Raises `InvariantBroken`, too."""
        if register == CLAIM:
            self._claim_changed(claim_of(old) if old else Claim(), claim_of(new), now_s)
        added = self.laws.changed(register, new)
        size = sum(map(_least_bytes, added))
        text = f"{len(added)} batches of {size} bytes in one commit"
        require(len(added) <= 1 or size <= self._commit_bytes, "CommitBounded", text)
        for entry in added:
            self._append(entry, now_s)
        if register.startswith("run/"):
            blocks = new["keys"].items()
            self._run_ends |= {(key, first + len(msgs)) for key, (first, msgs) in blocks}

    def _claim_changed(self, old: Claim, new: Claim, now_s: float) -> None:
        """Only a lease that is free, or stood still for its time, changes hands."""
        stood_s, self._claim_moved_s = now_s - self._claim_moved_s, now_s
        free = old.owner is None or stood_s >= self._lease_s
        text = f"taken from the living: {old} became {new} after {stood_s:.3f} s"
        require(free or new.owner in (None, old.owner), "OneLiveClaim", text)

    def _append(self, entry: Entry, now_s: float) -> None:
        _, _, appends, commits, _ = entry
        self.entries.append(entry)
        for key, (_, msgs) in appends.items():
            self.messages.setdefault(key, []).extend(msgs)
            self._since.setdefault(key, []).extend([now_s] * len(msgs))
            for msg in msgs:
                where = f"{msg!r} of key {key}"
                twice = f"{where} is in the log twice"
                require((key, msg) in self._sent, "AppendedWasSent", where)
                require((key, msg) not in self._logged, "AckedExactlyOnce", twice)
                require((key, msg) not in self._refused, "RejectedNeverAppended", where)
                self._logged.add((key, msg))
        for key, offset in commits.items():
            self._require_not_ahead(key, offset)
            self.commits_in_log.setdefault(key, Rising()).raise_to(offset, now_s)

    # ------------------------------------------------------------ requests and answers

    def killed(self, node: str) -> None:
        """A node lost its memory, committed offsets on their way to the log included."""
        self._commits_of.pop(node, None)

    def handed_over(self, body: Body) -> None:
        """A node tells a peer what it knows of the log."""
        slot, entries = body["slot"], body["entries"]
        known = self.entries[slot : slot + len(entries)]
        require(
            [entry_of(entry) for entry in entries] == known,
            "ViewIsPrefix",
            f"slots from {slot}: {entries}",
        )

    def listed_at_last(self, offsets: dict[str, int]) -> None:
        """In the end, a node knows whatever any node has acknowledged and not lost in a crash."""
        for known in self._commits_of.values():
            for key, offset in known.items():
                require_kept(key, offsets.get(key, -1), offset)

    def _send_answered(self, key: str, msg: Any, offset: int, _now_s: float) -> None:
        log = self.messages.get(key, [])
        placed = 0 <= offset < len(log) and log[offset] == msg
        require(placed, "AckedExactlyOnce", f"{msg!r} of key {key} is not at {offset}")

    def _poll_answered(self, key: str, start: int, pairs: Pairs, polled: Polled) -> None:
        if pairs:
            offsets = [offset for offset, _ in pairs]
            if offsets != list(range(start, start + len(pairs))):
                raise Violation(f"PollContiguous: {key} from {start}: {offsets}")
            known = self.messages.get(key, [])[start : start + len(pairs)]
            if [msg for _, msg in pairs] != known:
                raise Violation(f"ViewIsPrefix: {key} from {start}: {pairs}")
        due = bisect_right(self._since.get(key, []), polled.at_s - self._promises.freshness_s)
        if not polled.full:
            self._require_fresh(key, start, pairs, due)

    def _require_fresh(self, key: str, start: int, pairs: Pairs, due: int) -> None:
        """What is read back from a run ends with it at the latest; the next poll goes on."""
        if not pairs or (key, pairs[-1][0] + 1) not in self._run_ends:
            super()._require_fresh(key, start, pairs, due)

    def _is_in_log(self, key: str, msg: Any) -> bool:
        return (key, msg) in self._logged

    def _commit_answered(self, node: str, offsets: dict[str, int], now_s: float) -> None:
        super()._commit_answered(node, offsets, now_s)
        raise_to(self._commits_of.setdefault(node, {}), offsets)

    def _listed(self, asked: Asked, key: str, offset: int, now_s: float) -> None:
        super()._listed(asked, key, offset, now_s)
        require_kept(key, offset, self._commits_of.get(asked.node, {}).get(key, -1))
        if key in self.commits_in_log:
            seen_s = asked.at_s - self._promises.freshness_s
            require_kept(key, offset, self.commits_in_log[key].at(seen_s))


def _least_bytes(entry: Entry) -> int:
    """The least that a node counts for a batch: of a long message, the request may be a bit shorter."""
    sizes = [len(str(msg)) for _, msgs in entry[2].values() for msg in msgs]
    return sum(max(size - ENVELOPE_BYTES_MAX, min(size, MESSAGE_BYTES_MIN)) for size in sizes)


# Strategy -> what it promises. What is not here promises nothing, and the checker alone finds its anomalies.
PROMISES = {
    "leaderless": Promises(),
    "cas": Promises(),
    "prefetch-sealed": Promises(dense=False),
}


def oracle_for(strategy: str, options: Options, *, evicts: bool = False) -> Oracle | None:
    """Who judges the answers of a strategy with these options; None if it promises nothing."""
    if strategy not in PROMISES:
        return None
    limits = options.limits
    promises = PROMISES[strategy]._replace(
        freshness_s=options.freshness_s,
        evicts=evicts,
        commits_kept=strategy != "leaderless" or options.durable_commits,
        answer_bytes=limits.answer_bytes,
        poll_messages=limits.poll_messages,
    )
    if strategy == "leaderless":
        return HeadLogOracle(promises, options.pace.lease_s, limits.commit_bytes)
    return Oracle(promises)
