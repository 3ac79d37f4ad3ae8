"""Nodes in other languages, in lock step: right, wrong, without a kit, and those that never become quiet."""

import json
import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from bench.options import TestOptions
from simulation import lock_step
from simulation.commands import simulate_node
from simulation.commands.simulate_node import doubts, run_seed, simulated, smallest
from tests.programs import need
from tests.scripted import ROOT
from tests.simulation.test_simulate_node import OPERATIONS_MAX, RUN

pytestmark = pytest.mark.process
KITS = ROOT / "workloads/examples"
BASH = '#!/usr/bin/env bash\nsource "${BASH_SOURCE%/*}/maelstrom_node.sh"\n'
# Nodes that answer echoes, and tell themselves what they draw every 0.3 s.
DRAWS = {
    "js": """#!/usr/bin/env node
const { Node } = require("./maelstrom_node");
const node = new Node();
const drawn = () => [Math.random(), Date.now(), new Date(), performance.now(), require("crypto").randomUUID()];
const answer = (request) => node.reply(request, { type: "echo_ok", echo: request.body.echo });
node.on("echo", (request) => setTimeout(async () => answer(await request), Math.random() * 20));
node.on("tick", () => {});
node.every(300, () => node.send(node.id, { type: "tick", drawn: drawn() }));
node.run();
""",
    "go": """package main

import "time"

func main() {
	node := NewNode()
	node.On("echo", func(request Message) {
		node.Reply(request, Body{"type": "echo_ok", "echo": request.Body["echo"]})
	})
	node.On("tick", func(Message) {})
	node.Every(300*time.Millisecond, func() {
		node.Send(node.ID, Body{"type": "tick", "drawn": []any{node.Random.Float64(), node.Now}})
	})
	node.Run()
}
""",
    "sh": BASH
    + """
on_echo() { field echo; reply "\\"type\\":\\"echo_ok\\",\\"echo\\":$value"; }
on_tick() { :; }
tick() { send "$id" "\\"type\\":\\"tick\\",\\"drawn\\":[$RANDOM,$now_ns]"; }
every 300 tick
serve
""",
}
LUCKY = (
    BASH
    + """
on_topology() { reply '"type":"topology_ok"'; }
on_read() { reply "\\"type\\":\\"read_ok\\",\\"messages\\":[${known%,}]"; }
on_broadcast() {
  on_tell
  for each in $ids; do [ "$each" = "$id" ] || send "$each" "\\"type\\":\\"tell\\",\\"message\\":$value"; done
  reply '"type":"broadcast_ok"'
}
on_tell() { field message; known+=$value,; }
serve
"""
)
OWN_LOOP = """#!/usr/bin/env bash
read -r init
echo '{"src":"n0","dest":"c0","body":{"type":"init_ok","in_reply_to":1}}'
while read -r line; do
  body="\\"type\\":\\"generate_ok\\",\\"id\\":\\"$$-$((n++))\\",\\"in_reply_to\\":1"
  [[ $line =~ '"src":"'(c[0-9]+) ]] && dest="\\"dest\\":\\"${BASH_REMATCH[1]}\\""
  echo "{\\"src\\":\\"n0\\",$dest,\\"body\\":{$body}}"
done
"""


