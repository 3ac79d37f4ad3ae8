"""One end of a TCP connection on the bench's loop: bytes as they come, and writes that never block."""

import socket
import struct
from collections.abc import Callable

from bench.loop import RealLoop

_CHUNK_BYTES = 1 << 18
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: closing sends a reset


class Stream:
    """A connection that is open, or is about to be.

    `on_data` gets what arrives, and b"" at its end, which comes once, also when the other side resets.
    """

    def __init__(
        self, loop: RealLoop, connection: socket.socket, on_data: Callable[[bytes], object]
    ) -> None:
        self._loop = loop
        self._socket = connection
        self._on_data = on_data
        self._unsent = memoryview(b"")
        self._ended = False
        self.closed = False
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()

    @classmethod
    def to(
        cls, loop: RealLoop, address: tuple[str, int], on_data: Callable[[bytes], object]
    ) -> "Stream":
        """Connect to a server. When nobody listens there, `on_data` gets b""."""
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.setblocking(False)
        connection.connect_ex(address)
        return cls(loop, connection, on_data)

    def write(self, data: bytes) -> None:
        """Send bytes, after those that still wait. They are lost when the connection is gone."""
        if self.closed or self._ended:
            return
        self._unsent = memoryview(bytes(self._unsent) + data)
        self._flush()

    def close(self) -> None:
        """Close in order; what could not be sent yet is lost."""
        if not self.closed:
            self.closed = True
            self._loop.watch(self._socket.fileno(), None, None)
            self._socket.close()

    def reset(self) -> None:
        """Break the connection: the other side gets an error."""
        if not self.closed:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.close()

    def _read(self) -> None:
        if self.closed:
            return  # by another callback of this turn
        try:
            chunk = self._socket.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:  # refused, or reset
            chunk = b""
        if not chunk:
            self._ended = True
            self._loop.watch(self._socket.fileno(), None, None)
        self._on_data(chunk)

    def _flush(self) -> None:
        if self.closed or self._ended:
            return
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # not connected yet, or broken: reading tells which
            pass
        self._watch()

    def _watch(self) -> None:
        self._loop.watch(self._socket.fileno(), self._read, self._flush if self._unsent else None)
