"""Services that nodes can build on: `lin-kv`, `seq-kv`, `lww-kv`, `lin-tso`.

A service (`kv`, `tso`) is a pure function of a state and a request; how consistent it looks is a
wrapper round it (`consistency`). [facts: Maelstrom's service.clj]
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from bench.net import Deliver, Network
from bench.services import kv, lww_kv, tso
from bench.services.consistency import Consistency, Eventual, Linearizable, Sequential
from bench.services.trouble import Trouble


def default_services(random: Callable[[str], Random]) -> dict[str, Consistency]:
    """The services of every run by name; each that draws has its own stream of randomness."""
    return {
        "lin-kv": Linearizable(kv.respond),
        "seq-kv": Sequential(kv.respond, random("seq-kv")),
        "lww-kv": Eventual(lww_kv.respond, lww_kv.newest, random("lww-kv")),
        "lin-tso": Linearizable(tso.respond),
    }


def connect(
    network: Network,
    services: Mapping[str, Consistency],
    troubles: Mapping[str, Trouble] | None = None,
) -> None:
    """Attach the services to the network: each answers a request at once, unless it is in trouble."""
    for name in services:
        network.add(name, _answerer(network, name, services, (troubles or {}).get(name)))


def _answerer(
    network: Network, name: str, services: Mapping[str, Consistency], trouble: Trouble | None
) -> Deliver:
    service = services[name]

    def deliver(src: str, body: dict[str, Any], _wire: bytes) -> None:
        if src in services:
            return  # a node wrote in a service's name; answering would never end

        def execute() -> dict[str, Any]:
            reply = service.handle(src, body)
            reply["in_reply_to"] = body.get("msg_id")
            return reply

        if trouble and trouble.plight:
            trouble.serve(src, execute, lambda reply: network.send(name, src, reply))
        else:
            network.send(name, src, execute())

    return deliver
