"""The core's vocabulary: events in, effects out. All are immutable values.

Events are what clients ask, what the store or a peer answers, and that time passed. Effects are answers to
clients, calls to the store or to a peer, and protocol steps for a trace. Offsets count from 0 and are dense
per key; `Request` says whom to answer. Times are seconds of a clock that never runs backwards.
"""

from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from leaderless.core.shape import Shape

# What a register holds. A record is none: its `value` is.
Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Fields = dict[str, object]  # of a step in a trace, by name
Pairs = list[list[Any]]  # [[offset, msg], ...], or [[offset, msg, time], ...] of a log with times
Block = tuple[int, list[Json]]  # the offset of the first message, and the messages
Times = list[
    tuple[int, int]
]  # offset and time: it is that of the messages from there to the next one
Held = tuple[int, list[Json], Times]  # a block of a run, and its times
Offsets = dict[str, int]


# ---------------------------------------------------------------- the log


class Entry(NamedTuple):
    """One batch in the log: what `[writer, seq]` appended, at its offsets, and committed.

    `time`: of its committer's clock, in milliseconds since 1970, and never below that of the entry before;
    None where nodes share a log on `lin-kv`, and for what was appended before logs had times.
    """

    writer: str
    seq: int
    appends: dict[str, Block]
    commits: Offsets
    time: int | None = None

    @property
    def value(self) -> list[Any]:
        """As registers hold it."""
        return [*(self[:4] if self.time is None else self)]


class Heading(NamedTuple):
    """The fields of a head without its tail, which a peer gets piece by piece.

    `state`: "open" or "fenced". `epoch`: raised by every fence and unfence; a batch is committed in its own
    epoch or never. `version`: counts the changes of the register, so no two of its values are ever equal.
    `by`: the node that committed last, to which a batch may be handed over. `sealed`: number of sealed
    segments. `base`: slot of the first entry of the tail. `size`: about the bytes of the tail. `shape`: that of
    the log.
    """

    state: str = "open"
    epoch: int = 0
    version: int = 0
    by: str = ""
    sealed: int = 0
    base: int = 0
    size: int = 0
    shape: Shape = Shape()


class Request(NamedTuple):
    """Whom to answer: the sender of a message and its `msg_id`."""

    src: str
    msg_id: int


# ---------------------------------------------------------------- events: requests of clients


class Send(NamedTuple):
    """Append `msg` (any JSON value) to the log of `key`; `size` is about its length in bytes.

    `epoch`: the only epoch of the log in which it may be committed, None: in any. A message that refers to
    objects has an epoch that was known before they were written (`leaderless.upkeep.maintenance`). In another
    epoch it is refused: `Reason.OTHER_EPOCH`.
    """

    request: Request
    key: str
    msg: Json
    size: int = 0
    epoch: int | None = None


class Append(NamedTuple):
    """Append messages of several keys, `{key: [msg, ...]}`, all or none; of a key at consecutive offsets.

    `size` and `epoch` are as of `Send`. `name`: a writer that no node has and its number, which name the batch
    for ever. Then `epoch` is required, and to ask again, anywhere, appends nothing twice. A writer's numbers
    rise. None: it shares a batch with whatever waits. `expected`, `commits`: as of `Batch`.
    """

    request: Request
    appends: dict[str, list[Json]]
    size: int
    epoch: int | None = None
    name: tuple[str, int] | None = None
    expected: Offsets = {}  # noqa: RUF012 - never changed
    commits: Offsets = {}  # noqa: RUF012


class Refresh(NamedTuple):
    """Bring the view of the log up to date."""

    request: Request


class Poll(NamedTuple):
    """Messages of each key from an offset on: `{key: offset}`.

    `messages_max`: of one key; None: as many as an answer may have.
    """

    request: Request
    offsets: dict[str, int]
    messages_max: int | None = None


class CommitOffsets(NamedTuple):
    """Remember, per key, the highest offset that a consumer has processed."""

    request: Request
    offsets: dict[str, int]


class ListCommittedOffsets(NamedTuple):
    """The committed offsets of `keys`."""

    request: Request
    keys: list[str]


class Fence(NamedTuple):
    """Close the log for appends, from a new epoch on; reads go on."""

    request: Request


class Unfence(NamedTuple):
    """Open a fenced log again, in a new epoch."""

    request: Request


class NodeStatus(NamedTuple):
    """What the node does, and what it waits for."""

    request: Request


class Batch(NamedTuple):
    """Appends and committed offsets that one writer wants in the log together.

    `[writer, seq]` names it for ever. `epoch` is the only epoch in which it may be committed. `appends`
    are messages a key, still without offsets; `size` is about their length in bytes. `expected`: where keys
    must end before it. `commits`: tokens of keys, too (`leaderless.core.headlog.conditions`).
    """

    writer: str
    seq: int
    epoch: int
    appends: dict[str, list[Json]]
    commits: dict[str, int]
    size: int
    expected: Offsets = {}  # noqa: RUF012


class HandOver(NamedTuple):
    """A peer asks this node to commit its batch; the peer's view reaches to slot `slot`."""

    request: Request
    slot: int
    batch: Batch


class Share(NamedTuple):
    """Messages of each key, `{key: [[offset, msg], ...]}`, that a peer shows unasked. There is no answer."""

    msgs: dict[str, Pairs]


# ---------------------------------------------------------------- events: answers and time


class NotSent(NamedTuple):
    """The question never left: the peer has not got it, and never will."""


class PeerAnswer(NamedTuple):
    """What a peer answered to the call numbered `call`; None when it refused or made no sense."""

    call: int
    answer: "PeerReply | None"


