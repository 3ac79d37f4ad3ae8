"""What the small files of a run say: `Settings` from test.json, `Results` from results.json or results.edn.

What is missing or of another kind than it should be is None: a run may have been killed at any moment,
and files may come from another tool or from an older bench.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import orjson

from runs import edn
from runs.files import OPTIONS, RESULTS_JSON, end_of, files_of, own
from runs.house import MAELSTROM
from runs.store import time_named

K = TypeVar("K")
V = TypeVar("V")

OWN_NODES = ("run.sh", "node.py")
DEFAULT_STRATEGY = "leaderless"  # of our node, when nothing names one
OF_OUR_NODE = ("strategy", "freshness")  # axes of a sweep that are options of our node
EMBEDDED, JEPSEN = "embedded", "jepsen"  # engines
# Operations that never succeed by design: one disturbs, the other only looks.
NEVER_OK = frozenset(("crash", "debug-topic-partitions"))
TRUE, FALSE, UNKNOWN, CRASHED = "true", "false", "unknown", "crashed"
_LARGEST = {".json": 32 * 2**20, ".edn": 4 * 2**20}
_TAIL_BYTES = 4096
_STOPPED = "The run was stopped by"  # how the bench reports Ctrl-C
FINISHED = "finished"  # in test.json: whether the run came to its end


@dataclass(frozen=True)
class Settings:
    """How a run was asked for.

    `history_origin_ns` is the start of the run on the journal's clock.
    """

    engine: str
    workload: str | None = None
    started: str | None = None
    strategy: str | None = None
    program: str | None = None  # what ran; the same for two runs only if they were started alike
    faults: tuple[str, ...] | None = None  # the kinds that were asked for
    nodes: tuple[str, ...] | None = None
    concurrency: int | None = None
    rate_hz: float | None = None
    time_limit_s: float | None = None
    recovery_time_s: float | None = None
    latency_ms: float | None = None
    history_origin_ns: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Settings":
        """From the content of test.json; empty for a run of the real tool, which writes none."""
        return cls(
            engine=text(options.get("engine")) or (EMBEDDED if options else JEPSEN),
            workload=text(options.get("workload")),
            started=text(options.get("started")),
            strategy=strategy(options),
            program=program(options),
            faults=words(options.get("nemesis")),
            nodes=words(options.get("nodes")),
            concurrency=integer(options.get("concurrency")),
            rate_hz=number(options.get("rate")),
            time_limit_s=number(options.get("time_limit_s")),
            recovery_time_s=number(options.get("recovery_time_s")),
            latency_ms=number(options.get("latency_ms")),
            history_origin_ns=integer(options.get("history_origin_ns")),
        )

    def placed(self, folder: Path, cell: Mapping[str, Any] | None = None) -> "Settings":
        """With what the run's folder, or its cell in a sweep, says of it where no file does.

        Both tools keep runs as STORE/WORKLOAD/TIME. A folder whose name is no time stands for itself.
        """
        store, workload, named = folder.name, None, self.program
        if time_named(folder.name):
            workload = folder.parent.name
            above = folder.absolute().parents[1:]
            store = next(each.name for each in above if each.name != "store")
        if self.engine == JEPSEN and not named:
            named = store if cell is None else _program_of_cell(cell)
        limit_s = self.time_limit_s or number(mapping(cell).get("time-limit"))
        workload = self.workload or workload
        return replace(self, workload=workload, program=named, time_limit_s=limit_s)


def strategy(options: Mapping[str, Any]) -> str | None:
    """The strategy of our node in a run: None for other nodes, and where nothing says it.

    The node's arguments name it, or (in a simulation) the scenario; else our node has its default.
    """
    return _started(options)[0]


def program(options: Mapping[str, Any]) -> str | None:
    """What ran: `--name`; else the strategy of our node, or another program's file, and the other arguments.

    None where nothing says it.
    """
    own, others = _started(options)
    ran = own or _file_name(options.get("bin"))
    return text(options.get("name")) or (shlex.join([ran, *others]) if ran else None)


def _started(options: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    """The strategy of our node, and its other arguments or all those of another program."""
    arguments, file = list(words(options.get("args")) or ()), _file_name(options.get("bin"))
    simulated = text(mapping(options.get("scenario")).get("strategy"))
    if file not in (*OWN_NODES, None) and not simulated:
        return None, arguments
    named, others = simulated or (DEFAULT_STRATEGY if file else None), []
    while arguments:
        word, _, value = arguments.pop(0).partition("=")
        if word == "--strategy":
            named = value or (arguments.pop(0) if arguments else None)
        else:
            others.append(f"{word}={value}" if value else word)
    return named, others


def _program_of_cell(cell: Mapping[str, Any]) -> str | None:
    """A cell of a sweep has the options of its run, as far as they say what ran."""
    own = [word for name in OF_OUR_NODE if name in cell for word in (f"--{name}", str(cell[name]))]
    args = [*own, *shlex.split(str(cell.get("args", "")))]
    bin_ = cell.get("bin", OWN_NODES[0])
    return program({"name": cell.get("program"), "bin": bin_, "args": args})


def _file_name(path: object) -> str | None:
    return text(path.rstrip("/").rpartition("/")[2]) if isinstance(path, str) else None


def command_line(arguments: Sequence[str], seed: str) -> str:
    """The command that makes one test again, with the same operations, delays and faults.

    Args:
        arguments: those of `./maelstrom` that made it, or several.
        seed: its own.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    own = list(arguments[:end])
    named = f"--seed={seed}" in own or ("--seed", seed) in pairwise(own)
    own += [] if named else ["--seed", seed]
    own += ["--test-count", "1"] * any(word.startswith("--test-count") for word in own)
    return shlex.join([MAELSTROM, *own, *arguments[end:]])


