"""Histories: what clients asked for and what they were told, in order.

A history is a list of `Op`. An operation is first invoked and then completed by the same process: `ok` (it
happened), `fail` (it certainly did not) or `info` (nobody knows; that process is then replaced). The shape is
Jepsen's [jepsen.history]; `time` is nanoseconds since the start of the run.

A file holds one operation a line, as EDN (the real tool's `history.edn`) or as JSON with the same keys
(`history.jsonl`), compressed by gzip or not; which of these it is shows in its content, not in its name.
"""

import gzip
import json
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

import orjson

from runs import edn
from runs.collection import collection_paused
from runs.files import HISTORIES, HISTORY, HISTORY_EDN, files_of

# Names in a history, and keys in results, are keywords.
Keyword = edn.Keyword
keywords = edn.keywords
OpType = Literal["invoke", "ok", "fail", "info"]
NEMESIS = "nemesis"
NS, MS = 1_000_000_000, 1_000_000  # of a second, of a millisecond
Process = int | str  # a client's process number, or NEMESIS
TIMEOUT = "net-timeout"  # the error of an operation that had no answer in time


@dataclass(slots=True)
class Op:
    """One line of a history.

    `value` is JSON-like (lists, dicts, strings, numbers; micro-op names are `Keyword`); `extra` holds optional
    fields such as `error`, `unseen`, `poll-ms`, in the order in which they are written.
    """

    index: int
    time: int
    type: OpType
    process: Process
    f: str
    value: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


class HistoryError(ValueError):
    """A file that is no history. The message names file and line, and says what to do."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        place = f"{path}, line {line}" if line else str(path)
        super().__init__(f"{place}: {problem}")
        self.path, self.line = path, line


_FIELDS = ("index", "time", "type", "process", "f", "value")
_TYPES = get_args(OpType)
_JSON_HEAD = re.compile(r'\s*\{\s*"')
_ERROR_WIDTH = 200
_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
_MICRO_OPS = ("send", "poll", "r", "w", "append")
_UNPACKED_BYTES = 2**29  # of a packed history at most: some five million operations
_NAME = re.compile(r"[a-z][a-z0-9-]*")
# The five fields every line of a real history begins with; what follows is read as any other EDN.
_EDN_HEAD = re.compile(
    r"\{:index (\d{1,18}), :time (\d{1,18}), :type :(invoke|ok|fail|info), "
    r":process (\d{1,18}|:nemesis), :f :([a-z-]+), (?=:value )"
)


def edn_line(op: Op) -> str:
    """`op` as one line of the real tool's history.edn, without the line break."""
    return edn.dumps(op_map(op))


def json_line(op: Op) -> bytes:
    """`op` as one line of history.jsonl, without the line break."""
    return orjson.dumps(op_map(op), option=orjson.OPT_NON_STR_KEYS, default=plain)


def op_map(op: Op) -> dict[Keyword, Any]:
    """`op` as the real tool has it: names of operations and types are keywords, and so are all keys."""
    process = op.process if isinstance(op.process, int) else Keyword(op.process)
    entries = (op.index, op.time, Keyword(op.type), process, Keyword(op.f), op.value)
    extra = {Keyword(name): value for name, value in op.extra.items()}
    return {**dict(zip(map(Keyword, _FIELDS), entries, strict=True)), **extra}


