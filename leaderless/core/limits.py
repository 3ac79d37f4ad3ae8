"""The bounds of the node, as one value: chosen at the root, checked once, passed down.

A bound is about how much or how many. None of them is needed for safety: any values that `Limits` accepts
give the same log, sooner or later.
"""

from dataclasses import dataclass, replace

NAMES_BYTES = 65_536  # around the messages of a segment: names, brackets, numbers


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one node. All nodes of a log may differ in them. Raises `ValueError` for a bad relation.

    `line_bytes`: of one line that any node can read; a longer one is no message.
    `message_bytes`: of one request of a client; a larger one is refused. Whatever is acknowledged must be
        readable by any node, so every register and every answer is bounded by what follows from this.
    `answer_bytes`: of the messages in an answer to a poll or a peer, unless a single message is larger. More
        of it saves requests of a reader that is behind; the node serves nothing else while it writes.
    `lanes`: batches that a node has under way at most. More lanes hide the round trip when it is long, and
        make more, smaller commits.
    `batch_bytes`: of one batch, unless a single message is larger. Larger batches save messages, and delay
        whatever shares their lane.
    `commit_bytes`: of the batches in one compare-and-set, unless a single batch is larger.
    `waiting_bytes`: of memory for the sends that are in no batch yet, about; a node refuses more with a
        definite error.
    `seal_bytes`, `seal_entries`: a tail of the head that reaches one of them is full, and becomes a segment.
        Each commit writes the whole tail twice (`from` and `to`), so a longer tail costs bytes a commit; a
        shorter one costs two more messages for each segment.
    `segments_per_run`: so many segments are compacted together. More of them make larger registers, which
        must be read whole; fewer make more registers, and a longer index.
    `run_bytes`: a run whose segments have so many bytes takes no further one.
    `page_children`: so many runs, or pages of a level, become one page of the next level of the index. With
        more of them the index has fewer levels to descend, and a start reads more.
    `page_bytes`: about, of one part of a page. Larger parts are fewer; each must be read whole.
    `recent_entries`: newest entries that stay as they are, for peers that lack them, up to `answer_bytes`.
    `poll_messages`: of a key in one answer; the rest is one poll further on.
    `memory_bytes`: of messages, runs and pages in memory, about; what is older is read back from the store
        when polled. The ends of keys, the committed offsets and the writers' last numbers come on top.
    `sliced`: whether the store has slices of runs, `run/A-B/OFFSET/KEY`. Then the node asks for a slice
        where it would read a run whole. `lin-kv` has none.
    `committed_keys`: of the register of a node's durable commits. With more of them its commits move into the
        log, unless it is fenced. Each commit writes the whole register twice (`from` and `to`).
    `commits_idle_s`: how long committed offsets wait for a batch to ride in, in seconds. A crash of the node
        loses what waits.
    `client_patience_s`: how long a client waits for an answer before it is gone, in seconds. Nothing is sent
        to it later: on the real tool one message to a client that is gone cuts the node off for ever.
    `answer_margin_s`: so long before that a request without an answer gets an indefinite error. It covers
        the way of the request and of the answer, and the time of one step.
    """

    line_bytes: int = 1 << 26
    message_bytes: int = 1 << 20
    answer_bytes: int = 1 << 20
    lanes: int = 4
    batch_bytes: int = 32_768
    commit_bytes: int = 65_536
    waiting_bytes: int = 1 << 26
    seal_bytes: int = 8_192
    seal_entries: int = 256
    segments_per_run: int = 16
    run_bytes: int = 1 << 19
    page_children: int = 16
    page_bytes: int = 1 << 18
    recent_entries: int = 2_048
    poll_messages: int = 4_096
    memory_bytes: int = 256 << 20
    sliced: bool = False
    committed_keys: int = 256
    commits_idle_s: float = 3.0
    client_patience_s: float = 5.0
    answer_margin_s: float = 0.5

    def __post_init__(self) -> None:
        counts = (self.lanes, self.seal_entries, self.recent_entries, self.poll_messages)
        _require(min(counts) >= 1, "nothing moves without a lane, an entry, a message")
        _require(self.segments_per_run >= 2, "a run of one segment saves nothing")
        _require(0 < self.batch_bytes <= self.commit_bytes, "a commit must have room for a batch")
        _require(self.page_children >= 2, "a page of one child saves nothing")
        _require(
            self.run_bytes + self.segment_bytes <= self.line_bytes,
            "any node must be able to read a run, whose last segment has a message as large as can be",
        )
        _require(
            2 * self.segment_bytes <= self.line_bytes,
            "a compare-and-set of the head has two tails, each with a message as large as can be",
        )
        _require(
            64 * self.page_bytes <= self.line_bytes,
            "any node must be able to read a part of a page; a hash of keys does not make all parts equal",
        )
        _require(
            self.seal_entries <= self.recent_entries,
            "a peer that lacks part of the tail must get it from the recent entries",
        )
        _require(
            0 <= self.answer_margin_s < self.client_patience_s,
            "an error after the margin must still find its client",
        )
        _require(self.commits_idle_s > 0, "a flush without a pause would be endless")

    def fitted(self, register_bytes: int) -> "Limits":
        """With registers of at most `register_bytes`, which are 1 MiB or more."""
        if register_bytes >= self.line_bytes:
            return self
        return replace(
            self,
            line_bytes=register_bytes,
            message_bytes=min(self.message_bytes, register_bytes // 16),
            batch_bytes=min(self.batch_bytes, register_bytes // 32),
            commit_bytes=min(self.commit_bytes, register_bytes // 16),
            seal_bytes=min(self.seal_bytes, register_bytes // 128),
            run_bytes=min(self.run_bytes, register_bytes // 2),
            page_bytes=min(self.page_bytes, register_bytes // 128),
        )

    @property
    def segment_bytes(self) -> int:
        """What a segment may take: a tail that was not full yet, and the last commit, of a single batch."""
        last = max(self.commit_bytes, self.batch_bytes + self.message_bytes)
        return self.seal_bytes + last + self.batch_bytes + NAMES_BYTES

    @property
    def answer_s(self) -> float:
        """How long after its arrival a request is answered at the latest, in seconds."""
        return self.client_patience_s - self.answer_margin_s

    @property
    def gone_s(self) -> float:
        """How long after the arrival of a request nothing is sent to its client any more, in seconds.

        The second half of the margin is left for the way: the client began to wait before the arrival.
        """
        return self.client_patience_s - self.answer_margin_s / 2


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise ValueError(f"limits: {reason}")
