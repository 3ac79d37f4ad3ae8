"""The program as a process, which is asked by lines; and what plays a story with it."""

import json
import os
import shlex
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from shutil import which
from subprocess import PIPE
from typing import Any, NamedTuple

import anyio
from anyio.abc import Process, SocketAttribute, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from leaderless import open_log
from leaderless.api.output import note, show, show_text
from leaderless.conformance.bucket import FATES, Bucket, Gate, Sweep
from leaderless.conformance.database import Database
from leaderless.conformance.example import NOT_SUPPORTED, answer_to
from leaderless.conformance.golden import Case, cases
from leaderless.conformance.judge import (
    Answer,
    Changes,
    Contents,
    Failed,
    Told,
    one_text,
    require_that,
)
from leaderless.conformance.rows import OF_A_STORE, ROWS, RowOfMatrix, Step, Story, rules_of
from leaderless.core.shape import Shape
from leaderless.errors import LogError, Unfit
from leaderless.store.format import format_of
from leaderless.store.names import FORMAT, is_file
from leaderless.store.port import Store
from leaderless.store.sqlite import FILES, SqliteStore
from leaderless.upkeep.fsck import check

LINE_BYTES = 1 << 28
SHOWN = 400  # characters of a line in a story
PATIENCE_S = 5.0  # of one call of the program
KILLED: dict[str, Any] = {"error": "killed", "may_have_happened": True}
KEYS = {"access_key": "kit", "secret_key": "kit", "region": "us-east-1"}
AGED_S = 7200.0
TROUBLE = (Failed, LogError)  # the second: this library meets what the program did to the log
FOREIGN = ("notes/1", "data/1", "segment/01")  # names that no log writes


class NotTried(Exception):
    """The program lacks an operation, or the store a kind of trouble; the text says which."""


class Asking:
    """The program, started when it is asked. `killed`: it ended by `kill`, and is started again."""

    def __init__(self, command: str, patience_s: float) -> None:
        self._command = shlex.split(command)
        self._patience_s = patience_s
        self._process: Process | None = None
        self._asked = 0
        self._killed = False
        self.place: Mapping[str, Any] = {}
        self.is_open: bool = False

    async def ask(self, lines: Sequence[Answer]) -> list[Answer]:
        """The answers to lines, which are asked at once. Raises `Failed`, `NotTried`."""
        if self._killed:
            await self.aclose()
            self._killed = False
        if not self.is_open:
            self.is_open = True
            [opened] = await self.ask([{"op": "open", **self.place}])
            if "error" in opened:
                self.is_open = False
                return [opened] * len(lines)
        first = self._asked
        self._asked += len(lines)
        numbered = [{"id": number} | line for number, line in enumerate(lines, first)]
        try:
            with anyio.fail_after(self._patience_s):
                process = self._process = self._process or await self._started()
                assert process.stdin
                for line in numbered:
                    await process.stdin.send(json.dumps(line).encode() + b"\n")
                found = [await self._line() for _ in lines]
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.IncompleteRead):
            if self._killed:
                return [KILLED] * len(lines)
            raise Failed(self._blamed("ended by itself")) from None
        except TimeoutError:
            raise Failed(self._blamed(f"gave no answer in {self._patience_s:g} s")) from None
        said = {answer.pop("id", None): answer for answer in found}
        if missing := {*range(first, self._asked)} - {*said}:
            raise Failed(self._blamed(f"gave no answer with the id {min(missing)}"))
        answers = [said[line["id"]] for line in numbered]
        if any(answer.get("error") == NOT_SUPPORTED for answer in answers):
            raise NotTried(f"the program does not support {lines[0]['op']}")
        return answers

    async def _started(self) -> Process:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - `aclose` closes it
        try:
            process = await anyio.open_process(
                self._command, stdin=PIPE, stdout=PIPE, stderr=self._said, start_new_session=True
            )
        except OSError as error:
            raise Failed(f"the program cannot be started: {error}") from None
        assert process.stdout is not None
        self._lines = BufferedByteReceiveStream(process.stdout)
        return process

    async def _line(self) -> dict[str, Any]:
        line = await self._lines.receive_until(b"\n", LINE_BYTES)
        try:
            return {**json.loads(line)}
        except (ValueError, TypeError):
            raise Failed(
                self._blamed(f"answered what is no object of JSON: {line[:SHOWN]!r}")
            ) from None

    def _blamed(self, what: str) -> str:
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip()[-4 * SHOWN :]
        return f"the program {what}; its stderr: {said or 'nothing'}"

    def kill(self) -> None:
        """End it and what it has started, at once."""
        self.is_open = False
        self._killed = True
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def aclose(self) -> None:
        """End it, and wait until it has ended."""
        self.kill()
        process, self._process = self._process, None
        if process:
            with anyio.CancelScope(shield=True):
                await process.aclose()
            self._said.close()


