"""Batches under a name that the caller chose: appended as often as you like, in the log once.

    await log.append_named("nightly-load", 7, [("eu", 1), ("us", 2)])

A name is a writer and a number. The log keeps the highest number of each writer for ever: in the head and the
segments, and from there in the runs and pages of the index. So a batch is recognised by any process, after any
number of other writers, and after compaction. It costs one record in the index for each writer, not for each
batch.

A writer's numbers must rise. One that is below a number in the log counts as appended, whatever it held.

A dead letter of a group is such a batch (`leaderless.groups.consumer`), and so is a record that is redriven
(`leaderless.groups.redrive`). Nobody else may take their names.

A batch with large values keeps the epoch that was known before their objects were written. When the log has
another one and the batch is not in it, the objects are written anew (`leaderless.hosting.data`).
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import anyio

from leaderless.core.limits import Limits
from leaderless.core.messages import Append, AppendOk, Failure, Reason
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.errors import Broken, Definite, Indefinite, Unfit
from leaderless.hosting.data import Data, Draft, require_key
from leaderless.hosting.host import Host, error_of
from leaderless.hosting.reads import Record
from leaderless.store.names import path_segment
from leaderless.store.values import Json, Value, encode_value, message_of

FOLDER = "named"  # of these writers, so that none has the name of a process
SEQ_MAX = 2**62
# The epoch of a batch, messages by key, and their bytes.
Drafted = tuple[int, dict[str, list[Json]], int]


class Named:
    """Appends batches of given names to the log of `strategy`, which runs on `host`.

    `epoch_for` gives an epoch that the log has reached, before the objects of drafts are written.
    """

    def __init__(
        self,
        host: Host,
        strategy: LeaderlessLog,
        data: Data,
        epoch_for: Callable[[Sequence[Draft]], Awaitable[int]],
        limits: Limits,
    ) -> None:
        self._host = host
        self._strategy = strategy
        self._data = data
        self._epoch_for = epoch_for
        self._batch_bytes = limits.batch_bytes
        self._patience_s = limits.client_patience_s

    def contains(self, writer: str, seq: int) -> bool:
        """Whether the batch is in the log, as far as this process has read it."""
        return self._strategy.view.contains(_writer(writer), seq)

    async def append(self, writer: str, seq: int, records: Sequence[tuple[str, Value]]) -> None:
        """Return when the batch is in the log. See `Log.append_named`."""
        _require_name(writer, seq)
        drafts = [self._data.draft(value) for _, value in records]
        await self._append(writer, seq, partial(self._made, [key for key, _ in records], drafts))

    async def append_letter(self, group: str, key: str, offset: int, letter: Value) -> None:
        """Return when the dead letter of a group about the record at `offset` of `key` is in the log, once."""
        drafted = partial(self._made, [letters_of(group)], [self._data.draft(letter)])
        await self._append(of_group(group, "dead", key), offset, drafted)

    async def append_redriven(self, group: str, record: Record, to: str) -> None:
        """Return when a record that a group has buried is in the log again, once, in the key `to`.

        Its headers have `redriven_group`, `redriven_key` and `redriven_offset`. Raises `Unfit` for a value that
        has too many levels for headers.
        """
        origin = {"redriven_key": record.key, "redriven_offset": str(record.offset)}
        headers = {**record.headers, "redriven_group": group, **origin}
        draft = self._data.draft_of(record.value, *encode_value(record.value), headers)
        drafted = partial(self._made, [to], [draft])
        await self._append(of_group(group, "redriven", record.key), record.offset, drafted)

    async def append_blocks(
        self, writer: str, seq: int, blocks: Mapping[str, Sequence[Value]], size: int, largest: int
    ) -> None:
        """The same for values by key that `encode_value` has accepted already, which saves their checks.

        `size`: the bytes of keys and of encoded values together; `largest`: of the largest value.
        """
        for key in blocks:
            require_key(key)
        if largest > self._data.inline_bytes:
            records = [(key, value) for key, values in blocks.items() for value in values]
            await self.append(writer, seq, records)
            return
        _require_name(writer, seq)
        appends = {key: [*map(message_of, values)] for key, values in blocks.items()}

        async def drafted() -> Drafted:
            return await self._epoch_for(()), appends, size

        await self._append(writer, seq, drafted)

    async def _append(self, writer: str, seq: int, make: Callable[[], Awaitable[Drafted]]) -> None:
        """Hand the batch to the core until it is in the log; it keeps its name, so no try is one too many."""
        name = _writer(writer)
        until = anyio.current_time() + self._patience_s
        while not self._strategy.view.contains(name, seq):
            epoch, appends, size = await make()
            if size > self._batch_bytes and sum(map(len, appends.values())) > 1:
                raise Unfit(f"a batch of {size} bytes; {self._batch_bytes} fit: make it smaller")
            event = partial(Append, appends=appends, size=size, epoch=epoch, name=(name, seq))
            answer = await self._host.ask(event)
            if isinstance(answer, AppendOk):
                return
            is_over = isinstance(answer, Failure) and answer.reason is Reason.OTHER_EPOCH
            if not is_over or anyio.current_time() >= until:
                error = error_of(answer, self._host.registers)
                if isinstance(error, Definite | Broken):
                    raise error
                raise Indefinite(f"{error}: append it again under its name")
            # It will never be in the log: another one comes, with objects of its own.

    async def _made(self, keys: Sequence[str], drafts: Sequence[Draft]) -> Drafted:
        """The batch in the epoch that the log has now, as far as is known; its objects are written."""
        epoch = await self._epoch_for(drafts)  # before the objects
        messages = await self._data.messages(drafts)
        size = sum(map(len, keys)) + sum(message.size for message in messages)
        appends: dict[str, list[Json]] = {}
        for key, message in zip(keys, messages, strict=True):
            appends.setdefault(key, []).append(message.json)
        return epoch, appends, size


def letters_of(group: str) -> str:
    """The key of a group's dead letters."""
    return f"dead/{group}"


def of_group(group: str, what: str, key: str) -> str:
    """The writer of a group's letters ("dead") about a key, and of what was "redriven". Raises `ValueError`."""
    return f"group/{path_segment(group)}/{what}/{path_segment(key)}"


def _writer(writer: str) -> str:
    return f"{FOLDER}/{writer}"


def _require_name(writer: str, seq: int) -> None:
    if not writer or type(seq) is not int or not 0 <= seq <= SEQ_MAX:
        raise Unfit(
            f"a batch needs a writer and a number from 0 to {SEQ_MAX}, not {writer!r}, {seq}"
        )
    if re.fullmatch("group/[^/]*/(dead|redriven)/[^/]*", writer):
        raise Unfit(f"writer {writer!r}: only dead letters of groups have such names; take another")
