"""Batches under a name that the caller chose: appended as often as you like, in the log once.

    await log.append_named("nightly-load", 7, [("eu", 1), ("us", 2)])

A name is a writer and a number. The log keeps the highest number of each writer for ever: in the head and the
segments, and from there in the runs and pages of the index. So a batch is recognised by any process, after any
number of other writers, and after compaction. It costs one record in the index for each writer, not for each
batch.

A writer's numbers must rise. One that is below a number in the log counts as appended, whatever it held.
"""

from collections.abc import Sequence
from functools import partial

import anyio

from leaderless.core.messages import Answer, Batch, HandedOver, HandOver, Heading
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.errors import Fenced, Indefinite, Stalled, Unfit
from leaderless.library.data import DATA_STALLED_S, Data
from leaderless.library.host import Host
from leaderless.store.calls import side_by_side
from leaderless.store.values import Encoded, Json, Value, values_in

FOLDER = "named"  # of these writers, so that none has the name of a process
SEQ_MAX = 2**62


class Named:
    """Appends batches of given names to the log of `strategy`, which runs on `host`."""

    def __init__(
        self, host: Host, strategy: LeaderlessLog, data: Data, batch_bytes: int, patience_s: float
    ) -> None:
        self._host = host
        self._strategy = strategy
        self._data = data
        self._batch_bytes = batch_bytes
        self._patience_s = patience_s

    def contains(self, writer: str, seq: int) -> bool:
        """Whether the batch is in the log, as far as this process has read it."""
        return self._strategy.view.contains(_writer(writer), seq)

    async def append(self, writer: str, seq: int, records: Sequence[tuple[str, Value]]) -> None:
        """Return when the batch is in the log. See `Log.append_named`."""
        values = [value for _, value in records]
        inline = [self._data.inline(value) for value in values]
        await self._append(writer, seq, [key for key, _ in records], values, inline)

    async def append_encoded(self, writer: str, seq: int, records: Sequence[Encoded]) -> None:
        """The same for records whose values are texts already, which saves their checks."""
        values = values_in(records)
        inline = [
            self._data.inline_of(value, len(record.text))
            for value, record in zip(values, records, strict=True)
        ]
        await self._append(writer, seq, [record.key for record in records], values, inline)

    async def _append(
        self,
        writer: str,
        seq: int,
        keys: Sequence[str],
        values: Sequence[Value],
        inline: Sequence[tuple[Json, int] | None],
    ) -> None:
        """Append values; `inline`: their messages and sizes, None for those that get an object of their own."""
        _require_name(writer, seq)
        since = anyio.current_time()
        messages = await self._messages(values, inline)
        appends: dict[str, list[Json]] = {}
        for key, (message, _) in zip(keys, messages, strict=True):
            if key in appends:
                appends[key].append(message)
            else:
                appends[key] = [message]
        size = sum(map(len, keys)) + sum(size for _, size in messages)
        if len(keys) > 1 and size > self._batch_bytes:
            raise Unfit(f"a batch of {size} bytes; {self._batch_bytes} fit: make it smaller")
        if anyio.current_time() - since > DATA_STALLED_S:
            raise Stalled("the process stood still before the append: append it again")
        await self._deliver(Batch(_writer(writer), seq, 0, appends, {}, size))

    async def _messages(
        self, values: Sequence[Value], inline: Sequence[tuple[Json, int] | None]
    ) -> list[tuple[Json, int]]:
        large = [value for value, message in zip(values, inline, strict=True) if message is None]
        made = iter(await side_by_side([partial(self._data.message, value) for value in large]))
        return [next(made) if message is None else message for message in inline]

    async def _deliver(self, batch: Batch) -> None:
        """Hand the batch to the core until it is in the log; it keeps its name, so no try is one too many."""
        until = anyio.current_time() + self._patience_s
        view = self._strategy.view
        while not view.contains(batch.writer, batch.seq):
            if anyio.current_time() >= until:
                text = f"no outcome within {self._patience_s:g} s: append it again under its name"
                raise Indefinite(text)
            offer = partial(_offer, slot=view.slot, batch=batch)
            [answer] = await self._host.ask([offer])
            heading = _heading(answer)
            if heading.state == "fenced" and not view.contains(batch.writer, batch.seq):
                raise Fenced("the log is fenced; nothing was appended")
            batch = batch._replace(epoch=heading.epoch)


def _offer(request: object, slot: int, batch: Batch) -> HandOver:
    return HandOver(request, slot, batch)  # type: ignore[arg-type]


def _heading(answer: Answer) -> Heading:
    if not isinstance(answer, HandedOver):
        raise Indefinite(f"no outcome: {answer}")
    return answer.head


def _writer(writer: str) -> str:
    return f"{FOLDER}/{writer}"


def _require_name(writer: str, seq: int) -> None:
    if not writer or not 0 <= seq <= SEQ_MAX:
        raise Unfit(
            f"a batch needs a writer and a number from 0 to {SEQ_MAX}, not {writer!r}, {seq}"
        )
