"""The program as a process, which is asked by lines; and what plays a story with it."""

import json
import os
import shlex
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from shutil import which
from typing import IO, Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from leaderless import open_log
from leaderless.api.output import note, show_text
from leaderless.conformance.bucket import Bucket, in_bucket
from leaderless.conformance.database import Database, in_file
from leaderless.conformance.example import NOT_SUPPORTED, Program
from leaderless.conformance.golden import Case, cases
from leaderless.conformance.judge import (
    Answer,
    Failed,
    Told,
    brief,
    one_text,
    require_kept,
    require_that,
)
from leaderless.conformance.rows import (
    FATES,
    MUST,
    OF_A_STORE,
    ROWS,
    RowOfMatrix,
    Step,
    Story,
    Sweep,
    ours,
    read,
    rules_of,
)
from leaderless.core.shape import LOG_FORMAT, Shape
from leaderless.errors import LogError, Unfit
from leaderless.store.format import format_of
from leaderless.store.names import FORMAT
from leaderless.store.port import Store
from leaderless.upkeep.fsck import check

LINE_BYTES = 1 << 28
PATIENCE_S = 5.0  # of one call of the program
KILLED: Answer = {"error": "killed", "may_have_happened": True}
FOREIGN = dict.fromkeys(("notes/1", "data/1", "segment/01"), b"{}")  # names that no log writes
ABSENT: dict[str, Any] = {  # what an object that is missing stands for
    "claim/compaction": {"epoch": 0, "task": 0, "dead": False},
    "compacted": {"format": LOG_FORMAT, "cursor": 0, "listed": []},
}
Hosting = Callable[[Mapping[str, bytes], Callable[[], None]], Any]  # a `Bucket`, or a `Database`
# Of each kind of store what hosts a log there, and what its requests can meet.
HOSTS: dict[str, tuple[Hosting, Iterable[str]]] = {
    "sqlite": (in_file, OF_A_STORE),
    "s3": (in_bucket, FATES),
}
TROUBLE = (Failed, LogError)  # the second: this library meets what the program did to the log
WRONG: dict[type[Exception], str] = {
    TimeoutError: "gave no answer in {1:g} s",
    OSError: "cannot be started: {0}",
    anyio.EndOfStream: "ended by itself",
    anyio.BrokenResourceError: "ended by itself",
    anyio.IncompleteRead: "ended by itself",
    anyio.DelimiterNotFound: "answered a line without an end",
    json.JSONDecodeError: "answered what is no object of JSON: {0.doc!r:.400}",
    ValueError: "answered what is no object of JSON: {0}",
    TypeError: "answered what is no object of JSON: {0}",
    KeyError: "gave no answer with the id {0}",
}


class NotTried(Exception):
    """The program lacks an operation, or the store a kind of trouble; the text says which."""


class Asking:
    """The program, started when it is asked, where a log is at `place`. `said`: what it writes to stderr."""

    def __init__(self, command: str, patience_s: float, said: IO[bytes]) -> None:
        self._command, self._patience_s = shlex.split(command), patience_s
        self._numbers, self._said = count(), said
        self._process: Any = None
        self.is_open: bool = False
        self._killed = False
        self.place: Mapping[str, Any] = {}

    async def ask(self, *lines: Answer) -> list[Answer]:
        """The answers to lines, which are asked at once. Raises `Failed`, `NotTried`."""
        if self._killed:
            await self.end()
        if not self.is_open:
            self.is_open = True
            [opened] = await self.ask({"op": "open", **self.place, "patience_s": PATIENCE_S})
            if "error" in opened:
                self.is_open = False
                return [opened] * len(lines)
        numbered = dict(zip(self._numbers, lines, strict=False))
        try:
            with anyio.fail_after(self._patience_s):
                if not self._process:
                    self._process = await anyio.open_process(
                        self._command, stderr=self._said, start_new_session=True
                    )
                    self._lines = BufferedByteReceiveStream(self._process.stdout)
                for number, line in numbered.items():
                    await self._process.stdin.send(
                        json.dumps({"id": number} | line).encode() + b"\n"
                    )
                texts = [await self._lines.receive_until(b"\n", LINE_BYTES) for _ in lines]
            said = {each.pop("id", None): each for each in ({**json.loads(text)} for text in texts)}
            answers = [said[number] for number in numbered]
        except (*WRONG,) as error:
            if self._killed:
                return [KILLED] * len(lines)
            what = next(text for kind, text in WRONG.items() if isinstance(error, kind))
            self._said.seek(0)
            stderr = self._said.read().decode(errors="replace").strip()[-1600:]
            text = f"the program {what.format(error, self._patience_s)}; its stderr: {stderr or 'nothing'}"
            raise Failed(text) from None
        if any(answer.get("error") == NOT_SUPPORTED for answer in answers):
            raise NotTried(f"the program does not support {lines[0]['op']}")
        return answers

    def kill(self) -> None:
        """End it and what it has started, at once."""
        self.is_open, self._killed = False, True
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """End it, and wait until it has ended."""
        self.kill()
        if self._process:
            with anyio.CancelScope(shield=True):
                await self._process.aclose()
        self._process, self._killed = None, False


