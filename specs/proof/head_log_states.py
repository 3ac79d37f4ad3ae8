"""A state of HeadLog in Python, of TLC or of a simulated run, as the proof sees it."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import add
from typing import Any

from specs.head_log.state import NAMED, TOMBSTONE, Batch, State, view_of
from specs.head_log.steps import HeadLog
from specs.head_log.views import Content, Entry, fold
from specs.proof.evaluation import UNSET, Part, Structure

PHASES = {"claimed": 1, "written": 2, "deleted": 3, "done": 4}


def batch_of(e: Entry) -> Batch:
    """The batch that an entry is made of: it was made in the epoch of the entry, or is none of this model."""
    return Batch(e.id, e.payload, e.epoch, Content(e.counts, e.commits, e.expected))


def of_object(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function, which keeps what it has found of each object: to hash heads and entries is slow."""
    found: dict[int, tuple[Any, Any]] = {}

    def of(each: Any) -> Any:
        if id(each) not in found:
            found[id(each)] = each, function(each)
        return found[id(each)][1]

    return of


def _life(s: State, node: Any) -> int:
    return s.incarnation.get(node, 0)


def _born(b: Any) -> Any:
    """In which life of its node it was made."""
    return b.payload[1]


def _at(items: Any, number: int) -> Any:
    return items[number] if 0 <= number < len(items) else UNSET


def _running(
    entries: Iterable[Entry],
    own: Callable[[Entry], Mapping[Any, int]],
    join: Callable[[int, int], int],
) -> list[dict[Any, int]]:
    """Of each key, before each slot: what its entries have, joined."""
    found: list[dict[Any, int]] = [{}]
    for e in entries:
        found.append({**found[-1], **{k: join(found[-1].get(k, 0), n) for k, n in own(e).items()}})
    return found


_totals = partial(_running, own=lambda e: e.counts, join=add)
_tokens = partial(_running, own=lambda e: tokens_of(batch_of(e)), join=max)


def tokens_of(b: Batch) -> dict[Any, int]:
    """From 1 on."""
    return {key: n + 1 for key, n in b.content.tokens.items()}


def facts(model: HeadLog, s: State, batches: Iterable[Batch]) -> dict[str, Any]:
    """The symbols that never change: what elements are."""
    totals = of_object(lambda h: _totals((*s.log[: h.base], *h.tail)))
    tokens = of_object(lambda h: _tokens((*s.log[: h.base], *h.tail)))
    # In a run, a writer's name has a text in place of the number of a life: that of its batches is known.
    lives = {b.id.writer: _born(b) for b in batches}
    return {
        "node": lambda w: w[0],
        "life": lambda w: lives.get(w, w[1] if isinstance(w[1], int) else _life(s, w[0])),
        "named": lambda w: w[0] == NAMED,
        "writer": lambda b: b.id.writer,
        "seq": lambda b: b.id.seq,
        "made_in": lambda b: b.epoch,
        "born": _born,
        "count": lambda b, k: b.content.counts.get(k, 0),
        "token": lambda b, k: tokens_of(b).get(k, 0),
        "expected": lambda b, k: b.content.expected.get(k, -1),
        "closed": model.closed + 1,
        "batch": of_object(batch_of),
        "epoch": lambda e: e.epoch,
        "first": lambda e, k: e.first.get(k, UNSET),
        "is_open": lambda h: h.state == "open",
        "epoch_of": lambda h: h.epoch,
        "base": lambda h: h.base,
        "end": lambda h: h.end,
        "at": lambda h, i: _at(h.tail, i - h.base),
        "full": model.is_full,
        "offset": lambda h, i, k: _at(totals(h), i).get(k, 0),
        "highest": lambda h, i, k: _at(tokens(h), i).get(k, 0),
        "to": lambda a: a.to,
        "head_of": lambda a: a.head,
        "start": lambda a: a.start,
        "brought": lambda a, i: _at(a.entries, i - a.start),
        "tail_limit": model.tail_limit,
    }


def structure(model: HeadLog, s: State) -> Structure:
    """A state of HeadLog: what stands in the store, in nodes and in the network, and ghosts."""
    told = (*(r.before for r in s.inflight), *(a.head for a in s.answers))
    heads = dict.fromkeys((s.head, *s.known.values(), *told))
    asked = {r.after: None for r in s.inflight}
    entries = (*(e for r in s.inflight for e in r.entries), *s.log)
    waiting = (*s.batch.values(), *(m.batch for m in s.handovers))
    batches = dict.fromkeys((*waiting, *map(batch_of, entries)))
    nodes = dict.fromkeys(
        (
            *(*model.nodes, *s.incarnation, *s.known, *(m.to for m in s.handovers)),
            *(*s.worker, *(b.id.node for b in batches)),
        )
    )
    named = (each for b in batches for each in (b.content.counts, b.content.tokens))
    keys = dict.fromkeys((*model.keys, *(k for each in named for k in each)))
    lives = ((n, life) for n in model.nodes for life in range(_life(s, n) + 1))
    writers = dict.fromkeys((*lives, *s.seq, *(b.id.writer for b in batches)))
    made_from = {"full": (s.segments, s.head), "offset": s.log, "highest": s.log}
    parts = {
        **{n: Part(made_from.get(n), value) for n, value in facts(model, s, batches).items()},
        **{**_store(model, s), **_nodes(s), **_network(s)},
        "was": Part(tuple(heads), lambda h: h in heads),
        "made": Part(tuple(batches), lambda b: b in batches),
    }
    offsets = _totals(s.log)[-1].values()
    top = max(len(s.log), s.head.epoch, *offsets, *s.incarnation.values()) + 2
    domains = {
        "Node": tuple(nodes),
        "Writer": tuple(writers),
        "Key": tuple(keys),
        "Batch": tuple(batches),
        "Head": tuple(heads | asked),
        "Answer": tuple(s.answers),
        "Int": tuple(range(top)),
    }
    return Structure(domains, parts)


