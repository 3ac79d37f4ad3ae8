"""Where a program listens, and which others it can reach: those of one machine, or those at ports of a network.

On a machine the address in a program's name is a digest of what two processes must share to reach each other:
the boot of the machine, the network namespace, the user. Where one differs nobody is asked. On other systems
than Linux there is no address, and every program commits for itself. Both ends compare the user of the other
(`SO_PEERCRED`).

At a port the address is `HOST:PORT`, an IP address. Who may take part is told by the lines alone
(`leaderless.peers.sockets`), and whoever is on the network can read them, unless TLS is given.
"""

import os
import socket
import struct
import sys
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from ssl import SSLContext
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import anyio

from leaderless.errors import Unfit
from leaderless.peers.lines import Stranger, writer_of

Tls: TypeAlias = tuple[SSLContext, SSLContext]  # of who listens, and of who asks
BACKLOG = 256


class ThisMachine:
    """Abstract Unix sockets, which no other user gets through."""

    sealed = False  # whether each line carries a MAC

    def __init__(self) -> None:
        self.address: str = here()

    def __contains__(self, name: object) -> bool:
        """Whether a program of this name can be asked, as far as its name says."""
        return bool(self.address) and str(name).endswith(f"@{self.address}")

    def listening(self, name: str) -> socket.socket:
        """A socket at which the program of this name listens. Raises `OSError`."""
        made, at = self.way_to(name)
        made.bind(at)
        made.listen(BACKLOG)
        return made

    def way_to(self, name: str) -> tuple[socket.socket, Any]:
        """A new socket, and the address to which it connects."""
        return socket.socket(socket.AF_UNIX), f"\0leaderless/{writer_of(name)}"

    def prepared(self, link: socket.socket, asks: bool) -> socket.socket:  # noqa: ARG002
        """A socket that is connected, as lines go through it; `asks`: this end asks.

        Raises `Stranger` for another user.
        """
        told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        user = struct.unpack("3i", told)[1]
        if user != os.geteuid():
            raise Stranger(f"it is of user {user}")
        return link


class Port:
    """TCP, at one port of this machine. `tls`: without it whoever is on the network reads what is said."""

    sealed = True

    def __init__(self, listening: socket.socket, tls: Tls | None = None) -> None:
        self._listening = listening
        self._tls = tls
        host, port = listening.getsockname()[:2]
        self.address: str = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @classmethod
    async def at(cls, where: str, tls: Tls | None = None) -> "Port":
        """Listen at `HOST` or `HOST:PORT`. Raises `Unfit` when that is not possible."""
        try:
            host, port = _parted(where)
            ways = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            family, *_, at = ways[0]
            if ip_address(at[0]).is_unspecified:
                raise ValueError("others reach no such address")
            return cls(socket.create_server(at, family=family, backlog=BACKLOG), tls)
        except (OSError, ValueError) as error:
            raise Unfit(
                f"peers: this process cannot listen at {where!r}: {error}. It must be HOST, or HOST:PORT with"
                " a port from 1 to 65535; HOST an address of this machine, of IPv6 in brackets"
            ) from error

    def __contains__(self, name: object) -> bool:
        """See `ThisMachine`."""
        try:
            host, port = _parted(str(name).partition("@")[2])
            return port > 0 and bool(ip_address(host))  # a name would have to be looked up
        except ValueError:
            return False

    def listening(self, _: str) -> socket.socket:
        """See `ThisMachine`."""
        return self._listening

    def way_to(self, name: str) -> tuple[socket.socket, Any]:
        """See `ThisMachine`."""
        at = _parted(name.partition("@")[2])
        return socket.socket(socket.AF_INET6 if ":" in at[0] else socket.AF_INET), at

    def prepared(self, link: socket.socket, asks: bool) -> socket.socket:
        """See `ThisMachine`."""
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return link
        host = link.getpeername()[0] if asks else None
        return self._tls[asks].wrap_socket(
            link, not asks, do_handshake_on_connect=False, server_hostname=host
        )


Reach: TypeAlias = ThisMachine | Port


def here() -> str:
    """What is the same in all processes that can reach each other; "" where none can."""
    if sys.platform != "linux":
        return ""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        network = Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        return ""
    return blake2b(f"{boot}/{network}/{os.geteuid()}".encode(), digest_size=6).hexdigest()


def _parted(text: str) -> tuple[str, int]:
    """Host and port, 0 where none is said. Raises `ValueError`."""
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.netloc != text or parts.username is not None or parts.port == 0:
        raise ValueError("it is no address")
    return parts.hostname, parts.port or 0
