"""Runs Ceph's S3 gateway on this machine, for tests: `python tests/ceph_gateway.py FOLDER`.

It starts a monitor, an object store daemon that keeps its data in memory, and the gateway, all for this machine
alone. It prints `ready http://127.0.0.1:PORT` on stderr. It stops them all, and ends, at SIGINT, at SIGTERM, or
when its stdin ends: so they do not outlive the tests that started them, however those end.

FOLDER must be empty; it takes keys and logs. The access key is `test`, the secret `secret-of-the-test`.
"""

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

NEEDS = Path(__file__).parents[1] / ".ci/needs"
ACCESS_KEY, SECRET_KEY = "test", "secret-of-the-test"
START_S = 120.0  # how long a daemon may take until it serves
STOP_S = 10.0  # how long it may take to end before it is killed
LOOK_S = 0.2

CONFIGURATION = """\
[global]
fsid = {fsid}
mon_host = [v2:127.0.0.1:{mon_port},v1:127.0.0.1:{old_mon_port}]
public_network = 127.0.0.0/8
ms_bind_ipv6 = false
keyring = {folder}/keyring
run_dir = {folder}
admin_socket = {folder}/$name.asok
log_file = {folder}/$name.log
crash_dir = {folder}
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 2000
mon_data_avail_crit = 1
mon_data_avail_warn = 2
[mon]
mon_data = {folder}/mon
[osd]
osd_data = {folder}/osd
osd_objectstore = memstore
memstore_device_bytes = 4294967296
[client.rgw]
rgw_data = {folder}/rgw
# Without tcp_nodelay an answer of a kilobyte takes 44 ms.
rgw_frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
rgw_thread_pool_size = 32
rgw_enable_usage_log = false
rgw_enable_ops_log = false
rgw_dynamic_resharding = false
debug_rgw = 0/0
"""


class Cluster:
    """One monitor, one object store daemon, one gateway, with all files in `folder`."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder.absolute()
        self._port = port
        self._fsid = str(uuid.uuid4())
        self._mon_port, self._old_mon_port = free_port(), free_port()
        self._environment = {**os.environ, "CEPH_CONF": f"{self._folder}/ceph.conf"}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the daemons until the block ends."""
        self._prepare()
        with ExitStack() as daemons:
            monitor = daemons.enter_context(self._daemon("ceph-mon", "-i", "a"))
            wait_until(monitor, lambda: self._says("mon", "stat") is not None)
            self._call("ceph", "osd", "new", self._fsid, "0")
            self._call("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", self._fsid)
            store = daemons.enter_context(self._daemon("ceph-osd", "-i", "0"))
            wait_until(store, lambda: "1 up" in (self._says("osd", "stat") or ""))
            gateway = daemons.enter_context(self._daemon("radosgw", "-n", "client.rgw"))
            wait_until(gateway, lambda: answers(self.url))
            keys = ["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY]
            names = ["--uid", "test", "--display-name", "test"]
            self._call("radosgw-admin", "user", "create", *names, *keys)
            yield

    def _prepare(self) -> None:
        """Write the configuration and the keys, and make the monitor's data."""
        folder = self._folder
        for name in ("mon", "osd", "rgw"):
            (folder / name).mkdir(parents=True)
        (folder / "ceph.conf").write_text(
            CONFIGURATION.format(
                folder=folder, fsid=self._fsid, port=self._port,
                mon_port=self._mon_port, old_mon_port=self._old_mon_port,
            )
        )  # fmt: skip
        keyring, monmap = str(folder / "keyring"), str(folder / "monmap")
        self._call("ceph-authtool", "--create-keyring", keyring)
        everything = [
            "--cap",
            "mon",
            "allow *",
            "--cap",
            "osd",
            "allow *",
            "--cap",
            "mgr",
            "allow *",
        ]
        for name in ("mon.", "client.admin", "client.rgw", "osd.0"):
            self._call("ceph-authtool", keyring, "--gen-key", "-n", name, *everything)
        addresses = f"[v2:127.0.0.1:{self._mon_port},v1:127.0.0.1:{self._old_mon_port}]"
        self._call("monmaptool", "--create", "--addv", "a", addresses, "--fsid", self._fsid, monmap)
        self._call("ceph-mon", "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", keyring)

    def _call(self, *command: str) -> str:
        """What a command says. Raises `SystemExit` with that, when it fails."""
        done = subprocess.run(
            command, env=self._environment, text=True, timeout=START_S, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{' '.join(command[:3])} failed: {done.stdout}")
        return done.stdout

    def _says(self, *words: str) -> str | None:
        """What `ceph WORDS` says; None while the monitor does not answer."""
        command = ["ceph", "--connect-timeout", "5", *words]
        done = subprocess.run(
            command, env=self._environment, text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return None if done.returncode else done.stdout

    @contextmanager
    def _daemon(self, program: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a daemon until the block ends; a session of its own, so that Ctrl-C reaches only this program."""
        output = (self._folder / f"{program}.out").open("wb")
        process = subprocess.Popen(
            [program, "-f", *arguments], env=self._environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            yield process
        finally:
            output.close()
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until(daemon: "subprocess.Popen[bytes]", ready: Callable[[], bool]) -> None:
    """Return when `ready` says so. Raises `SystemExit` when the daemon ends, or is not ready in `START_S`."""
    until = time.monotonic() + START_S
    while not ready():
        if daemon.poll() is not None or time.monotonic() > until:
            sys.exit(f"{daemon.args!r} did not come up; its output is in the folder")
        time.sleep(LOOK_S)


def answers(url: str) -> bool:
    """Whether a server answers at `url`, whatever it says."""
    try:
        urlopen(url, timeout=5).close()
    except HTTPError:
        pass
    except (URLError, OSError):
        return False
    return True


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_the_end() -> None:
    """Return when stdin ends."""
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        while selector.select():
            if not os.read(sys.stdin.fileno(), 4096):
                return


def main() -> None:
    """Run until it is told to stop."""
    if missing := subprocess.call([NEEDS, "ceph"]):
        sys.exit(missing)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))  # through the blocks that stop the daemons
    cluster = Cluster(Path(sys.argv[1]), free_port())
    with cluster.running():
        sys.stderr.write(f"ready {cluster.url}\n")
        sys.stderr.flush()
        wait_for_the_end()


if __name__ == "__main__":
    main()
