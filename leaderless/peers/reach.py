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
import weakref
from contextlib import suppress
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from ssl import SSLContext
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import anyio

from leaderless.errors import Unfit
from leaderless.peers.lines import Stranger

Tls: TypeAlias = tuple[SSLContext, SSLContext]  # of who listens, and of who asks
BACKLOG = 256
_OPEN: weakref.WeakSet[socket.socket] = weakref.WeakSet()


class Endpoint:
    """Where a program listens; it reaches those of the machine `address`, by abstract Unix sockets of one user.

    With `listening`: those of a network, by TCP; `address` is where that listens. `tls`: without it whoever is
    on the network reads what is said. `sealed`: each line carries a MAC.
    """

    def __init__(
        self, address: str, listening: socket.socket | None = None, tls: Tls | None = None
    ) -> None:
        self.address: str = address
        self.sealed: bool = listening is not None
        self._listening, self._tls = listening, tls

    @classmethod
    async def at(cls, where: str, tls: Tls | None = None) -> "Endpoint":
        """Of this "machine"; or listen at `HOST` or `HOST:PORT`. Raises `Unfit` when that is not possible."""
        if where == "machine":
            return cls(here())
        try:
            [(family, *_, at), *_] = await anyio.getaddrinfo(
                *_parted(where), type=socket.SOCK_STREAM
            )
            if ip_address(at[0]).is_unspecified:
                raise ValueError("others reach no such address")
            listening = socket.create_server(at, family=family, backlog=BACKLOG)
        except (OSError, ValueError) as error:
            raise Unfit(
                f"peers: this process cannot listen at {where!r}: {error}. It must be HOST, or HOST:PORT with"
                " a port from 1 to 65535; HOST an address of this machine, of IPv6 in brackets"
            ) from error
        host, port = listening.getsockname()[:2]
        return cls(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", listening, tls)

    def __contains__(self, name: object) -> bool:
        """Whether a program of this name can be asked, as far as its name says."""
        if not self.sealed:
            return str(name).endswith(f"@{self.address}")
        with suppress(ValueError):
            return bool(ip_address(way_to(str(name))[1][0]))  # a name would have to be looked up
        return False

    def listening(self, name: str) -> socket.socket:
        """A socket at which the program of this name listens. Raises `OSError`."""
        return alone(
            self._listening
            or socket.create_server(way_to(name)[1], family=socket.AF_UNIX, backlog=BACKLOG)
        )

    def prepared(self, link: socket.socket, *, asks: bool) -> socket.socket:
        """A socket that is connected, as lines go through it; `asks`: this end asks.

        Raises `Stranger` for another user.
        """
        if self.sealed:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            _, user, _ = struct.unpack(
                "3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            )
            if user != os.geteuid():
                raise Stranger(f"it is of user {user}")
        if self._tls:
            link = self._tls[asks].wrap_socket(
                link,
                not asks,
                do_handshake_on_connect=False,
                server_hostname=link.getpeername()[0] if asks else None,
            )
        return alone(link)


def alone(made: socket.socket) -> socket.socket:
    """A socket that waits for nothing, and that a forked process does not keep."""
    made.setblocking(False)
    _OPEN.add(made)
    return made


if hasattr(os, "register_at_fork"):  # the parent goes on with these sockets, and alone
    os.register_at_fork(after_in_child=lambda: [*map(socket.socket.close, [*_OPEN])])


def here() -> str:
    """What is the same in all processes that can reach each other; "" where none can."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        network = Path("/proc/self/ns/net").stat().st_ino
        return blake2b(f"{boot}/{network}/{os.geteuid()}".encode(), digest_size=6).hexdigest()
    return ""


def way_to(name: str) -> tuple[int, Any]:
    """The family and the address of the socket at which the program of this name listens."""
    writer, _, where = name.partition("@")
    if ":" not in where:
        return socket.AF_UNIX, f"\0leaderless/{writer}"
    at = _parted(where)
    return socket.AF_INET6 if ":" in at[0] else socket.AF_INET, at


def _parted(text: str) -> tuple[str, int]:
    """Host and port, 0 where none is said. Raises `ValueError`."""
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.netloc != text or parts.username is not None or parts.port == 0:
        raise ValueError("it is no address")
    return parts.hostname, parts.port or 0
