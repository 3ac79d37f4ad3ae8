"""Explored programs and nodes beside a bucket: the fates of requests and processes, and how an end is judged.

Each process is a program with one client, or a node on the bucket (`simulation.programs`). It runs until all
its tasks wait for the bucket or for a timer, which takes no time. Its requests are held; an event decides.

| event | what happens |
|---|---|
| `carry R` | request R is carried out, and its process gets the answer |
| `lose R` | request R is lost, and its process gets `OutcomeUnknown` |
| `forget R` | request R is carried out, and its process gets `OutcomeUnknown` |
| `delay R` | the process of R gets `OutcomeUnknown`, and R is still on its way |
| `arrive R` | request R is carried out, and nobody waits for it |
| `kill P` | process P dies, and what it asked is lost; a node starts again |
| `orphan P` | process P dies, and what it asked is still on its way; a node starts again |
| `deliver M` | message M of a process arrives at another one, or nobody is there any more |
| `lose M`, `double M` | message M is lost, or there are two of it |

The other events are those of `explored`. A timer that is due within 10 ms may ring while requests are held. A
program to which none hands over ends when its client has nothing more to ask; the writes that it asked for are
still on their way.
"""

from collections.abc import Iterator

from leaderless.upkeep import fsck
from leaderless.upkeep.laws.lawful import Observer
from leaderless.wire.bodies import ErrorCode
from simulation.bucket import Bucket, judge
from simulation.contents import Contents
from simulation.exploration.explored import Explored
from simulation.exploration.search import Event, Failing
from simulation.life import BUCKET
from simulation.logs import LEADERLESS
from simulation.oracle import Body, require
from simulation.port import at_once

READS = ("get", "list")
BEGIN_S = 1.0  # what a process has read before is older than any request
FIRST_PROCESS, LAST_PROCESS = "before", "last"


