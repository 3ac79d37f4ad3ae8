"""The node as a process: what only real pipes, files and exit statuses show."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from leaderless.wire.bodies import ErrorCode
from tests.fakes import LinKv
from tests.process.test_bench import HANGS_S

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "run.sh"
NODE = [sys.executable, str(ROOT / "node.py")]
INIT = {"type": "init", "msg_id": 1, "node_id": "n0", "node_ids": ["n0"]}
BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def line(body: dict[str, Any], src: str = "c1") -> bytes:
    return orjson.dumps({"id": 7, "src": src, "dest": "n0", "body": body}) + b"\n"


def bodies(out: bytes) -> list[dict[str, Any]]:
    assert not out or out.endswith(b"\n")
    return [orjson.loads(text)["body"] for text in out.splitlines()]


def run(*arguments: str, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*NODE, *arguments],
        input=stdin,
        capture_output=True,
        timeout=HANGS_S,
        check=False,
        **options,
    )


class Node:
    """A started node that is spoken to message by message."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*NODE, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.store = LinKv()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(timeout=HANGS_S)
        self.stdin.close()
        self.stdout.close()

    def say(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def hear(self) -> dict[str, Any]:
        message: dict[str, Any] = orjson.loads(self.stdout.readline())
        return message

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request; store calls on the way to it are served."""
        self.say(line(body))
        while (message := self.hear())["dest"] == "lin-kv":
            self.say(line(self.store.handle(message["body"]), src="lin-kv"))
        body = message["body"]
        assert isinstance(body, dict)
        return body


@pytest.fixture(params=["asyncio", "trio"])
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    node = Node("--strategy", "cas", "--backend", request.param, "--store-timeout-ms", "50")
    yield node
    node.stop()


def test_the_life_of_a_log(node: Node) -> None:
    assert node.ask(INIT) == {"type": "init_ok", "in_reply_to": 1}
    for number, offset in ((2, 0), (3, 1)):
        reply = node.ask({"type": "send", "msg_id": number, "key": "k", "msg": number * 10})
        assert reply == {"type": "send_ok", "offset": offset, "in_reply_to": number}
    reply = node.ask({"type": "poll", "msg_id": 4, "offsets": {"k": 0, "j": 0}})
    assert reply == {"type": "poll_ok", "msgs": {"k": [[0, 20], [1, 30]]}, "in_reply_to": 4}
    reply = node.ask({"type": "commit_offsets", "msg_id": 5, "offsets": {"k": 1}})
    assert reply == {"type": "commit_offsets_ok", "in_reply_to": 5}
    reply = node.ask({"type": "list_committed_offsets", "msg_id": 6, "keys": ["k", "j"]})
    assert reply == {"type": "list_committed_offsets_ok", "offsets": {"k": 1}, "in_reply_to": 6}
    node.stdin.close()
    assert node.process.wait(timeout=HANGS_S) == 0


def test_a_silent_store_is_an_indefinite_error(node: Node) -> None:
    node.ask(INIT)
    node.say(line({"type": "send", "msg_id": 2, "key": "k", "msg": 1}))
    while (message := node.hear())["dest"] == "lin-kv":
        pass
    assert message["body"]["type"] == "error"
    assert message["body"]["code"] == ErrorCode.TIMEOUT
    assert not ErrorCode.TIMEOUT.definite


@BACKENDS
def test_stdin_ended(backend: str) -> None:
    ended = run("--backend", backend, stdin=line(INIT))
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert bodies(ended.stdout) == [{"type": "init_ok", "in_reply_to": 1}]


@BACKENDS
def test_stdin_is_a_file_and_stdout_too(backend: str, tmp_path: Path) -> None:
    asked, said = tmp_path / "asked", tmp_path / "said"
    asked.write_bytes(line(INIT) + line({"type": "nonsense", "msg_id": 2}))
    with asked.open("rb") as stdin, said.open("wb") as stdout:
        ended = subprocess.run(
            [*NODE, "--backend", backend], stdin=stdin, stdout=stdout, timeout=HANGS_S, check=False
        )
    assert ended.returncode == 0
    assert [body["type"] for body in bodies(said.read_bytes())] == ["init_ok", "error"]


@BACKENDS
def test_stdin_is_dev_null(backend: str) -> None:
    ended = subprocess.run(
        [*NODE, "--backend", backend],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANGS_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@BACKENDS
@pytest.mark.parametrize("redirection", ["<&-", ">&-"])
def test_no_stdin_or_no_stdout_at_all(backend: str, redirection: str) -> None:
    command = f'exec "$@" {redirection}'
    ended = subprocess.run(
        ["sh", "-c", command, "sh", *NODE, "--backend", backend],
        input=line(INIT),
        capture_output=True,
        timeout=HANGS_S,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert ended.stderr.count(b"\n") == 1
    assert b"closed" in ended.stderr


@BACKENDS
def test_nobody_reads_stdout(backend: str) -> None:
    node = Node("--backend", backend)
    node.stdout.close()
    node.say(line(INIT))
    assert node.process.wait(timeout=HANGS_S) == 0
    node.stop()


@BACKENDS
def test_a_full_pipe_and_a_line_of_many_chunks(backend: str) -> None:
    """More answers than a pipe holds, while nobody reads; and a line larger than any read."""
    large = "x" * 3_000_000
    asked = [{"type": large, "msg_id": 2}] + [{"type": "poll", "msg_id": 9}] * 5_000
    ended = run("--backend", backend, stdin=line(INIT) + b"".join(map(line, asked)))
    assert ended.returncode == 0
    assert [body["in_reply_to"] for body in bodies(ended.stdout)] == [1, 2] + [9] * 5_000


def test_answers_go_on_when_a_full_pipe_is_read_late(node: Node) -> None:
    node.ask(INIT)
    asked = line({"type": "poll", "msg_id": 9}) * 650
    assert len(asked) < 1 << 16  # else this test would wait for the node and the node for this test
    node.say(asked)
    answers = [node.stdout.readline() for _ in range(650)]
    assert sum(map(len, answers)) > 1 << 16
    assert [body["in_reply_to"] for body in bodies(b"".join(answers))] == [9] * 650


def test_logs_go_to_stderr_by_level() -> None:
    garbage = b"no message\n" + line({"type": "x"})
    quiet = run("--log-level", "error", stdin=garbage)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, b"", b"")
    refused = line(INIT) + line({"type": "txn", "msg_id": 2})
    loud = run(
        "--log-level", "info", stdin=garbage + line({"type": "x", "in_reply_to": 1}) + refused
    )
    said = (b"line dropped", b"without msg_id", b"reply dropped", b"refused")
    assert [text for text in said if text not in loud.stderr] == []


@pytest.mark.parametrize("level", ["debug", "error"])
def test_deep_values_do_not_overflow_the_log(level: str) -> None:
    deep = b"[" * 1_000 + b"]" * 1_000
    asked = line({"type": "x", "in_reply_to": "HERE"}).replace(b'"HERE"', deep)
    ended = run("--log-level", level, stdin=asked + line(INIT))
    assert ended.returncode == 0
    assert [body["type"] for body in bodies(ended.stdout)] == ["init_ok"]


def test_help() -> None:
    ended = run("--help")
    assert ended.returncode == 0
    assert b"--strategy" in ended.stdout
    assert ended.stderr == b""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--nonsense"], b"unrecognized arguments: --nonsense"),
        (["--strategy", "magic"], b"invalid choice: 'magic'"),
        (["--store-timeout-ms", "soon"], b"must be a number, more than 0, not 'soon'"),
        (["--store-timeout-ms", "0"], b"must be a number, more than 0, not '0'"),
        (["stray"], b"unrecognized arguments: stray"),
    ],
)
def test_wrong_options(arguments: list[str], complaint: bytes) -> None:
    ended = run(*arguments)
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert complaint in ended.stderr


@pytest.mark.parametrize("linked", [False, True])
def test_run_sh_from_anywhere(linked: bool, tmp_path: Path) -> None:
    command = RUN
    if linked:
        command = tmp_path / "a link"
        command.symlink_to(RUN)
    ended = subprocess.run(
        [command, "--strategy", "cas"],
        input=line(INIT),
        capture_output=True,
        cwd=tmp_path,
        timeout=HANGS_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert [body["type"] for body in bodies(ended.stdout)] == ["init_ok"]


def test_help_through_run_sh(tmp_path: Path) -> None:
    ended = subprocess.run(
        [RUN, "--help"], capture_output=True, cwd=tmp_path, timeout=HANGS_S, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"--strategy" in ended.stdout


def test_without_trio() -> None:
    code = (
        "import sys; sys.modules['trio'] = None; from leaderless.runtime.main import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "--backend", "trio"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=ROOT,
        timeout=HANGS_S,
        check=False,
    )
    assert ended.returncode == 2
    assert b"pip install trio" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_traced_node_begins_its_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.ndjson"
    assert run("--trace", str(path), stdin=line(INIT)).returncode == 0
    assert orjson.loads(path.read_bytes()) == {"step": "Start", "node": "n0"}


def test_a_trace_needs_its_folder(tmp_path: Path) -> None:
    done = run("--trace", str(tmp_path / "missing" / "trace.ndjson"))
    assert done.returncode == 2
    assert b"make the folder" in done.stderr
