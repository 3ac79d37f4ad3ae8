"""A virtual bucket: objects with ETags made of their content, and every request that reached it.

It does what an S3 server does at the moment in which a request is carried out; time and loss are the network's.
Reads and listings show every write before them. As a service of the bench's network (`handle`) it carries out a
request once, however often its message arrives: a connection doubles nothing.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import md5
from typing import Any, NamedTuple

import orjson

from bench.services import Body, error
from leaderless.core.messages import Entry
from leaderless.core.strategy import Identity, Trace
from leaderless.peers.lines import writer_of
from leaderless.store.names import is_file, span_of_run
from leaderless.store.port import Found, Listed
from leaderless.upkeep.laws.lawful import Observer
from simulation.contents import Contents, run_in
from simulation.refinement import Refinement

PRECONDITION_FAILED = 22
TEXT = "latin-1"  # any bytes are a text in it
FOLLOWED = ("head", "segment", "run", "compacted")  # of the folders
EPOCH_S = 1_750_000_000.0  # what the clock of the bucket shows when the virtual time begins


class Request(NamedTuple):
    """A request that was carried out, or refused.

    `number`: in the order in which they came; `kind`: put, create, update, get, list or delete; `key`: of the
    object, or the folder, or the first of those that were deleted; `value`: what was written or read;
    `outcome`: "ok", "conflict", "unchanged" (of a get), or the fault.
    """

    number: int
    time_s: float
    client: str
    kind: str
    key: str
    value: bytes
    outcome: str


class Bucket:
    """The objects; `now_s` gives the virtual time. `journal`: every request, if it is kept.

    `tells_times`: whether a listing says when objects were written, as S3 does and etcd does not.
    `changed` is told what an object holds now (None: it was deleted).
    """

    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        keep: bool = True,
        tells_times: bool = True,
        changed: Callable[[str, bytes | None], object] = lambda _key, _value: None,
    ) -> None:
        self._now_s = now_s
        self._keep = keep
        self._tells_times = tells_times
        self._changed = changed
        self._objects: dict[str, tuple[Found, float]] = {}
        self._answers: dict[tuple[str, int], Body] = {}
        self.requests = Counter[str]()  # by kind; refused ones count, as they do on S3
        self.journal: list[Request] = []

    @property
    def clock_s(self) -> float:
        """The time of the bucket's clock, in seconds since 1970."""
        return EPOCH_S + self._now_s()

    def traced(self, _identity: Identity) -> Trace:
        """A process starts; what takes its steps."""
        return Trace()

    def note(
        self, client: str, kind: str, key: str, value: bytes = b"", outcome: str = "ok"
    ) -> None:
        """A request reached the bucket."""
        self.requests[kind] += 1
        if self._keep:
            number = len(self.journal) + 1
            self.journal.append(Request(number, self._now_s(), client, kind, key, value, outcome))

    def handle(self, client: str, request: Body) -> Body:
        """The reply to a request of a `simulation.programs.Port`: see `Consistency`."""
        call = client, request["msg_id"]
        if call not in self._answers:
            self._answers[call] = self.carried_out(client, request)
        return dict(self._answers[call])

    def carried_out(self, client: str, request: Body) -> Body:
        """The reply to a request that came once."""
        kind, key = request["type"], request["key"]
        found, modified = self._objects.get(key, (None, 0.0))
        noted, outcome = request.get("value", "").encode(TEXT), "ok"
        answer: Body = {"type": f"{kind}_ok"}
        match kind:
            case "create" if found:
                outcome, answer = "conflict", error(PRECONDITION_FAILED, f"{key} exists")
            case "update" if not found or found.version != request["etag"]:
                outcome, answer = "conflict", error(PRECONDITION_FAILED, f"{key} has another ETag")
            case "put" | "create" | "update":
                answer["etag"] = self._put(key, noted)
            case "delete":
                for each in [each for each in request["keys"] if self._objects.pop(each, None)]:
                    self._changed(each, None)
                noted = orjson.dumps(request["keys"])
            case "list":
                page = self._listing(key, request["after"], request["limit"])
                answer["found"] = [list(each) for each in page]
                noted = orjson.dumps([each.key for each in page])
            case "get" if found:
                answer["etag"] = found.version
                answer["modified"] = modified if self._tells_times else None
                if "length" in request:
                    part = slice(request["start"], request["start"] + request["length"])
                    answer["value"], answer["size"] = (
                        found.value[part].decode(TEXT),
                        len(found.value),
                    )
                elif request.get("unless") == found.version:
                    outcome = "unchanged"
                else:
                    answer["value"], noted = found.value.decode(TEXT), found.value
        self.note(client, kind, key, noted, outcome)
        return answer

    def value_of(self, key: str) -> bytes | None:
        """What an object holds, None: it is not there."""
        held = self._objects.get(key)
        return held[0].value if held else None

    def objects(self) -> list[tuple[str, Found, float]]:
        """All objects: key, value with ETag, and when it was written."""
        return [(key, *self._objects[key]) for key in sorted(self._objects)]

    def _put(self, key: str, value: bytes) -> str:
        """Write; returns the ETag."""
        etag = f'"{md5(value, usedforsecurity=False).hexdigest()}"'
        self._objects[key] = Found(value, etag), self.clock_s
        self._changed(key, value)
        return etag

    def _listing(self, folder: str, after: str, limit: int) -> list[Listed]:
        """See `leaderless.store.port.Store.list_objects`."""
        within = f"{folder}/" if folder else ""
        keys = sorted(key for key in self._objects if key.startswith(within) and key > after)
        return [
            Listed(key, len(found.value), modified if self._tells_times else None)
            for key in keys[:limit]
            for found, modified in [self._objects[key]]
        ]


def judge(key: str, value: bytes | None, laws: Observer, refinement: Refinement) -> list[Entry]:
    """Each change of our log keeps the laws, and is a step of the model. Else it raises.

    Returns the entries that the log has more.
    """
    if not is_file(key):
        added = laws.changed(key, value)
        if key.partition("/")[0] in FOLLOWED:
            refinement.changed(key, orjson.loads(value or b"null"))
        return added
    if value is not None and span_of_run(key):
        refinement.changed(key.removesuffix(".parquet"), run_in(value))
    return []


class LawfulBucket(Bucket):
    """A bucket of our log, of which each change is judged.

    `refinement`: what follows the processes, too; a program is a node that starts once. `contents`: what the
    log holds. `told`: as `contents`, of each change.
    """

    def __init__(self, now_s: Callable[[], float], refinement: Refinement, **named: Any) -> None:
        super().__init__(now_s, changed=self._judge, **named)
        self._laws, self._refinement = Observer(), refinement
        self.contents = Contents(self.value_of, lambda: self.clock_s)
        self.told: Callable[[str, bytes | None, Sequence[Entry]], object] = lambda *_: None

    def traced(self, identity: Identity) -> Trace:
        """See `Bucket`."""
        writer = writer_of(identity.node)
        self._refinement.started(writer)
        return self._refinement.traced(writer)

    def _judge(self, key: str, value: bytes | None) -> None:
        added = judge(key, value, self._laws, self._refinement)
        self.contents.changed(key, value, added)
        self.told(key, value, added)
