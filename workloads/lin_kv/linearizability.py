"""Is a history of one register linearizable? A complete, bounded search.

A history is linearizable when every call can be given one instant between its invocation and its return so
that, run one after another at those instants, all calls answer what they answered (Herlihy & Wing). A call of
unknown outcome (`returned is None`) may take effect at any later time or never.

The search follows Wing & Gong's with Lowe's two improvements (*Testing for linearizability*,
2017): visited states are remembered, and calls take effect just in time. It walks the returns in
order. A configuration before a return says which of the running calls have taken effect, what the
register holds, and which lost calls were used. At the return of a call, that call must have taken
effect: it, and whatever has to precede it. Five facts keep the number of configurations small:

- a running call is one bit, and its bit is free again once it has returned;
- a read of the present value changes nothing, so it takes effect at once and never branches;
- of running calls that do the same, the one that returns first may as well be the first to take
  effect (exchange the two in any linearization), and any of them before a lost one;
- lost calls that do the same are interchangeable, so only how many were used counts;
- of two states that differ in lost calls used, the one with fewer allows all that the other does (dominance).

The worst case stays exponential (the problem is NP-complete), so `search` gives up after a number
of configurations that the caller names, which bounds time and memory alike, and says so.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

Value = Hashable
_Change = tuple[Value, Value]
_ANY = object()  # a blind write accepts any value of the register


class Call(NamedTuple):
    """One operation on the register.

    `id` is the caller's name for it, `f` is read, write or cas. `value` is what a read answered,
    what a write wrote, or the pair (from, to) of a successful cas. `invoked` and `returned` are
    positions in one total order of events; `returned` is None for a call whose outcome is
    unknown. Failed calls are not calls: leave them out.
    """

    id: int
    f: str
    value: Value
    invoked: int
    returned: int | None


class Blocked(NamedTuple):
    """Why there is no linearization: every way to explain what came before ends at the return of `call`.

    `held` maps each value the register could have held then to the call that had put it there (None: nothing
    had, it is the initial value); `running` are the other calls that were under way.
    """

    call: Call
    held: dict[Value, Call | None]
    running: tuple[Call, ...]


class Outcome(NamedTuple):
    """`linearizable` is None when the search gave up; `blocked` is set when it is False."""

    linearizable: bool | None
    explored: int
    blocked: Blocked | None = None


class _Kind(NamedTuple):
    """Calls that do the same: need the register to hold `needs`, and leave `leaves`."""

    needs: Value
    leaves: Value
    running: tuple[tuple[int, Call], ...]  # with their bits, the first to return first
    lost: "_Lost | None"  # None when no such call was lost so far


class _Lost(NamedTuple):
    """Lost calls of one kind: its place in `_Configuration.used`, and how many there were so far."""

    place: int
    amount: int
    call: Call  # any of them


class _Return(NamedTuple):
    """The moment before which `call` must have taken effect."""

    call: Call
    bit: int
    kinds: tuple[_Kind, ...]  # of the calls that change the register
    unchanging: dict[Value, int]  # value to the bits of the running calls that only need to see it
    running: tuple[Call, ...]


class _Configuration(NamedTuple):
    done: int  # bits of running calls that have taken effect
    held: Value
    used: tuple[int, ...]  # lost calls used so far, by kind
    last: Call | None  # the writer of `held`: for the explanation only, no part of the identity


def search(calls: Sequence[Call], initial: Value = None, limit: int = 1_000_000) -> Outcome:
    """Look for a linearization of `calls` on a register that holds `initial`.

    Gives up after `limit` configurations. The order of exploration is fixed: the same calls give
    the same outcome. Calls that take as few others along as possible are tried first, which finds
    a linearization of a good history in time proportional to its length.
    """
    returns, kinds = _returns(calls)
    seen: list[dict[tuple[int, Value], list[tuple[int, ...]]]] = [{} for _ in returns]
    stack = [(0, _Configuration(0, initial, (0,) * kinds, None))]
    explored = furthest = 0
    ends: dict[Value, Call | None] = {}
    while stack:
        depth, configuration = stack.pop()
        if depth == len(returns):
            return Outcome(True, explored)
        if not _is_new(seen[depth], configuration):
            continue
        if depth > furthest:
            furthest, ends = depth, {}
        if depth == furthest:
            ends.setdefault(configuration.held, configuration.last)
        following, steps = _advance(configuration, returns[depth], limit - explored)
        explored += steps
        if explored >= limit:
            return Outcome(None, explored)
        stack.extend((depth + 1, successor) for successor in reversed(following))
    end = returns[furthest]
    return Outcome(False, explored, Blocked(end.call, ends, end.running))


def _is_new(seen: dict[tuple[int, Value], list[tuple[int, ...]]], new: _Configuration) -> bool:
    """Remember `new`, unless something at least as good was there before."""
    earlier = seen.setdefault((new.done, new.held), [])
    if any(all(a <= b for a, b in zip(used, new.used, strict=True)) for used in earlier):
        return False
    earlier.append(new.used)
    return True


def _advance(start: _Configuration, end: _Return, limit: int) -> tuple[list[_Configuration], int]:
    """All configurations after `end`, fewest effects first, and how many were looked at."""
    start = _settle(start, end)
    if start.done & end.bit:
        return [start._replace(done=start.done & ~end.bit)], 1
    found: list[_Configuration] = []
    seen = {start[:3]}
    queue = deque([start])
    while queue and len(seen) < limit:
        for following in _effects(queue.popleft(), end):
            if following[:3] in seen:
                continue
            seen.add(following[:3])
            if following.done & end.bit:
                found.append(following._replace(done=following.done & ~end.bit))
            else:
                queue.append(following)
    return found, len(seen)


def _effects(now: _Configuration, end: _Return) -> Iterator[_Configuration]:
    """What one more call taking effect can lead to."""
    for needs, leaves, running, lost in end.kinds:
        if needs not in (_ANY, now.held):
            continue
        for bit, call in running:
            if not now.done & bit:
                yield _settle(_Configuration(now.done | bit, leaves, now.used, call), end)
                break
        else:
            if lost and now.used[lost.place] < lost.amount and leaves != now.held:
                place, before = lost.place, now.used
                used = (*before[:place], before[place] + 1, *before[place + 1 :])
                yield _settle(_Configuration(now.done, leaves, used, lost.call), end)


def _settle(now: _Configuration, end: _Return) -> _Configuration:
    """Let every running call that only needs to see the present value take effect."""
    return now._replace(done=now.done | end.unchanging.get(now.held, 0))


def _returns(calls: Sequence[Call]) -> tuple[list[_Return], int]:
    """The returns in order, each with what was running, and the number of kinds of lost calls."""
    lost: dict[_Change, _Lost] = {}
    free: list[int] = []
    running: dict[int, tuple[int, Call]] = {}
    returns = []
    for _, call, is_return in _events(calls):
        if is_return:
            returns.append(_return(call, running, lost))
            heappush(free, running.pop(call.id)[0])
        elif call.returned is None:
            _lose(call, lost)
        else:
            running[call.id] = (heappop(free) if free else 1 << len(running), call)
    return returns, len(lost)


def _events(calls: Sequence[Call]) -> list[tuple[int, Call, bool]]:
    invocations = [(call.invoked, call, False) for call in calls]
    returns = [(call.returned, call, True) for call in calls if call.returned is not None]
    return sorted(invocations + returns, key=lambda event: event[0])


def _lose(call: Call, lost: dict[_Change, _Lost]) -> None:
    needs, leaves = change = _change(call)
    if needs != leaves:  # a lost read says nothing and changes nothing
        place, count, _ = lost.get(change, (len(lost), 0, call))
        lost[change] = _Lost(place, count + 1, call)


def _return(
    call: Call, running: dict[int, tuple[int, Call]], lost: dict[_Change, _Lost]
) -> _Return:
    unchanging: dict[Value, int] = {}
    changing: dict[_Change, list[tuple[int, Call]]] = {change: [] for change in lost}
    for bit, other in running.values():
        needs, leaves = _change(other)
        if needs == leaves:
            unchanging[needs] = unchanging.get(needs, 0) | bit
        else:
            changing.setdefault((needs, leaves), []).append((bit, other))
    kinds = tuple(
        # A lost call never runs: each has a return.
        _Kind(
            *change, tuple(sorted(group, key=lambda each: each[1].returned or 0)), lost.get(change)
        )
        for change, group in changing.items()
    )
    others = tuple(other for _, other in running.values() if other.id != call.id)
    return _Return(call, running[call.id][0], kinds, unchanging, others)


def _change(call: Call) -> _Change:
    """The value of the register that the call needs before it, and the value after it."""
    match call.f, call.value:
        case "cas", (before, after):
            return before, after
        case "write", value:
            return _ANY, value
        case _, value:
            return value, value