MAKE_ONE_RUN = ("simulate", "test")  # the commands that `repeated` knows


def repeated(options: Mapping[str, Any]) -> str | None:
    """The command that makes the run of this test.json again; None of a run that no such command made."""
    arguments, seed = words(options.get("argv")), text(options.get("seed"))
    return (
        command_line(arguments, seed)
        if arguments and arguments[0] in MAKE_ONE_RUN and seed
        else None
    )


def read_options(data: bytes) -> dict[str, Any]:
    """The content of test.json; empty if it holds no JSON object. Raises `ValueError` for what is no JSON."""
    content = orjson.loads(data)
    return content if isinstance(content, dict) else {}


@dataclass(frozen=True)
class Told:
    """What the small files of a run say. `problem`: why the results cannot be read."""

    settings: Settings
    results: "Results"
    options: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None

    @classmethod
    def of(cls, folder: Path, cell: Mapping[str, Any] | None = None) -> "Told":
        """From a run's folder and its cell in a sweep; a file that cannot be read says nothing."""
        files = files_of(folder)
        options = options_of(folder) or {}
        settings = Settings.of(options).placed(folder, cell)
        if not files.results:
            return cls(settings, Results(), options)
        file = folder / files.results.name
        try:
            return cls(settings, Results.read(file.name, _content(file)), options)
        except (OSError, ValueError) as error:
            # The verdict is the last thing in results that are too large, or cut off before.
            problem = f"{file.name} cannot be read ({error})"
            return cls(settings, Results(_verdict_at_end(file)), options, problem)

    @property
    def finished(self) -> bool:
        """Whether it came to its end."""
        return bool(self.results.content) and "error" not in self.results.content


def _content(file: Path) -> bytes:
    if file.stat().st_size > _LARGEST[file.suffix]:
        raise ValueError("it is too large to be read for a page")
    return file.read_bytes()


def _verdict_at_end(file: Path) -> Mapping[str, Any]:
    try:
        tail = end_of(file, _TAIL_BYTES)
    except OSError:
        return {}
    last = re.search(r'valid\?"?:? +:?"?(true|false|unknown)"?\s*\}\s*$', tail)
    return {"valid?": {"true": True, "false": False}.get(last[1], last[1])} if last else {}


@dataclass(frozen=True)
class Anomaly:
    """A type of anomaly that the checker found.

    `count` is None where the results do not say it. `instances` are those that were written, each with its
    key; there may be fewer than were counted.
    """

    type: str
    invalidating: bool
    count: int | None
    instances: list[tuple[str | None, Any]]