class StoreAnswer(NamedTuple):
    """The outcome of the store call numbered `call`."""

    call: int
    outcome: "Outcome"


class TimePassed(NamedTuple):
    """Nothing arrived, but the machine's `deadline` came."""


# ---------------------------------------------------------------- the store's operations


class Get(NamedTuple):
    """Read a register. `known`: a value that it had; what comes may be this very object, if it has it still."""

    key: str
    known: Json = None


class Put(NamedTuple):
    """Write a register, whatever it holds."""

    key: str
    value: Json


class Cas(NamedTuple):
    """Replace `old` by `new`; with `create`, also make the register when it is missing."""

    key: str
    old: Json
    new: Json
    create: bool = False


StoreOp = Get | Put | Cas


class Ok(NamedTuple):
    """It happened; `value` is what a `Get` read, None otherwise."""

    value: Json = None


class Mismatch(NamedTuple):
    """The register holds something else; nothing was changed."""


class Missing(NamedTuple):
    """The register does not exist; nothing was changed."""


class Unknown(NamedTuple):
    """No answer, or an indefinite one: it may have happened, and it may still happen later.

    `spent`: which part of the patience of whoever asks is used up by it; with 1 it is of no use to ask again.
    A port says 1 for a definite refusal, and otherwise nothing: the rest is the scheduler's.
    `refused`: the store refused it, so it did not happen, and will not. Most who ask may take it for silence.
    `damaged`: what came is no JSON.
    """

    spent: float = 0.0
    refused: bool = False
    damaged: bool = False


Outcome = Ok | Mismatch | Missing | Unknown


# ---------------------------------------------------------------- effects


class SendOk(NamedTuple):
    """The message is in the log at `offset`."""

    offset: int


class AppendOk(NamedTuple):
    """The messages are in the log, those of each key from `{key: offset}` on; empty for a batch with a name."""

    offsets: Offsets


class RefreshOk(NamedTuple):
    """The view has all that was acknowledged before it was asked for."""


class PollOk(NamedTuple):
    """`{key: [[offset, msg], ...]}`; a key without messages is left out."""

    msgs: dict[str, Pairs]


class CommitOffsetsOk(NamedTuple):
    """The offsets are kept."""


class ListCommittedOffsetsOk(NamedTuple):
    """`{key: offset}`; a key without a committed offset is left out."""

    offsets: dict[str, int]


class FenceOk(NamedTuple):
    """The log is fenced, or open again, since `epoch`."""

    epoch: int


class StatusOk(NamedTuple):
    """What the node does, and what it waits for, by name (`docs/log/node.md`)."""

    fields: Fields


class HandedOver(NamedTuple):
    """To a peer: the entries from slot `slot` on, its batch among them if it is in the log.

    `head` is the head without its tail. `held_s` is how long the batch waited
    before the store call that confirmed all this was made.
    """

    slot: int
    entries: list[Entry]
    head: Heading
    held_s: float


class Reason(Enum):
    """Why a request failed; `leaderless.wire.bodies` has the code of each.

    After `TIMEOUT`, `CRASH` and `BROKEN` it may have happened, or may still. After any other it never will.
    """

    TIMEOUT = "no outcome in time"
    CRASH = "a bug"
    BROKEN = "the log breaks an invariant"
    NOT_SUPPORTED = "the strategy does not serve it"
    BUSY = "too much waits already"
    FENCED = "the log is fenced"
    UNFIT = "it is too large for the log"
    OTHER_EPOCH = "the log has another epoch"
    REFUSED = "the store refuses it"
    CONFLICT = "the key does not end where it was expected to"
    STALE_TOKEN = "the key has a higher token"
    CLOSED = "the key is closed"

    @property
    def definite(self) -> bool:
        """Whether it certainly did not happen."""
        return self not in (Reason.TIMEOUT, Reason.CRASH, Reason.BROKEN)


class Failure(NamedTuple):
    """A request failed. `text` is for people alone; `found`: the end or the token that the key has instead."""

    reason: Reason
    text: str
    found: int = 0


PeerReply = HandedOver | SendOk | NotSent  # what becomes of a question, if it is clear
Answer = (
    SendOk
    | AppendOk
    | RefreshOk
    | PollOk
    | CommitOffsetsOk
    | ListCommittedOffsetsOk
    | FenceOk
    | StatusOk
    | HandedOver
    | Failure
)


class Reply(NamedTuple):
    """Answer a client."""

    request: Request
    answer: Answer


class StoreCall(NamedTuple):
    """Ask the store; the outcome comes back as `StoreAnswer` with the same `call`."""

    call: int
    op: StoreOp


class Offer(NamedTuple):
    """A batch that a peer may commit; the asker's view reaches to `slot`."""

    slot: int
    batch: Batch


Question = Offer | Send  # what a peer may be asked; a `Send` is passed on as the client asked it


class PeerCall(NamedTuple):
    """Ask the peer `dest`; the answer comes back as `PeerAnswer` with the same `call`."""

    call: int
    dest: str
    question: Question


class Tell(NamedTuple):
    """Show something to the peer `dest`, which may never learn of it."""

    dest: str
    share: Share


class Note(NamedTuple):
    """Something for the node's log.

    `broken`: an invariant of the log does not hold, or the node has a bug.
    """

    text: str
    broken: bool = False


RequestEvent = (
    Send
    | Append
    | Refresh
    | Poll
    | CommitOffsets
    | ListCommittedOffsets
    | Fence
    | Unfence
    | NodeStatus
    | HandOver
)
Event = RequestEvent | Share | StoreAnswer | PeerAnswer | TimePassed
Effect = Reply | StoreCall | PeerCall | Tell | Note
