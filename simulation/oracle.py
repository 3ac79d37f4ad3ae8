"""The log said naively: a list of entries as the store accepted them, and what everybody may say of it.

The oracle sees every change of a register and every answer to a request. It knows the shape of the registers
and nothing of the code that fills them. Whatever it finds raises `Breach`, whose text begins with the name
that the invariant has in the design, in the models and in the code.
"""

from bisect import bisect_right
from typing import Any, NamedTuple

from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.lease import NEVER_TAKEN
from leaderless.core.limits import Limits
from leaderless.wire.errors import ErrorCode

HEAD = "head"
EMPTY_HEAD = {"state": "open", "epoch": 0, "version": 0, "base": 0, "tail": []}
RECENT, WHOLE_TAIL_EVERY = 8, 16
POLL_MESSAGES = 4_096  # of a key; a poll may leave the rest to the next one

Body = dict[str, Any]
Entry = list[Any]  # [writer, seq, {key: [first_offset, [msg, ...]]}, {key: committed_offset}]


class Breach(AssertionError):
    """An invariant does not hold; the text begins with its name."""

    @property
    def name(self) -> str:
        """Of the invariant."""
        return str(self).partition(":")[0]


def require(holds: bool, name: str, text: str) -> None:
    """Raise `Breach` unless the invariant `name` holds."""
    if not holds:
        raise Breach(f"{name}: {text}")


class Asked(NamedTuple):
    """A request that `node` was asked at `at_s` and has not answered yet."""

    node: str
    body: Body
    at_s: float