class Hosted(NamedTuple):
    """A log that the kit hosts: where the program and this library find it."""

    place: Mapping[str, Any]
    url: str
    store: Store
    changes: Changes
    database: Database | None = None


class Player:
    """Plays stories with a program. `kind`: of the store, "sqlite" or "s3"; `tasks`: for what runs beside."""

    def __init__(
        self, command: str, kind: str, patience_s: float, tasks: TaskGroup, port: int
    ) -> None:
        self._hosts = {"sqlite": self._in_file, "s3": self._in_bucket}[kind]
        self._fates = OF_A_STORE if kind == "sqlite" else tuple(FATES)
        self.program: Asking = Asking(command, patience_s)
        self._told: list[str] = []
        self._tasks = tasks
        self._place = {"endpoint": f"http://127.0.0.1:{port}", **KEYS}
        self.gate: Gate = Gate()

    @asynccontextmanager
    async def _in_bucket(self, objects: Mapping[str, bytes]) -> AsyncIterator[Hosted]:
        bucket = Bucket.named(token_hex(8))
        assert isinstance(bucket, Bucket)
        for key, value in objects.items():
            bucket.place_object(key, value)
        self.gate.bucket = bucket
        yield Hosted(
            self._place | {"store": f"s3://kit/{bucket.place}"}, bucket.url, bucket, bucket.changes
        )

    @asynccontextmanager
    async def _in_file(self, objects: Mapping[str, bytes]) -> AsyncIterator[Hosted]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.db"
            async with aclosing(SqliteStore(path)) as store:
                for key, value in objects.items():
                    file = path.with_name(f"{path.name}{FILES}") / key
                    if is_file(key):
                        file.parent.mkdir(parents=True, exist_ok=True)
                        file.write_bytes(value)
                    else:
                        await store.write(key, value)
                with closing(Database(path)) as database:
                    yield Hosted({"store": store.url}, store.url, store, database.changes, database)

    async def row(self, row: RowOfMatrix, golden: Sequence[Case]) -> tuple[str, str]:
        """How a row ends: ok, FAILED, or not tried, and why. `golden`: the cases of its rules."""
        reasons, tried = [row.why] if row.why else [], 0
        counts = not (row.why or row.stories)  # what a golden log shows of a row is not all of it
        plays: list[tuple[Callable[[], Awaitable[int]], bool]]
        plays = [(partial(self._swept, story), True) for story in row.stories]
        plays += [(partial(self._golden, case), counts) for case in golden]
        try:
            for play, weight in plays:
                try:
                    tried += await play() * weight
                except NotTried as lacks:
                    reasons.append(str(lacks))
        except TROUBLE as failed:
            self.program.kill()
            return "FAILED", "\n".join([*self._told, str(failed)])
        why = "; ".join(dict.fromkeys(reasons))
        return ("ok" if tried else "not tried"), why

    async def _golden(self, case: Case) -> int:
        """Read a golden log."""
        self._told = [f"the golden log {case.name}"]
        async with self._hosts(case.store) as hosted:
            self._begin(hosted)
            await self._require_read({key: [*map(list, case.reads[key])] for key in case.reads})
        return 1

    async def _swept(self, story: Story) -> int:
        """Play a story without a fate, and with each of its fates at each request; how often."""
        played = 1
        if not story.meanwhile:
            await self._play(story, None)
        for name in story.fates:
            sweep = Sweep(name, -1, self.program.kill)
            while name in self._fates and (sweep.fired or sweep.at < 0):
                sweep = Sweep(name, sweep.at + 1, self.program.kill)
                await self._play(story, sweep)
                played += 1
        if story.meanwhile and played == 1:
            raise NotTried("it needs --store s3")
        return played

    async def _play(self, story: Story, sweep: Sweep | None) -> None:
        self._told = []
        shape = Shape(**story.shape)
        answers = Told()
        objects = {FORMAT: format_of(shape, "the conformance kit"), **dict.fromkeys(FOREIGN, b"{}")}
        async with self._hosts(objects) as hosted:
            self._begin(hosted)
            try:
                for number, step in enumerate(story.steps):
                    if sweep and number == story.swept % len(story.steps):
                        await self._sweep(hosted, answers, story, sweep)
                    else:
                        await self._step(hosted, answers, step)
                if story.lawful:
                    await self._require_kept(hosted, answers)
            except TROUBLE:  # what the program did to the log tells more, if it did
                _require_unbroken(hosted, story)
                raise
            _require_unbroken(hosted, story)

    def _begin(self, hosted: Hosted) -> None:
        self.program.is_open = False
        self.program.place = {**hosted.place, "patience_s": PATIENCE_S}

    async def _sweep(self, hosted: Hosted, answers: Told, story: Story, sweep: Sweep) -> None:
        """Carry out the step that meets a fate."""

        async def meanwhile() -> None:
            try:
                for step in story.meanwhile:
                    await self._step(hosted, answers, step)
            except TROUBLE as error:  # it is raised below: this runs in a server
                trouble.append(error)

        trouble: list[Exception] = []
        step = story.steps[story.swept]
        if step.by == "theirs":
            await self.program.ask([])  # it is open before
        sweep.meanwhile = meanwhile
        if hosted.database:
            self._tasks.start_soon(hosted.database.watch, sweep)
        await self.gate.meet(sweep)
        await self._step(hosted, answers, step._replace(must="may"))
        sweep.is_over = True
        await self.gate.meet(None)
        if trouble:
            raise trouble[0]
        if sweep.fired:
            self._told.append(f"    {sweep.name}: {sweep.fired}, request {sweep.at + 1} of it")
            if FATES[sweep.name].kills:
                self.program.kill()
                await rob(hosted.store)

    async def _step(self, hosted: Hosted, answers: Told, step: Step) -> None:
        lines = [{"op": step.op, **step.given} for _ in range(step.times)]
        if step.times > 1:
            for number, line in enumerate(lines):
                line["values"] = [f"{value}.{number}" for value in line["values"]]
        found: list[Answer] = [{}]
        known = answers.known(step.given.get("key", ""))
        if step.by == "kit":
            await self._change(hosted, step)
        elif step.by != "ours":
            try:
                found = await self.program.ask(lines)
            except NotTried:
                if step.by == "theirs":
                    raise
                step = step._replace(by="ours")
        if step.by == "ours":
            async with open_log(hosted.url, create=False, peers=None) as log:
                found = [await answer_to(log, line) for line in lines]
        for line, answer in zip(lines, found, strict=True):
            self._told.append(f"{step.by}: {_brief(line)} -> {_brief(answer)}")
            if step.op == "append":
                answers.appended(line, answer)
            if step.op == "read":
                answers.was_read(line["key"], known, answer)
            is_as_it_must = {
                "done": "error" not in answer,
                "refused": answer.get("may_have_happened") is False,
                "error": "error" in answer,
                "may": True,
            }[step.must]
            require_that(is_as_it_must, f"{step.op} must be {step.must}")

    async def _change(self, hosted: Hosted, step: Step) -> None:
        """What the kit itself does."""
        match step.op:
            case "die":
                self.program.kill()
            case "rob":
                await rob(hosted.store)
            case "put":
                await change(hosted.store, step.given)
            case "age" if isinstance(hosted.store, Bucket):
                hosted.store.ahead_s += AGED_S
            case _:
                raise NotTried("it needs --store s3")

    async def _require_kept(self, hosted: Hosted, answers: Told) -> None:
        """All records are where they were told to be, for both."""
        contents: dict[str, list[Any]] = {}
        async with open_log(hosted.url, create=False, peers=None) as log:
            for key in await log.keys():
                found = await answer_to(log, {"op": "read", "key": key})
                require_that(
                    "records" in found, f"this library reads {key!r}: {found.get('error')}"
                )
                contents[key] = found["records"]
        answers.require_kept(contents)
        findings = (await check(hosted.store)).findings
        require_that(not findings, f"`leaderless fsck` finds {[*map(str, findings)]}")
        with suppress(NotTried):
            await self._require_read(contents)

    async def _require_read(self, contents: Contents) -> None:
        """The program reads just that."""
        for key, records in contents.items():
            [answer] = await self.program.ask([{"op": "read", "key": key}])
            self._told.append(f"theirs: read {key!r} -> {_brief(answer)}")
            is_same = one_text(answer.get("records")) == one_text([[*each] for each in records])
            require_that(is_same, f"key {key!r} holds {_brief([*records])}")