def _store(model: HeadLog, s: State) -> dict[str, Part]:
    bases = sorted(s.segments)
    ends = dict(zip(bases, (*bases, s.head.base)[1:], strict=True))
    there = {b: held for b, held in s.segments.items() if held != TOMBSTONE}
    ends |= {b: b + len(held) for b, held in there.items()}
    owner = {i: b for b in bases for i in range(b, ends[b])}
    run_of = {i: b for b, run in s.runs.items() for i in range(b, b + run.length)}
    # A run that is what its entries fold to has these entries.
    true = {b for b, run in s.runs.items() if run == fold(s.log[b : b + run.length])}
    totals, tokens = _totals(s.log), _tokens(s.log)
    laid = (s.segments, s.head.base)
    return {
        "head": Part(s.head, s.head),
        "segment": Part(s.segments, lambda i: i in s.segments),
        "tombstone": Part(s.segments, lambda i: s.segments.get(i) == TOMBSTONE),
        "sealed_to": Part(laid, lambda i: ends.get(i, UNSET)),
        "sealed": Part(s.segments, lambda i, j: _at(there.get(i, ()), j - i)),
        "run": Part(s.runs, lambda i: i in s.runs),
        "run_to": Part(s.runs, lambda i: i + s.runs[i].length if i in s.runs else UNSET),
        "kept": Part(
            (s.runs, s.log),
            lambda i, j: _at(s.log, j) if i in true and run_of.get(j) == i else UNSET,
        ),
        "has_writers": Part((s.runs, s.log), lambda i: i in true if i in s.runs else UNSET),
        "claim": Part(s.task.epoch, s.task.epoch),
        "cursor": Part(s.task.cursor, s.task.cursor),
        "length": Part(s.log, len(s.log)),
        "log": Part(s.log, lambda i: _at(s.log, i)),
        "total": Part(s.log, lambda i, k: totals[i].get(k, 0) if 0 <= i < len(totals) else UNSET),
        "tokens": Part(s.log, lambda i, k: tokens[i].get(k, 0) if 0 <= i < len(tokens) else UNSET),
        "segment_of": Part(laid, lambda i: owner[i] if i in owner and i < s.head.base else UNSET),
        "run_of": Part(s.runs, lambda i: run_of.get(i, UNSET)),
        "starts": Part(laid, lambda i: i in (*bases, s.head.base)),
    }


def _nodes(s: State) -> dict[str, Part]:
    views = {n: view_of(s, n) for n in s.view}
    # A view that is a prefix of the log has the entries of that.
    prefixes = {n for n, view in views.items() if view == fold(s.log[: view.length])}
    length = lambda n: views[n].length if n in views else 0
    seen = lambda n, i: n in prefixes and i < length(n)
    worker = lambda n, name: getattr(s.worker[n], name) if n in s.worker else UNSET
    return {
        "incarnation": Part(s.incarnation, lambda n: _life(s, n)),
        "last": Part(s.seq, lambda w: s.seq.get(w, 0)),
        "knows": Part(s.known, lambda n: n in s.known),
        "known": Part(s.known, lambda n: s.known.get(n, UNSET)),
        "viewed": Part(s.view, length),
        "view": Part((s.view, s.log), lambda n, i: _at(s.log, i) if seen(n, i) else UNSET),
        "sees_writer": Part((s.view, s.log), lambda n, i: seen(n, i) if i < length(n) else UNSET),
        "waits": Part(s.batch, lambda w: w in s.batch),
        "own": Part(s.batch, lambda w: s.batch.get(w, UNSET)),
        "phase": Part(s.worker, lambda n: PHASES[s.worker[n].phase] if n in s.worker else 0),
        "claimed": Part(s.worker, lambda n: worker(n, "epoch")),
        "job": Part(s.worker, lambda n: worker(n, "base")),
    }


def _network(s: State) -> dict[str, Part]:
    asked = {(m.to, m.batch): m.length for m in s.handovers}
    requests = {(r.before, r.after) for r in s.inflight}
    acks = {(a.id, a.payload): a.first for a in s.acked}
    ack = lambda b: acks.get((b.id, b.payload))

    def first(b: Batch, k: Any) -> Any:
        found = ack(b)
        none = -1 if b.content.counts.get(k, 0) == 0 else UNSET
        return UNSET if found is None else found.get(k, none)

    return {
        "inflight": Part(s.inflight, lambda h, g: (h, g) in requests),
        "handed": Part(s.handovers, lambda n, b: (n, b) in asked),
        "asked": Part(s.handovers, lambda n, b: asked.get((n, b), UNSET)),
        "answer": Part(s.answers, lambda a: a in s.answers),
        "acked": Part(s.acked, lambda b: ack(b) is not None),
        "ack": Part(s.acked, first),
        "rejected": Part(s.rejected, lambda b: b.id in s.rejected),
    }
