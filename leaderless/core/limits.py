"""What one process chooses for itself, as one value: chosen at the root, checked once, passed down.

A bound is about how much or how many. Processes of one log may differ in all of them. What they must agree on
stands in the log (`leaderless.core.shape`).
"""

from contextlib import suppress
from dataclasses import dataclass, replace

from leaderless.core.shape import Shape, require_fields

MESSAGE_BYTES_MIN = 1_024  # a process that may send no more than this does not share a log
_OF_MESSAGES = ("message_bytes", "batch_bytes")
NAMES_BYTES = 65_536  # around the messages of a segment: names, brackets, numbers


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one process. Raises `ValueError` for a bad relation.

    `line_bytes`: of one line that this process can read; a longer one is no message.
    `message_bytes`: of one request of a client; a larger one is refused.
    `answer_bytes`: of the messages in an answer to a poll or a peer, unless a single message is larger. More
        of it saves requests of a reader that is behind; the node serves nothing else while it writes.
    `lanes`: batches that a node has under way at most. More lanes hide the round trip when it is long, and
        make more, smaller commits.
    `batch_bytes`: of one batch, unless a single message is larger. Larger batches save messages, and delay
        whatever shares their lane. A compare-and-set has up to twice as much, or a single batch.
    `waiting_bytes`: of memory for the sends that are in no batch yet, about; a node refuses more with a
        definite error.
    `poll_messages`: of a key in one answer; the rest is one poll further on.
    `memory_bytes`: of messages, runs and pages in memory, about; what is older is read back from the store
        when polled. The ends of keys, the committed offsets and the writers' last numbers come on top.
    `ahead_bytes`: of runs that are read before a reader needs them that goes through the log in order, about.
        They take up to a quarter of `memory_bytes`, and slices have other room. With 0 each run is read when it
        is asked for.
    `compaction_bytes`: of segments that are compacted at once, about; 0: one run, and no append waits for it.
        More of them keep pace with a faster producer, and take memory. In a process that compacts, appends wait
        while more than twice as much waits.
    `committed_keys`: of the register of a node's durable commits. With more of them its commits move into the
        log, unless it is fenced. Each commit writes the whole register twice (`from` and `to`).
    `commits_idle_s`: how long committed offsets wait for a batch to ride in, in seconds. A crash of the node
        loses what waits.
    `client_patience_s`: how long a client waits for an answer before it is gone, in seconds. Nothing is sent
        to it later: on the real tool one message to a client that is gone cuts the node off for ever. When a
        tenth of it is left, a request without an answer gets an indefinite error.
    """

    line_bytes: int = 1 << 26
    message_bytes: int = 1 << 20
    answer_bytes: int = 1 << 20
    lanes: int = 4
    batch_bytes: int = 32_768
    waiting_bytes: int = 1 << 26
    poll_messages: int = 4_096
    memory_bytes: int = 256 << 20
    ahead_bytes: int = 0
    compaction_bytes: int = 0
    committed_keys: int = 256
    commits_idle_s: float = 3.0
    client_patience_s: float = 5.0

    def __post_init__(self) -> None:
        require_fields(
            self, "at least 1", lambda n: n >= 1, "lanes", "poll_messages", "batch_bytes"
        )
        require_fields(self, "above 0", lambda s: s > 0, "client_patience_s", "commits_idle_s")

    def require_fit(self, shape: Shape) -> None:
        """Raise `ValueError` if this process cannot share a log of this shape.

        Whatever is acknowledged must be readable by all, so all registers are bounded by what follows from the
        shape and from the largest message of each process.
        """
        bound = f"at least register_bytes of the log ({shape.register_bytes})"
        require_fields(self, bound, lambda size: size >= shape.register_bytes, "line_bytes")
        most = shape.register_bytes // 2  # a compare-and-set of the head has two tails
        if not shape.sliced:  # a run that is full but for a byte takes one more segment
            most = min(most, shape.register_bytes - shape.run_bytes)
        if (size := self.segment_bytes(shape)) > most:
            raise ValueError(
                f"a segment must be at most {most} bytes in this log, got up to {size}: "
                f"lower message_bytes ({self.message_bytes}) or batch_bytes ({self.batch_bytes})"
            )

    def fitted(self, shape: Shape) -> "Limits":
        """With messages and batches that fit into the registers of a log of this shape.

        Raises `ValueError` for a log that this process cannot share whatever it writes.
        """
        fitted = self
        while fitted.message_bytes > MESSAGE_BYTES_MIN:
            with suppress(ValueError):
                fitted.require_fit(shape)
                return fitted
            halves = {name: getattr(fitted, name) // 2 for name in _OF_MESSAGES}
            fitted = replace(fitted, **halves)
        self.require_fit(shape)  # it says what is wrong
        return self

    def segment_bytes(self, shape: Shape) -> int:
        """What a segment may take: a tail that was not full yet, and the last commit, of a single batch."""
        last = max(self.commit_bytes, self.batch_bytes + self.message_bytes)
        return shape.seal_bytes + last + self.batch_bytes + NAMES_BYTES

    @property
    def commit_bytes(self) -> int:
        """Of the batches in one compare-and-set, unless a single batch is larger."""
        return 2 * self.batch_bytes

    @property
    def answer_margin_s(self) -> float:
        """For the way of a request and of its answer, and the time of one step, in seconds."""
        return self.client_patience_s / 10

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