class Player:
    """Plays stories with a program, on logs of `hosting`. `fates`: that its requests can meet there."""

    def __init__(self, program: Asking, hosting: Hosting, fates: Iterable[str]) -> None:
        self._program, self._hosting, self._fates = program, hosting, fates
        self._host: Bucket | Database

    async def row(self, row: RowOfMatrix, golden: Iterable[Case]) -> tuple[str, str]:
        """How a row ends: ok, FAILED, or not tried, and why. Of golden logs, those of its rules are read."""
        logs = [
            Story([read(*each) for each in case.reads.items()], objects=case.store, lawful=False)
            for case in golden
            if case.rules[0] in rules_of(row)
        ]
        reasons, tried = [row.why], False
        try:
            for story in [*row.stories, *logs]:
                try:
                    await self._swept(story)
                    # What a golden log shows of a row that has stories is not all of it.
                    tried |= not row.why and (story in row.stories or not row.stories)
                except NotTried as lacks:
                    reasons.append(str(lacks))
        except TROUBLE as failed:
            self._program.kill()
            return "FAILED", "\n".join([*self._shown, str(failed)])
        return "ok" if tried else "not tried", "; ".join(filter(None, dict.fromkeys(reasons)))

    async def _swept(self, story: Story) -> None:
        """Play a story without a fate, and with each of its fates at each request."""
        fates = [name for name in story.fates if name in self._fates]
        if not story.meanwhile:
            await self._play(story, Sweep())
        elif not fates:
            raise NotTried("it needs --store s3")
        for name in fates:
            numbers = count()
            while await self._play(story, Sweep(name, next(numbers))):
                pass

    async def _play(self, story: Story, sweep: Sweep) -> str:
        """The request that met the fate; "": none did."""
        self._shown: list[str] = []
        self._told: list[Told] = []
        made = {FORMAT: format_of(Shape(**story.shape), "the conformance kit"), **FOREIGN}
        async with self._hosting(story.objects or made, self._program.kill) as self._host:
            self._program.is_open, self._program.place = False, self._host.place
            try:
                for number, step in enumerate(story.steps):
                    if sweep.at >= 0 and number == story.swept % len(story.steps):
                        await self._fated(step, story.meanwhile, sweep)
                    else:
                        await self._step(step)
                if story.lawful:
                    await self._require_kept()
            finally:  # what the program did to the log tells more than what came of it
                self._host.judge()
                broken = self._host.changes.broken
                require_that(not (story.lawful and broken), broken)
        return sweep.fired

    async def _fated(self, step: Step, steps: Iterable[Step], sweep: Sweep) -> None:
        """Carry out the step that meets a fate; `steps`: what happens meanwhile."""
        trouble: list[Exception] = []

        async def meanwhile() -> None:
            try:
                for each in steps:
                    await self._step(each)
            except TROUBLE as error:  # it is raised below: this runs in a server
                trouble.append(error)

        sweep.meanwhile = meanwhile
        await self._program.ask()  # it is open before
        await self._host.meet(sweep)
        try:
            await self._step(step._replace(must="may"))
        finally:
            await self._host.meet(Sweep())
        for error in trouble:
            raise error
        self._shown.append(
            f"    {sweep.name}: {sweep.fired or 'nothing'}, request {sweep.at + 1} of it"
        )
        if sweep.fired and "killed" in sweep.name:
            await rob(self._host.store)

    async def _step(self, step: Step) -> list[Answer]:
        """Carry out a step; what was said."""
        lines: list[Answer] = [{"op": step.op, **line} for line in step.lines]
        found: list[Answer] = [{}]
        before, store = len(self._told), self._host.store
        if step.by == "kit":
            {"die": self._program.kill, "age": self._host.age}.get(step.op, bool)()
            if step.op == "rob":
                await rob(store)
            for key, fields in step.lines[0].items():
                await change(store, key, fields, ["version"] if key == "head" else [])
        elif step.by == "ours":
            async with open_log(store.url, create=False, peers=None) as log:
                found = [await Program(log).answer(line) for line in lines]
        else:
            try:
                found = await self._program.ask(*lines)
            except NotTried:
                if step.by == "theirs":
                    raise
                return await self._step(step._replace(by="ours"))
        for line, answer in zip(lines, found, strict=True):
            self._shown.append(
                f"{step.by}: {brief(json.dumps(line))} -> {brief(json.dumps(answer))}"
            )
            self._told.append(Told(line, answer, before))
            is_so = (
                MUST[step.must](answer)
                if isinstance(step.must, str)
                else one_text(answer.get("records")) == one_text(step.must)
            )
            require_that(is_so, f"{step.op} must be {brief(str(step.must))}")
        return found

    async def _require_kept(self) -> None:
        """All records are where they were told to be, for both."""
        async with open_log(self._host.store.url, create=False, peers=None) as log:
            keys = await log.keys()
        contents = {key: (await self._step(*ours(read(key))))[0]["records"] for key in keys}
        require_kept(self._told, contents)
        findings = (await check(self._host.store)).findings
        require_that(not findings, f"`leaderless fsck` finds {[*map(str, findings)]}")
        with suppress(NotTried):
            for key, records in contents.items():
                await self._step(read(key, records))


