"""Services that nodes can build on: `lin-kv`, `seq-kv`, `lww-kv`, `lin-tso`.

What a service does with a request is a pure function (`requests`). How consistent it looks is a wrapper round
it (`consistency`). [facts: Maelstrom's service.clj]
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from bench.net import Deliver, Network
from bench.services.consistency import Consistency, Eventual, Linearizable, Sequential
from bench.services.requests import Body, newest, respond_kv, respond_lww_kv, respond_tso

# (client, executes the request, sends the answer): does both, perhaps late (`bench.nemesis.store_faults`).
Serve = Callable[[str, Callable[[], Body], Callable[[Body], object]], object]


def default_services(random: Callable[[str], Random]) -> dict[str, Consistency]:
    """The services of every run by name; each that draws has its own stream of randomness."""
    return {
        "lin-kv": Linearizable(respond_kv),
        "seq-kv": Sequential(respond_kv, random("seq-kv")),
        "lww-kv": Eventual(respond_lww_kv, newest, random("lww-kv")),
        "lin-tso": Linearizable(respond_tso),
    }


def connect(
    network: Network,
    services: Mapping[str, Consistency],
    serve: Mapping[str, Serve] | None = None,
) -> None:
    """Attach the services to the network. Each answers at once, unless `serve` has a function for it."""
    for name in services:
        network.add(name, _answerer(network, name, services, (serve or {}).get(name, _at_once)))


def _at_once(_client: str, execute: Callable[[], Body], answer: Callable[[Body], object]) -> None:
    answer(execute())


def _answerer(
    network: Network, name: str, services: Mapping[str, Consistency], serve: Serve
) -> Deliver:
    service = services[name]

    def deliver(src: str, body: dict[str, Any], _wire: bytes) -> None:
        if src in services:
            return  # a node wrote in a service's name; answering would never end

        def execute() -> Body:
            reply = service.handle(src, body)
            reply["in_reply_to"] = body.get("msg_id")
            return reply

        serve(src, execute, lambda reply: network.send(name, src, reply))

    return deliver