@dataclass(frozen=True)
class Results:
    """What the checkers said; `content` is all of it."""

    content: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, data: bytes) -> "Results":
        """From a file's name, which tells its form, and its content. Raises `ValueError`."""
        try:
            content = orjson.loads(data) if name.endswith(".json") else edn.loads(data.decode())
        except RecursionError:
            raise ValueError("nested too deeply") from None
        return cls(content if isinstance(content, dict) else {})

    @classmethod
    def of_run(cls, folder: Path) -> "Results":
        """Those in a run's folder. Raises `OSError` without any, `ValueError` if they cannot be read."""
        results = files_of(folder).results
        file = own(folder, results.name if results else RESULTS_JSON)
        return cls.read(file.name, file.read_bytes())

    @property
    def valid(self) -> str:
        """`:valid?` as a word: true, false, or unknown for anything else."""
        valid = self.content.get("valid?")
        return {True: TRUE, False: FALSE}[valid] if isinstance(valid, bool) else UNKNOWN

    @property
    def crashed(self) -> bool:
        """Whether the run could not be finished, and not because somebody stopped it."""
        error = text(self.content.get("error"))
        return error is not None and _STOPPED not in error

    @property
    def error(self) -> str | None:
        """Why the run could not be finished, or why it could not be judged."""
        return text(self.content.get("error")) or text(self.workload.get("error"))

    @property
    def workload(self) -> Mapping[str, Any]:
        return mapping(self.content.get("workload"))

    @property
    def net(self) -> Mapping[str, Any]:
        return mapping(self.content.get("net"))

    @property
    def error_types(self) -> tuple[str, ...] | None:
        return words(self.workload.get("error-types"))

    @property
    def bad_error_types(self) -> tuple[str, ...] | None:
        """The types of anomaly that make the run invalid."""
        return words(self.workload.get("bad-error-types"))

    @property
    def invalidating(self) -> list[str]:
        """The types that make the run invalid; of a workload that tells none as bad, all that were found."""
        return [*(self.bad_error_types or words(self.workload.get("anomaly-types")) or ())]

    def anomalies(self) -> Iterator[Anomaly]:
        """The anomalies in the order of the results.

        An error is `{:count n, :errs (instance ...)}`, of which the checker may have kept fewer instances
        than it counted; `unseen` is one map, with its messages by key.
        """
        for name in self.error_types or ():
            count, instances = _instances(self.workload.get(name))
            yield Anomaly(name, name in (self.bad_error_types or ()), count, instances)


def unfinished(folder: Path) -> str | None:
    """Why the run in this folder did not come to its end; None where its files do not say that.

    A run of ours leaves its options when it begins. It notes there that it has finished, before it is judged.
    """
    try:
        return text(Results.of_run(folder).content.get("error"))
    except FileNotFoundError:
        options = options_of(folder)
        return (
            "It has no results: it goes on, was killed, or had no room for them."
            if options is not None and options.get(FINISHED) is not True
            else None
        )
    except (OSError, ValueError) as error:
        return f"Its results cannot be read ({error})."


def options_of(folder: Path) -> dict[str, Any] | None:
    """The content of test.json; None without that file, empty if it cannot be read."""
    try:
        return read_options(_content(own(folder, OPTIONS)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}


def spaced(number: float, form: str = "") -> str:
    """A number for people, with a space after thousands; `form` is that of a format specification."""
    return f"{number:,{form}}".replace(",", " ")


def never_succeeded(stats: Mapping[Any, Any]) -> list[str]:
    """The operations in the result of `stats` that should have succeeded and never did."""
    by_f = mapping(stats.get("by-f"))
    return [f for f in by_f if f not in NEVER_OK and not mapping(by_f[f]).get("ok-count")]


def _instances(error: object) -> tuple[int | None, list[tuple[str | None, Any]]]:
    """How many were counted, and those that the error names, each with its key."""
    if isinstance(error, dict) and isinstance(error.get("unseen"), dict):
        by_key = error["unseen"]
        count = sum(each for each in by_key.values() if isinstance(each, int))
        # Of each key the part about it: of each map by key in the error, that entry.
        return count, [
            (
                str(key),
                {
                    name: {key: value[key]} if isinstance(value, dict) and key in value else value
                    for name, value in error.items()
                },
            )
            for key in by_key
        ]
    if isinstance(error, dict) and isinstance(error.get("errs"), list | tuple):
        keys = (mapping(each).get("key") for each in error["errs"])
        named = (None if key is None else str(key) for key in keys)
        return integer(error.get("count")), list(zip(named, error["errs"], strict=True))
    return integer(mapping(error).get("count")), [(None, error)]


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a map, or an empty one."""
    return value if isinstance(value, dict) else {}


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, keys and values in the order in which they came."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def words(value: object) -> tuple[str, ...] | None:
    """The members of a list as text, or of a text with commas; None for anything else."""
    if isinstance(value, str):
        value = value.split(",") if value else ()
    return tuple(map(str, value)) if isinstance(value, list | tuple) else None


def text(value: object) -> str | None:
    """The value if it is a text that says something."""
    return value if isinstance(value, str) and value else None


def number(value: object) -> float | None:
    """The value if it is a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def integer(value: object) -> int | None:
    """The value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
