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
from collections.abc import Awaitable, Callable, Sequence

import anyio

from leaderless.core.limits import Limits
from leaderless.core.messages import Append, AppendOk, Failure, Reason
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.errors import Broken, Definite, Indefinite, Unfit
from leaderless.hosting.data import Data, Draft
from leaderless.hosting.host import Host, MakeEvent, error_of
from leaderless.hosting.reads import Record
from leaderless.store.names import path_segment
from leaderless.store.values import Encoded, Json, Value, encode_value, values_in

FOLDER = "named"  # of these writers, so that none has the name of a process
SEQ_MAX = 2**62


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
        await self._append(writer, seq, [key for key, _ in records], drafts)

    async def append_letter(self, group: str, key: str, offset: int, letter: Value) -> None:
        """Return when the dead letter of a group about the record at `offset` of `key` is in the log, once."""
        await self._append(
            of_group(group, "dead", key), offset, [letters_of(group)], [self._data.draft(letter)]
        )

    async def append_redriven(self, group: str, record: Record, to: str) -> None:
        """Return when a record that a group has buried is in the log again, once, in the key `to`.

        Its headers have `redriven_group`, `redriven_key` and `redriven_offset`. Raises `Unfit` for a value that
        has too many levels for headers.
        """
        origin = {"redriven_key": record.key, "redriven_offset": str(record.offset)}
        headers = {**record.headers, "redriven_group": group, **origin}
        draft = self._data.draft_of(record.value, *encode_value(record.value), headers)
        await self._append(of_group(group, "redriven", record.key), record.offset, [to], [draft])

    async def append_encoded(self, writer: str, seq: int, records: Sequence[Encoded]) -> None:
        """The same for records whose values are texts already, which saves their checks."""
        _require_name(writer, seq)
        drafts = [
            self._data.draft_of(value, record.text, "json" if record.is_json else "bytes")
            for value, record in zip(values_in(records), records, strict=True)
        ]
        await self._append(writer, seq, [record.key for record in records], drafts)

    async def _append(
        self, writer: str, seq: int, keys: Sequence[str], drafts: Sequence[Draft]
    ) -> None:
        """Hand the batch to the core until it is in the log; it keeps its name, so no try is one too many."""
        name = _writer(writer)
        until = anyio.current_time() + self._patience_s
        while not self._strategy.view.contains(name, seq):
            answer = await self._host.ask(await self._event(name, seq, keys, drafts))
            if isinstance(answer, AppendOk):
                return
            is_over = isinstance(answer, Failure) and answer.reason is Reason.OTHER_EPOCH
            if not is_over or anyio.current_time() >= until:
                error = error_of(answer, self._host.registers)
                if isinstance(error, Definite | Broken):
                    raise error
                raise Indefinite(f"{error}: append it again under its name")
            # It will never be in the log: another one comes, with objects of its own.

    async def _event(
        self, name: str, seq: int, keys: Sequence[str], drafts: Sequence[Draft]
    ) -> MakeEvent:
        """The batch in the epoch that the log has now, as far as is known; its objects are written."""
        epoch = await self._epoch_for(drafts)  # before the objects
        messages = await self._data.messages(drafts)
        size = sum(map(len, keys)) + sum(message.size for message in messages)
        if len(keys) > 1 and size > self._batch_bytes:
            raise Unfit(f"a batch of {size} bytes; {self._batch_bytes} fit: make it smaller")
        appends: dict[str, list[Json]] = {}
        for key, message in zip(keys, messages, strict=True):
            appends.setdefault(key, []).append(message.json)
        return lambda request: Append(request, appends, size, epoch, (name, seq))


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