def options_of(folder: Path, kind: str, text: str, workload: str = "echo") -> TestOptions:
    """Options of a run of this node, which stands beside its kit."""
    for kit in KITS.glob("maelstrom_node.*"):
        shutil.copy(kit, folder)
    script = folder / f"node.{kind}"
    script.write_text(text)
    script.chmod(0o755)
    if kind == "go":
        sources = [script, folder / "maelstrom_node.go"]
        environment = os.environ | {"GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
        subprocess.run(
            [need("go"), "build", "-o", folder / "node", *sources], env=environment, check=True
        )
        script = folder / "node"
    return replace(RUN, bin=str(script), workload=workload)


@pytest.mark.parametrize("kind", DRAWS)
def test_the_same_seed_gives_the_same_run_of_a_node_on_a_kit(kind: str, tmp_path: Path) -> None:
    need({"js": "node", "go": "go", "sh": "bash"}[kind])
    options = options_of(tmp_path, kind, DRAWS[kind])
    first, again, other = (run_seed(replace(options, seed=seed)) for seed in "223")
    assert first.digest == again.digest != other.digest
    assert first.operations > 10
    assert sorted(said_for_real(options.bin)) == ["echo_ok", "init_ok", "tick"]


def said_for_real(program: str) -> list[str]:
    """What a node says first of all on the real clock, where nobody asks whether it is quiet."""
    bodies = (
        {"type": "init", "node_id": "n0", "node_ids": ["n0"], "msg_id": 1},
        {"type": "echo", "echo": "x", "msg_id": 2},
    )
    lines = (json.dumps({"src": "c1", "dest": "n0", "body": body}) + "\n" for body in bodies)
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as node:
        assert node.stdin
        assert node.stdout
        node.stdin.write("".join(lines).replace(" ", ""))
        node.stdin.flush()
        said = [json.loads(node.stdout.readline()) for _ in range(3)]
        node.stdin.close()
    return [each["body"]["type"] for each in said]


def test_the_smallest_run_of_a_wrong_node_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate_node, "SEEDS_IN_LOCK_STEP", (4, 4))
    options = options_of(tmp_path, "sh", LUCKY, "broadcast")
    wrong = run_seed(replace(options, nemesis=("partition",), seed="1"))
    small = smallest(wrong)
    assert (small.verdict, doubts(small.options)) == (wrong.verdict, [])
    assert small.operations <= OPERATIONS_MAX
    assert run_seed(small.options) == small


def test_two_runs_of_a_node_without_a_kit_are_compared(tmp_path: Path) -> None:
    options = options_of(tmp_path, "sh", OWN_LOOP, "unique-ids")
    options = replace(
        options, nodes=("n0",), concurrency=1, rate=3.0, time_limit_s=1, nemesis=(), seed="0"
    )
    silence, differ = doubts(options)
    assert (
        silence
        == "Node n0 does not say when it is quiet, as a node on a kit does; 50 ms without a word count as that."
    )
    first, one, other = differ.splitlines()
    assert first.startswith(
        "Two runs of seed 0 differ at message 3, so this node cannot be repeated"
    )
    assert one != other
    assert one.count('{"id":3,"src":"n0","dest":"c1","body":{"type":"generate_ok","id":"') == 1
    assert str(simulated(options, 5)).startswith(silence)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cat > /dev/null", "Node n0 did not answer its init message within 10 s."),
        (
            """echo '{"type":"quiet"}'; cat > /dev/null""",
            'Node n0 did not say within 0.2 s that it is quiet, after the line\n  {"id":0,',
        ),
        (
            """quiet='{"type":"quiet","timer_ns":9}'; echo "$quiet"; read -r init; echo "$quiet"; read""",
            "Node n0 waits for a timer_ns of 9. It must be a whole number above now_ns, 100000, or absent.",
        ),
        ("read -r init; echo no such file >&2; exit 3", "exit status 3."),
    ],
)
def test_a_node_that_is_never_quiet_ends_the_run_and_leaves_nothing(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_step, "PATIENCE_S", 0.2)
    left = f'setsid sleep 300 <&- >&- & echo $! > "{tmp_path}/pid"'
    options = options_of(tmp_path, "sh", f"#!/usr/bin/env bash\n{left}\necho why >&2\n{text}\n")
    found = run_seed(replace(options, nodes=("n0",), concurrency=1, nemesis=()))
    assert found.verdict == "crashed"
    assert said in found.why
    assert "Its last lines on stderr:\n  why" in found.why
    with suppress(OSError):  # it has ended; if only just, it has no environment
        environment = Path("/proc", (tmp_path / "pid").read_text().strip(), "environ")
        assert not environment.read_bytes()
