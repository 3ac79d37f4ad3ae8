"""Lets time pass on a bench's loop."""

from bench.loop import Loop


def pass_until(loop: Loop, time_ns: int) -> None:
    """Run the loop up to this time; what is due then happens too, if it was planned before."""
    over: list[bool] = []
    loop.call_at(time_ns, over.append, True)
    loop.run_until(lambda: bool(over))