def printable(value: Any) -> Any:
    """`value` with each operation in it turned into the map that stands for it in a file."""
    if isinstance(value, Op):
        return edn.TaggedMap("jepsen.history.Op", op_map(value))
    if isinstance(value, edn.TaggedMap):
        return edn.TaggedMap(value.tag, {key: printable(each) for key, each in value.items()})
    if isinstance(value, dict):
        return {key: printable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(printable(each) for each in value)
    return value


def read_history(path: Path) -> list[Op]:
    """Read every operation of the file at `path`.

    Raises `HistoryError` when it cannot be read or holds anything but operations.
    """
    return _ops(path, _text(path))


def read_cut_history(path: Path) -> tuple[list[Op], bool]:
    """As `read_history`, but without a last line that is torn; whether there was such a line.

    A bench that is killed may leave one.
    """
    text = _text(path)
    whole, _, last = text.rpartition("\n")
    try:
        _ops(path, last)
    except HistoryError:
        return _ops(path, whole), True
    return _ops(path, text), False


@collection_paused()
def _ops(path: Path, text: str) -> list[Op]:
    return [op for at, line in enumerate(text.split("\n"), 1) for op in line_ops(path, at, line)]


def line_ops(path: Path, number: int, line: str) -> Iterator[Op]:
    """The operations (one, as a rule) on one line of the file at `path`, for whoever reads it in parts.

    Raises `HistoryError` as `read_history` does.
    """
    is_json = _JSON_HEAD.match(line)
    return _json_line_ops(path, number, line) if is_json else _edn_line_ops(path, number, line)


def find_history(path: Path) -> Path:
    """The history in the folder of a run; a file stands for itself (`HistoryError` without one)."""
    if not path.is_dir():
        return path
    if found := files_of(path).history:
        return path / found.name
    raise HistoryError(path, None, f"a folder without a history ({' or '.join(HISTORIES)})")


def completions(history: Sequence[Op]) -> dict[int, int]:
    """For each invocation that was completed: its position in `history` to that of its completion.

    A process has one operation at a time [jepsen.history]: what follows an invocation in the order of its
    process completes it, if it is no invocation.
    """
    open_at: dict[Process, int] = {}
    pairs: dict[int, int] = {}
    for position, op in enumerate(history):
        if op.type == "invoke":
            open_at[op.process] = position
        elif op.process in open_at:
            pairs[open_at.pop(op.process)] = position
    return pairs


def error_text(op: Op) -> str:
    """The error of an operation in words: `not-supported: this node does not know ...`."""
    error = op.extra.get("error")
    parts = error if isinstance(error, list | tuple) else [error]
    text = ": ".join(each if isinstance(each, str) else edn.dumps(each) for each in parts if each)
    return text[:_ERROR_WIDTH] or f"{op.type}, without an error"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
        return (_unpacked(path) if is_packed else path.read_bytes()).decode()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise HistoryError(path, None, f"broken gzip data ({error}); compress it again") from None
    except UnicodeDecodeError:
        problem = f"neither text nor gzip; give a {HISTORY_EDN} or {HISTORY}"
        raise HistoryError(path, None, problem) from None
    except OSError as error:
        raise HistoryError(path, None, f"cannot be read: {error.strerror}") from None


def _unpacked(path: Path) -> bytes:
    """What a gzip file holds. A few megabytes can hold gigabytes of nothing, for which no memory is spent."""
    with gzip.open(path) as file:
        data = file.read(_UNPACKED_BYTES + 1)
    if len(data) > _UNPACKED_BYTES:
        problem = (
            f"it unpacks to more than {_UNPACKED_BYTES // 2**20} MiB. If it is a history and there is memory"
            f" for ten times as much, unpack it first: gunzip {shlex.quote(str(path))}"
        )
        raise HistoryError(path, None, problem)
    return data


def _json_line_ops(path: Path, number: int, line: str) -> Iterator[Op]:
    if line and not line.isspace():
        try:
            fields = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            problem = f"no JSON ({error}); remove the line if the file was cut off there"
            raise HistoryError(path, number, problem) from None
        op = _op(path, number, fields)
        op.value = with_keywords(op.value)
        if "error" in op.extra:
            op.extra["error"] = _error(op.extra["error"])
        yield op


def _edn_line_ops(path: Path, number: int, line: str) -> Iterator[Op]:
    try:
        head = _EDN_HEAD.match(line)
        if head:
            yield _op_after_head(head, line)
        else:
            yield from (_op(path, number, fields) for fields in edn.loads_all(line))
    except edn.EdnError as error:
        problem = f"no EDN ({error.problem}); remove the line if the file was cut off there"
        raise HistoryError(path, number, problem) from None


def _op_after_head(head: re.Match[str], line: str) -> Op:
    index, time, kind, process, f = head.groups()
    rest = edn.loads("{" + line[head.end() :])
    value = rest.pop("value")
    client = int(process) if process[0] != ":" else Keyword(process[1:])
    return Op(int(index), int(time), cast(OpType, kind), client, Keyword(f), value, rest)


def _op(path: Path, number: int, fields: Any) -> Op:
    """An operation from a map; what a hand-written history leaves out gets a default."""
    if not isinstance(fields, Mapping) or fields.get("type") not in _TYPES or "f" not in fields:
        problem = "no operation: it needs :type (invoke, ok, fail or info), :process, :f and :value"
        raise HistoryError(path, number, problem)
    process = fields.get("process", NEMESIS)
    if not isinstance(process, int) or isinstance(process, bool):
        process = Keyword(process)
    index, time = (_whole(fields.get(name), number - 1) for name in ("index", "time"))
    if any(isinstance(each, int) and abs(each) >= 2**63 for each in (index, time, process)):
        raise HistoryError(path, number, "index, time and process must be integers of 64 bits")
    extra = {name: value for name, value in fields.items() if name not in _FIELDS}
    kind = cast(OpType, str(fields["type"]))
    return Op(index, time, kind, process, Keyword(fields["f"]), fields.get("value"), extra)


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default


def with_keywords(value: Any) -> Any:
    """Micro-operations of kafka and of transactions begin with keywords in EDN, which JSON has not."""
    if isinstance(value, list) and all(isinstance(mop, list) and mop for mop in value):
        for mop in value:
            if mop[0] in _MICRO_OPS:
                mop[0] = Keyword(mop[0])
    return value


def _error(value: Any) -> Any:
    """The name of an error is a keyword in EDN: a word that stands alone, or first in a list."""
    if isinstance(value, list):
        return [_error(each) for each in value[:1]] + value[1:]
    return Keyword(value) if isinstance(value, str) and _NAME.fullmatch(value) else value


def json_text(value: Any) -> str:
    """`value` as JSON with sorted keys; what JSON has no notation for is a text with its EDN."""
    with suppress(TypeError):
        return orjson.dumps(value, default=plain, option=_SORTED).decode()
    with suppress(TypeError):  # integers beyond 64 bits
        return json.dumps(value, default=plain, sort_keys=True, separators=(",", ":"))
    return json.dumps(edn.dumps(value))


def plain(value: Any) -> Any:
    """What JSON has no notation for: a set is written as a sorted list, the rest as its text."""
    return sorted(value, key=str) if isinstance(value, set | frozenset) else str(value)