async def rob(store: Store) -> None:
    """Another compactor comes, after the lease of the one that is there, and goes."""
    claim = await _json(store, "claim/compaction") or {"epoch": 0, "task": 0, "dead": False}
    index = await _json(store, "compacted") or {"format": 5, "cursor": 0, "listed": []}
    claim |= {"epoch": claim["epoch"] + 1, "owner": "kit", "beat": 0, "failures": 0}
    await store.write("claim/compaction", json.dumps(claim).encode())
    await store.write("compacted", json.dumps(index | {"epoch": claim["epoch"]}).encode())
    claim |= {"owner": None, "task": claim["task"] + 1}
    await store.write("claim/compaction", json.dumps(claim).encode())


async def _json(store: Store, key: str) -> Any:
    found = await store.read(key)
    return found and json.loads(found.value)


async def change(store: Store, given: Mapping[str, Any]) -> None:
    """Change fields of objects; None: delete the object."""
    for key, fields in given.items():
        if fields is None:
            await store.delete([key])
            continue
        value = {**(await _json(store, key) or {}), **fields}
        value |= {"version": value["version"] + 1} if key == "head" else {}
        await store.write(key, json.dumps(value).encode())


def _require_unbroken(hosted: Hosted, story: Story) -> None:
    if hosted.database:
        hosted.database.judge()
    require_that(not (story.lawful and hosted.changes.broken), hosted.changes.broken)


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


