"""Errors that are shown to people as they are: above all why Spark failed, and what to do.

What fails most is checked before Spark starts, because Spark is silent for a minute or writes hundreds of
lines: Java, and whether a standalone master listens.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from runs.files import RunsError


class AnalysisError(RunsError):
    """An error that the user can correct; the message says what is wrong and what to do."""


class Interrupted(AnalysisError):
    """Raised when the user pressed Ctrl-C; the message says what was done until then."""


# ---------------------------------------------------------------- failures

JAVA = 17  # the oldest that Spark 4 runs on
PROBE_S = 3.0  # for each address of a master
WORKERS_PYTHON = "PYSPARK_PYTHON"
# Spark's own variable for Spark Connect: `sc://host:15002`, or `local[2]` for a server beside this process.
REMOTE = "SPARK_REMOTE"
CONNECT, CONNECT_PORT = "sc", "15002"  # its scheme, and its port by default
# By scheme: what starts a server, and what names it.
_SERVERS = {"spark": ("start-master.sh", "--master"), CONNECT: ("start-connect-server.sh", REMOTE)}
_INSTALL = "On Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
_SHOWN_CHARACTERS = 300
SLOW_START = "Python worker failed to connect back"


def require_java() -> None:
    """Raises `AnalysisError` if there is no Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    if home and not _java(home).exists():
        raise AnalysisError(
            f"JAVA_HOME is {home}, where there is no bin/java: correct it, or unset it."
        )
    if not home and not shutil.which("java"):
        raise AnalysisError(
            f"Spark needs Java {JAVA} or newer, and no `java` was found.\n{_INSTALL}"
        )


def _java(home: str | None) -> Path:
    return Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")


def require_master(master: str) -> None:
    """Raises `AnalysisError` unless an address of a standalone master, or of Spark Connect, takes a connection.

    Other masters (`local`, `yarn`, `k8s://`) are Spark's to find.
    """
    scheme, _, there = master.partition("://")
    if scheme not in _SERVERS:
        return
    script, setting = _SERVERS[scheme]
    addresses = there.partition("/")[0]  # behind it Spark Connect has a token
    problems = [_problem(address, scheme) for address in addresses.split(",")]
    if all(problems):
        raise AnalysisError(
            f"No Spark answers at {scheme}://{addresses} ({'; '.join(filter(None, problems))}).\n"
            f"Start it with sbin/{script}, correct {setting}, or leave it out to run on this machine."
        )


def _problem(address: str, scheme: str) -> str:
    host, _, port = address.rpartition(":")
    if scheme == CONNECT and not host:
        host, port = address, CONNECT_PORT
    if not (host and port.isdigit()):
        return f"{address} is no HOST:PORT"
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_S).close()
    except OSError as error:
        return f"{address}: {error.strerror or error}"
    return ""


def why_no_start(master: str, log: str) -> str:
    """Why Spark did not start; `log` is what Java wrote meanwhile, or else the error."""
    if not master.startswith(f"{CONNECT}:") and (told := _java_problem()):
        return told
    last_lines = "\n".join(log.splitlines()[-5:])
    return f"Spark did not start on master {master!r}; the last lines it wrote:\n{last_lines}"


def _java_problem() -> str:
    """What is wrong with Java itself; empty if it runs and is new enough."""
    java = _java(os.environ.get("JAVA_HOME"))
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Java does not start: {error}\n{_INSTALL}"
    said = (done.stderr or done.stdout).strip()
    if done.returncode:
        return f"Java does not run: `{java} -version` ended with {done.returncode}: {_short(said)}\n{_INSTALL}"
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version and int(version[1]) < JAVA:
        return (
            f"Spark needs Java {JAVA} or newer, and {java} is Java {version[1]}: install a newer one,"
            " or name it with JAVA_HOME."
        )
    return ""


def why(error: Exception) -> str:
    """Why a job of Spark failed: what is known of its kind, or else the innermost cause that Java names."""
    text = str(error)
    for pattern, sentence in _KNOWN:
        if found := re.search(pattern, text):
            python = os.environ.get(WORKERS_PYTHON, sys.executable)
            return sentence.format(
                *filter(None, found.groups()), python=python, variable=WORKERS_PYTHON
            )
    causes = re.findall(
        r"^(?:Caused by: )?(?:[\w$]+\.)+([\w$]*(?:Exception|Error)): (.+)$", text, re.MULTILINE
    )
    cause = ": ".join(causes[-1]) if causes else next(iter(text.strip().splitlines()), "")
    return f"Spark failed: {_short(cause or type(error).__name__)}"


def is_slow_start(error: Exception) -> bool:
    """Whether a Python process of Spark needed too long to start, which a second try may mend.

    Each plan of a Python data source is made by a process of its own. Spark waits 10 s for it, and has no
    option for that [PythonWorkerFactory.createSimpleWorker of Spark 4.3].
    """
    return SLOW_START in str(error)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]} …"


# What Java or Python said, and what to tell of it: {0}, {1} are its groups, {python} that of the executors.
_KNOWN = (
    (
        r"No module named '([\w.]+)'|(PyArrow|Pandas) >= \S+ must be installed",
        "The Python of the executors, {python}, lacks the package {0}. Install pyarrow, scipy, orjson and"
        " rustworkx there, or name another Python with {variable} (docs/analysis/scale.md).",
    ),
    (
        r"different version:? ?\(?'?\"?(\d+\.\d+)[^\d]+than that in driver:? ?\(?'?\"?(\d+\.\d+)",
        "The executors' Python, {python}, is version {0}, and this one {1}. Name one of the same version with"
        " {variable} (docs/analysis/scale.md).",
    ),
    (
        r'Cannot run program "([^"]+)"',
        "The executors cannot start {0}. Name a Python that all of them have with {variable}"
        " (docs/analysis/scale.md).",
    ),
    (
        SLOW_START,
        "A Python process of Spark took longer than 10 s to start, which Spark does not wait for: the machine"
        " is too busy. Try again when it is less so.",
    ),
    (
        r"OutOfMemoryError|Java heap space",
        "Spark ran out of memory: raise spark.driver.memory (on a cluster spark.executor.memory) in the"
        " spark-defaults.conf of SPARK_CONF_DIR.",
    ),
    (
        r"No space left on device",
        "A disk is full: free some of it, or set SPARK_LOCAL_DIRS to a larger one.",
    ),
    (
        r"Answer from Java side is empty|Connection re(?:fused|set)|while trying to connect to the Java",
        "Spark's Java process is gone: it was killed, or the machine ran out of memory.",
    ),
)