class Oracle:
    """What is in the log, since when, and who was told what.

    `freshness_s` and `lease_s`: as the nodes have them. `evicts`: their memory is so small that a poll may
    stop at the end of what it read back from the store, and leave the rest to the next one.
    """

    def __init__(
        self, freshness_s: float, evicts: bool = False, lease_s: float = Limits().lease_s
    ) -> None:
        self._lease_s = lease_s
        self.entries: list[Entry] = []
        self.messages: dict[str, list[Any]] = {}
        self._freshness_s = freshness_s
        self._evicts = evicts
        self._since: dict[
            str, list[float]
        ] = {}  # key -> when each of its messages got into the log
        self._ids: set[tuple[str, int]] = set()
        self._held: set[tuple[str, Any]] = set()  # (key, msg) in the log
        self._sent: set[tuple[str, Any]] = set()
        self._refused: set[tuple[str, Any]] = set()
        self._claim_moved_s = 0.0  # when the claim of compaction was last changed
        self._commits_asked: dict[str, int] = {}
        self._commits_told: dict[str, dict[str, int]] = {}  # node -> what it acknowledged, alive

    # ------------------------------------------------------------ the store

    def changed(self, register: str, old: Any, new: Any, now_s: float) -> None:
        """A register that held `old` (None: it was missing) holds `new`."""
        if register == HEAD:
            self._head_changed(old or EMPTY_HEAD, new, now_s)
        elif register.startswith(("segment/", "run/")):
            dead = new == {"deleted": True} and register.startswith("segment/")
            require(old in (None, new) or dead, "SegmentsImmutable", f"{register} changed")
        elif register == CLAIM:
            self._claim_changed(old or NEVER_TAKEN, new, now_s)
        elif register == "compacted" and old:
            for name in ("cursor", "epoch"):
                require(new[name] >= old[name], "CursorNeverMovesBack", f"{name}: {old} -> {new}")

    def _claim_changed(self, old: Any, new: Any, now_s: float) -> None:
        stood_s, self._claim_moved_s = now_s - self._claim_moved_s, now_s
        if new["owner"] in (None, old["owner"]):
            return
        text = f"{old} became {new} after {stood_s:.3f} s"
        require(new["epoch"] > old["epoch"], "OneLiveClaim", f"no epoch of its own: {text}")
        free = old["owner"] is None or stood_s >= self._lease_s
        require(free, "OneLiveClaim", f"taken from the living: {text}")

    def _head_changed(self, old: Any, new: Any, now_s: float) -> None:
        known = len(self.entries) - new["base"]
        kept, added = new["tail"][: max(known, 0)], new["tail"][max(known, 0) :]
        grown = known >= 0 and len(kept) == known and new["version"] > old["version"]
        require(grown, "HeadNeverReturns", f"slots from {new['base']} after {len(self.entries)}")
        # All of a long tail for every change would be quadratic; what is sealed is read whole again.
        recent = 0 if new["version"] % WHOLE_TAIL_EVERY == 0 else max(0, len(kept) - RECENT)
        same = kept[recent:] == self.entries[new["base"] + recent :]
        require(same, "HeadNeverReturns", "an entry changed")
        require(new["epoch"] >= old["epoch"], "NoAppendWhileFenced", "an epoch came back")
        closed = old["state"] == "fenced" or new["epoch"] != old["epoch"]
        require(not (added and closed), "NoAppendWhileFenced", f"{added} in epoch {old['epoch']}")
        for entry in added:
            self._append(entry, now_s)

    def _append(self, entry: Entry, now_s: float) -> None:
        writer, seq, appends, commits = entry
        require((writer, seq) not in self._ids, "AckedExactlyOnce", f"batch {writer}, {seq} twice")
        self._ids.add((writer, seq))
        self.entries.append(entry)
        for key, (first, msgs) in appends.items():
            log = self.messages.setdefault(key, [])
            require(first == len(log), "OffsetsDense", f"{key} at {first} after {len(log)}")
            log.extend(msgs)
            self._since.setdefault(key, []).extend([now_s] * len(msgs))
            for msg in msgs:
                self._hold(key, msg)
        for key, offset in commits.items():
            self._not_ahead(key, offset)

    def _hold(self, key: str, msg: Any) -> None:
        where = f"{msg!r} of key {key}"
        require((key, msg) in self._sent, "AppendedWasSent", where)
        require((key, msg) not in self._held, "AckedExactlyOnce", f"{where} is in the log twice")
        require((key, msg) not in self._refused, "RejectedNeverAppended", where)
        self._held.add((key, msg))

    # ------------------------------------------------------------ requests and answers

    def asked(self, body: Body) -> None:
        """A client asks a node."""
        match body:
            case {"type": "send", "key": key, "msg": msg}:
                self._sent.add((key, msg))
            case {"type": "commit_offsets", "offsets": offsets}:
                _raise_to(self._commits_asked, offsets)

    def killed(self, node: str) -> None:
        """A node lost its memory, committed offsets on their way to the log included."""
        self._commits_told.pop(node, None)

    def answered(self, asked: Asked, reply: Body) -> None:
        """A node answers a client."""
        match asked.body, reply:
            case {"type": "send", "key": key, "msg": msg}, {"type": "send_ok", "offset": offset}:
                log = self.messages.get(key, [])
                placed = 0 <= offset < len(log) and log[offset] == msg
                require(placed, "AckedExactlyOnce", f"{msg!r} of key {key} is not at {offset}")
            case {"offsets": offsets}, {"type": "poll_ok", "msgs": msgs}:
                for key, offset in offsets.items():
                    self._polled(key, max(0, offset), msgs.get(key, []), asked.at_s)
            case {"offsets": offsets}, {"type": "commit_offsets_ok"}:
                _raise_to(self._commits_told.setdefault(asked.node, {}), offsets)
            case {"keys": keys}, {"type": "list_committed_offsets_ok", "offsets": offsets}:
                told = self._commits_told.get(asked.node, {})
                for key in keys:
                    self._not_ahead(key, offsets.get(key, -1))
                    self._kept(key, offsets.get(key, -1), told.get(key, -1))
            case request, {"type": "error", "code": code, "text": text}:
                self._failed(request, ErrorCode(code), text)

    def handed_over(self, body: Body) -> None:
        """A node tells a peer what it knows of the log."""
        slot, entries = body["slot"], body["entries"]
        known = self.entries[slot : slot + len(entries)]
        require(entries == known, "ViewIsPrefix", f"slots from {slot}: {entries}")

    def _failed(self, request: Body, code: ErrorCode, text: str) -> None:
        require(code is not ErrorCode.CRASH, "NeverCrashes", text)
        if request["type"] == "send" and code.definite:
            where = (request["key"], request["msg"])
            require(where not in self._held, "RejectedNeverAppended", f"{where}: {text}")
            self._refused.add(where)

    def _polled(self, key: str, start: int, pairs: list[list[Any]], asked_s: float) -> None:
        if pairs:
            offsets = [offset for offset, _ in pairs]
            if offsets != list(range(start, start + len(pairs))):
                raise Breach(f"PollContiguous: {key} from {start}: {offsets}")
            known = self.messages.get(key, [])[start : start + len(pairs)]
            if [msg for _, msg in pairs] != known:
                raise Breach(f"ViewIsPrefix: {key} from {start}: {pairs}")
        due = bisect_right(self._since.get(key, []), asked_s - self._freshness_s)
        cut_short = len(pairs) >= POLL_MESSAGES or (self._evicts and bool(pairs))
        fresh = start + len(pairs) >= due or cut_short
        if not fresh:
            text = f"{key} from {start}: {len(pairs)} messages, {due} were there"
            raise Breach(f"PollFresh: {text}")

    def _not_ahead(self, key: str, offset: int) -> None:
        asked = self._commits_asked.get(key, -1)
        require(offset <= asked, "CommitNeverAhead", f"{key} at {offset}, asked for {asked}")

    def _kept(self, key: str, offset: int, told: int) -> None:
        require(offset >= told, "CommitsKept", f"{key} was at {told}, is at {offset}")

    def listed_at_last(self, offsets: dict[str, int]) -> None:
        """In the end, a node knows whatever any node has acknowledged and not lost in a crash."""
        for told in self._commits_told.values():
            for key, offset in told.items():
                self._kept(key, offsets.get(key, -1), offset)


def _raise_to(known: dict[str, int], offsets: dict[str, int]) -> None:
    for key, offset in offsets.items():
        known[key] = max(offset, known.get(key, -1))
