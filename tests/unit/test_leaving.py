"""A program that ends, and its peers."""

import anyio
import orjson

from leaderless.core.messages import (
    Batch,
    HandedOver,
    Heading,
    Offer,
    PeerCall,
    Reply,
    Request,
)
from leaderless.peers.lines import Peers
from leaderless.wire import bodies
from leaderless.wire.codec import encode


def hand_over(number: int) -> bytes:
    offer = Offer(0, Batch("peer/0", number, 0, {"k": ["v"]}, {}, 10))
    return encode("peer", "this", bodies.question_of(PeerCall(number, "this", offer)))


class Told(Peers):
    """Peers that keep what they are told."""

    def __init__(self) -> None:
        super().__init__("this")
        self.told: list[str] = []

    def answer(self, dest: str, line: bytes) -> None:
        self.told.append(orjson.loads(line)["body"]["type"])

    async def leave(self) -> None:
        await super().leave()
        self.told.append("left")


def test_who_leaves_answers_what_it_has_and_takes_no_more() -> None:
    async def main() -> list[str]:
        peers = Told()
        peers.hear("peer", hand_over(1))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peers.leave)
            await anyio.wait_all_tasks_blocked()
            peers.hear("peer", hand_over(2))
            answer = HandedOver(0, [], Heading(), 0.0)
            peers.carry_out([Reply(Request("peer", 1), answer)])
        return peers.told

    assert anyio.run(main) == ["error", "hand_over_ok", "left"]