async def rob(store: Store) -> None:
    """Another compactor comes, after the lease of the one that is there, and goes."""
    taken = {"owner": "kit", "beat": 0, "failures": 0}
    claim = await change(store, "claim/compaction", taken, ["epoch"])
    await change(store, "compacted", {"epoch": claim["epoch"]})
    await change(store, "claim/compaction", {"owner": None}, ["task"])


async def change(store: Store, key: str, fields: Any, rises: Iterable[str] = ()) -> Any:
    """Change fields of an object, of which some rise by one; None: delete it. Returns what it holds."""
    found = await store.read(key)
    new = (json.loads(found.value) if found else ABSENT.get(key, {})) | (fields or {})
    new |= {name: new[name] + 1 for name in rises}
    await (store.delete([key]) if fields is None else store.write(key, json.dumps(new).encode()))
    return new


@asynccontextmanager
async def playing(command: str, kind: str, patience_s: float) -> AsyncIterator[Player]:
    """What plays stories with the program that a command starts. Raises `Unfit`: there is no such program."""
    if not which([*shlex.split(command), ""][0]):
        raise Unfit(f"--program: there is no program {command!r}")
    with tempfile.TemporaryFile() as said:
        program = Asking(command, patience_s, said)
        try:
            yield Player(program, *HOSTS[kind])
        finally:
            await program.end()


async def played(
    program: str, store: str, only: str | None, patience_s: float, as_json: bool
) -> dict[str, Any]:
    """How many rows hold, failed, and were not tried; with `error` if one failed.

    `program`: its command. `store`: "sqlite" or "s3". `only`: rows of this rule. `patience_s`: for one answer
    of the program, in seconds. `as_json`: a row is shown as an object. Raises `Unfit`.
    """
    kind = store.partition(":")[0]
    rows = [row for row in ROWS if only is None or only in rules_of(row)]
    if kind not in HOSTS or not rows:
        raise Unfit("--store must be sqlite or s3, and --only a rule from R1 to R58")
    golden = [*cases()]
    found: dict[str, list[str]] = {"ok": [], "FAILED": [], "not tried": []}
    async with playing(program, kind, patience_s) as player:
        for row in rows:
            note(f"{row.rules} ...")
            result, why = await player.row(row, golden)
            found[result].append(row.rules)
            said = {"rules": row.rules, "holds": row.holds, "result": result, "why": why}
            lines = [f"{result:10} {row.rules:22} {row.holds}", *why.splitlines()]
            for line in [json.dumps(said)] if as_json else lines:
                show_text(line)
    wrong = {"error": f"FAILED: {'; '.join(found['FAILED'])}"} if found["FAILED"] else {}
    return {name: len(rules) for name, rules in found.items()} | wrong