class ExploredBucket(Explored):
    """Programs and their bucket. `late`: requests that are on their way, and that nobody waits for.

    `begins_at`: so many requests were made before the exploration, the same in every schedule.
    """

    service = BUCKET
    helpers = (FIRST_PROCESS, LAST_PROCESS)
    brief_s = 0.01  # such as the wait for others of a batch

    def _prepare(self) -> None:
        """The log exists, and has the messages of before; every process has it open, and has read it."""
        self.late: set[str] = set()
        self._laws = Observer()
        self.store = Bucket(self._now, changed=self._object_changed)
        self._contents = Contents(self.store.value_of, self._now)
        self._start(FIRST_PROCESS)
        self._preface([FIRST_PROCESS])
        self._gone(FIRST_PROCESS, is_lost=True)
        for process in self.setting.names:
            self._start(process)
            self._polled(process)
        self._finish(self.seconds + BEGIN_S)
        self.begins_at = len(self.store.journal)

    def stored(self) -> list[tuple[str, bytes]]:
        """See `Explored`."""
        return [(key, found.value) for key, found, _ in self.store.objects()]

    def _kept(self) -> object:
        return sorted(self.late), [written_s for _, _, written_s in self.store.objects()]

    # ------------------------------------------------------------ what may happen

    def _fates(self) -> Iterator[Event]:
        for name, flight in self._flying.items():
            to_bucket = "arrive" if name in self.late else "carry"
            yield Event(to_bucket if flight.dest == BUCKET else "deliver", name)

    def _faults(self) -> Iterator[Event]:
        held = [name for name in self._flying if name not in self.late]
        writes = [name for name in held if self._is_write(name)]
        if self.left["lose"]:
            yield from (Event("lose", name) for name in held)
            yield from (Event("forget", name) for name in writes)
        if self.left["double"]:
            yield from (
                Event("double", name)
                for name in held
                if self._flying[name].dest != BUCKET and name[-1] != "+"
            )
        if self.left["delay"]:
            yield from (Event("delay", name) for name in writes)
        if self.left["kill"]:
            asking = {self._flying[name].src for name in writes}
            for process in self._memories:
                yield Event("kill", process)
                if process in asking:
                    yield Event("orphan", process)

    def _is_write(self, name: str) -> bool:
        flight = self._flying[name]
        return flight.dest == BUCKET and flight.body["type"] not in READS

    def _carry(self, event: Event) -> None:
        if self._flying[event.what].dest in (BUCKET, *self._memories):
            self.arrive(event.what)
        else:
            del self._flying[event.what]

    _deliver = _carry

    def _lose(self, event: Event) -> None:
        """A process gets no answer to a request, which is lost, carried out, or late; or a message is lost."""
        kind, name = event
        process, dest, body, _ = self._flying[name]
        match kind:
            case "delay":
                self.late.add(name)
            case "forget":
                self._landed(name)
                self._carried_out(process, body)
            case _:
                del self._flying[name]
        if dest == BUCKET:
            self.store.note(process, kind, f"{body['type']} {body['key']}", outcome="no answer")
            error = {"type": "error", "code": ErrorCode.TIMEOUT, "text": kind}
            self.send(BUCKET, process, {**error, "in_reply_to": body["msg_id"]})

    _forget = _delay = _lose

    def _arrive(self, event: Event) -> None:
        self.late.remove(event.what)
        process, _, body = self._landed(event.what)
        self._carried_out(process, body)

    def _kill(self, event: Event) -> None:
        kind, process = event
        self.history.lose(process, ())
        self.store.note(process, kind, "", outcome="dies")
        self._gone(process, is_lost=kind == "kill")

    _orphan = _kill

    # ------------------------------------------------------------ processes and their bucket

    def _read(self, process: str, line: bytes | None) -> None:
        super()._read(process, line)
        ends = not self.setting.talks and process not in self.setting.node_names
        if ends and any(client.node == process and client.done for client in self._living_clients):
            self._gone(process, is_lost=False)

    def _gone(self, process: str, *, is_lost: bool) -> None:
        """A process is no more; the writes that it asked for are still on their way, if they are not lost."""
        asked = [name for name, its in self._flying.items() if its[:2] == (process, BUCKET)]
        for name in (name for name in asked if name not in self.late):
            if is_lost or not self._is_write(name):
                del self._flying[name]
            else:
                self.late.add(name)
        if process in self.setting.node_names:
            self._start(process)
        else:
            self.watch.killed(process)
            del self._memories[process]

    def _served(self, src: str, body: Body) -> Body:
        return self.store.carried_out(src, body)

    def _replied(self, _name: str, process: str, reply: Body) -> None:
        """The answer comes at once."""
        self.send(BUCKET, process, reply)

    def _object_changed(self, key: str, value: bytes | None) -> None:
        if self.refinement:
            added = judge(key, value, self._laws, self.refinement)
            self._contents.changed(key, value, added)

    def _now(self) -> float:
        return self.seconds

    # ------------------------------------------------------------ the end

    def _judge(self) -> None:
        """A new program and every node read the log to its end; then it is judged as in a simulated run."""
        self._start(LAST_PROCESS)
        names = [LAST_PROCESS, *self.setting.node_names]
        found = [self._polled(name) for name in names]
        for name, msgs in zip(names, found, strict=True):
            require(msgs == found[0], "Convergence", f"{name} shows {msgs}, not {found[0]}")
            self.history.read(msgs)
        self.history.read(found[0])  # the checker takes for unseen what only the last one polled
        if self.setting.strategy == LEADERLESS:
            for finding in at_once(self.store, fsck.check, self.seconds).findings:
                raise Failing(finding.invariant, f"{finding.object}: {finding.text}")
        self._require_sound()

    def _asked(self, process: str, body: Body) -> Body:
        answer = super()._asked(process, body)
        told = f"the log cannot be read to its end: {answer.get('text')}"
        require(answer["type"] != "error", "Progress", told)
        return answer
