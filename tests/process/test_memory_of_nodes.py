"""A node that eats memory is killed, with a sentence, before it harms the machine."""

import sys
from pathlib import Path

import pytest

from bench.loop import RealLoop
from bench.node_memory import limit_of
from bench.processes import ProcessHosts

pytestmark = pytest.mark.process

LIMIT_NS = 60_000_000_000
# Eats 300 MiB, so that a limit that does not work harms nobody; with an argument a child eats them.
EATER = """#!{python}
import subprocess, sys
if len(sys.argv) > 1:
    subprocess.Popen([sys.executable, __file__], stdin=sys.stdin).wait()
print("hungry", file=sys.stderr, flush=True)
eaten = [bytearray(b"x" * 2**20) for _ in range(300)]
sys.stdin.read()
"""


@pytest.mark.parametrize("arguments", [(), ("by a child",)], ids=["node", "child"])
def test_a_node_that_eats_memory_is_killed_with_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    program = tmp_path / "eater.py"
    program.write_text(EATER.format(python=sys.executable))
    program.chmod(0o755)
    loop = RealLoop()
    failures: list[str] = []
    hosts = ProcessHosts(
        loop,
        ["n0"],
        command=[str(program), *arguments],
        log_dir=tmp_path,
        on_line=lambda _name, _line: None,
        on_failure=lambda failure: failures.append(str(failure)),
        memory=limit_of(100),
    )
    try:
        for host in hosts.prepare():
            host.start()
        loop.run_until(lambda: bool(failures) or loop.now_ns() > LIMIT_NS)
    finally:
        hosts.stop()
        loop.close()
    (report,) = failures
    assert "Node n0 used" in report
    assert "A node may use 100 MiB (--node-memory-max)." in report
    assert "hungry" in report