@asynccontextmanager
async def playing(command: str, kind: str, patience_s: float) -> AsyncIterator[Player]:
    """What plays stories with the program that a command starts. Raises `Unfit`: there is no such program."""
    words = shlex.split(command)
    if not words or not which(words[0]):
        raise Unfit(f"--program: there is no program {command!r}")
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        player = Player(command, kind, patience_s, tasks, port)
        tasks.start_soon(listener.serve, player.gate.serve)
        try:
            yield player
        finally:
            await player.program.aclose()
            tasks.cancel_scope.cancel()


async def played(
    program: str, store: str, only: str | None, patience_s: float, as_json: bool
) -> dict[str, Any]:
    """How many rows hold, failed, and were not tried; with `error` if one failed.

    `program`: its command. `store`: "sqlite" or "s3". `only`: rows of this rule. `patience_s`: for one answer
    of the program, in seconds. `as_json`: a row is shown as an object. Raises `Unfit`.
    """
    kind = store.partition(":")[0]
    rows = [row for row in ROWS if only is None or only in rules_of(row)]
    if kind not in ("sqlite", "s3") or not rows:
        raise Unfit("--store must be sqlite or s3, and --only a rule from R1 to R58")
    golden = cases()
    found: dict[str, list[str]] = {"ok": [], "FAILED": [], "not tried": []}
    async with playing(program, kind, patience_s) as player:
        for row in rows:
            note(f"{row.rules} ...")
            states = [case for case in golden if case.rules[0] in rules_of(row)]
            result, why = await player.row(row, states)
            found[result].append(row.rules)
            if as_json:
                show({"rules": row.rules, "holds": row.holds, "result": result, "why": why}, True)
            else:
                for line in [f"{result:10} {row.rules:22} {row.holds}", *why.splitlines()]:
                    show_text(line)
    counts: dict[str, Any] = {name: len(rules) for name, rules in found.items()}
    return counts | ({"error": f"FAILED: {'; '.join(found['FAILED'])}"} if found["FAILED"] else {})
