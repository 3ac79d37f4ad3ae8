"""A second implementation of our log, by docs/SPEC.md: it appends and reads.

It shares no line with the package, so a mistake of the text, or of the package, shows where both write one log.
It does no I/O. Its methods are generators: they yield `("read", name)` or `("replace", name, old, new)`, where
the old value None means that the object is missing, and are sent what came of it and what was read.
"""

import json
import secrets
import time

OK, MISSING, CONFLICT, UNKNOWN = "ok", "missing", "conflict", "unknown"
IN_THE_LOG, FENCED, OTHER_EPOCH, INDEFINITE = "in the log", "fenced", "other epoch", "indefinite"
TOO_LARGE, CLOSED = "too large", "closed"
TOMBSTONE = {"deleted": True}
SHAPE = [1 << 26, 8192, 256, 16, 1 << 19, 16, 1 << 18, 1, "json"]
FORMATS = 4, 5
FIELDS = ("register_bytes", "seal_bytes", "seal_entries", "segments_per_run", "run_bytes")
FIELDS += ("page_children", "page_bytes", "offset_registers", "runs")
TRIES = 4  # without a clear answer; then the outcome is indefinite


class Silent(Exception):
    """The store gave no clear answer."""


class Broken(Exception):
    """The log is not what the text says; the argument begins with the invariant's name."""


def require(holds, what):
    if not holds:
        raise Broken(what)


class Log:
    """A view of one log, and the appends of one writer (sections 10 and 11)."""

    def __init__(self, process, shape=SHAPE, *, has_times=False):
        self.process = process
        self.has_times = has_times  # whether the log is one of a store
        self.writer = f"{process}-{secrets.token_hex(8)}/0"
        self.seq = 0
        self.head = {"state": "open", "epoch": 0, "version": 0, "by": "", "sealed": 0}
        self.head |= {"base": 0, "size": 0, "shape": shape, "entries": []}
        self.slot = 0
        self.messages, self.newest, self.committed = {}, {}, {}

    def refresh(self):
        """Bring the view up to date. Raises `Silent`, `Broken`."""
        while True:
            found = (yield from read("head")) or self.head
            if found["version"] <= self.head["version"]:
                return
            if found["base"] <= self.slot or (yield from self._load(found)):
                break
        self._fold(found)
        self.head = found

    def _load(self, head):
        index = (yield from read("compacted")) or {"listed": []}
        require(index.get("format", 4) in FORMATS, "FormatKnown: compacted")
        listed = index["listed"]
        if listed and listed[-1][4] > head["base"]:
            return False
        for each in listed:
            yield from self._load_listed(each)
        for number in range(listed[-1][2] + 1 if listed else 0, head["sealed"]):
            segment = yield from self._must_read(f"segment/{number}")
            if segment == TOMBSTONE:
                return (yield from self._load(head))
            self._fold(segment)
        return True

    def _load_listed(self, each):
        level, first, last, _base, end, parts, _size = each
        if end <= self.slot:
            return
        if level == 0:
            self._fold_run((yield from self._must_read(f"run/{first}-{last}")))
            return
        # Any part of a page lists its children.
        page = yield from self._must_read(f"page/{level}/{first}-{last}/0-of-{parts}")
        for child in page["children"]:
            yield from self._load_listed(child)

    def _must_read(self, name):
        found = yield from read(name)
        require(found is not None, f"CommittedReadable: {name} is missing")
        return found

    def _fold(self, part):
        """Take the entries of a head or a segment that the view lacks."""
        for entry in part["entries"][max(0, self.slot - part["base"]) :]:
            writer, seq, appends, commits, *_time = entry
            require(self.newest.get(writer, (-1,))[0] < seq, f"AckedExactlyOnce: {writer} {seq}")
            for key, (first, messages) in appends.items():
                require(first == self.end(key), f"OffsetsDense: {key} at {first}")
                self.messages.setdefault(key, []).extend(messages)
            self.newest[writer] = seq, {key: first for key, (first, _) in appends.items()}
            self._raise_committed(commits)
            self.slot += 1

    def _fold_run(self, run):
        for key, (first, messages) in run["keys"].items():
            end = self.end(key)
            require(first <= end, f"OffsetsDense: {key} at {first}")
            self.messages.setdefault(key, []).extend(messages[end - first :])
        for writer, (seq, firsts) in run["writers"].items():
            if seq > self.newest.get(writer, (-1,))[0]:
                self.newest[writer] = seq, firsts
        self._raise_committed(run["commits"])
        self.slot = run["end"]

    def _raise_committed(self, commits):
        for key, offset in commits.items():
            self.committed[key] = max(offset, self.committed.get(key, offset))

    def end(self, key):
        return len(self.messages.get(key, ()))

    def append(self, appends, commits=None, epoch=None, name=None):
        """Append a batch, `{key: [message, ...]}`; returns its fate, and the first offset of each key.

        `name`: writer and seq, of a batch that may be in the log already.
        """
        self.seq += name is None
        writer, number = name or (self.writer, self.seq)
        unclear = 0
        try:
            while unclear < TRIES:
                yield from self.refresh()
                seq, firsts = self.newest.get(writer, (-1, {}))
                if seq >= number:
                    return IN_THE_LOG, firsts
                if self.head["state"] == "fenced":
                    return FENCED, {}
                if epoch not in (None, self.head["epoch"]):
                    return OTHER_EPOCH, {}
                if any(self.committed.get(f"\0{key}") == (1 << 63) - 1 for key in appends):
                    return CLOSED, {}
                outcome = yield from self._attempt([writer, number], appends, commits or {})
                if outcome == TOO_LARGE:
                    return TOO_LARGE, {}
                unclear += outcome == UNKNOWN
        except Silent:
            pass
        return INDEFINITE, {}

    def _attempt(self, name, appends, commits):
        kept = 0
        if self._is_full():
            kept = yield from self._seal()
            if not kept:
                return CONFLICT
        blocks = {key: [self.end(key), messages] for key, messages in appends.items()}
        entry = [*name, blocks, commits]
        before = self.head["entries"][-1:]
        if self.has_times or any(len(each) == 5 for each in before):
            entry.append(
                max([int(time.time() * 1000), *(each[4] for each in before if len(each) == 5)])
            )
        new = self._after(entry, kept)
        register_bytes, _, _, _, run_bytes, *_ = new["shape"]
        if len(json.dumps(new)) > min(register_bytes // 2, register_bytes - run_bytes):
            return TOO_LARGE
        was = self.head if self.head["version"] else None
        return (yield ("replace", "head", was, new))[0]

    def _is_full(self):
        _, seal_bytes, seal_entries, *_ = self.head["shape"]
        return self.head["size"] >= seal_bytes or len(self.head["entries"]) >= seal_entries

    def _after(self, entry, kept):
        old = self.head
        size, rest = old["size"], old["entries"][kept:]
        new = old | {"version": old["version"] + 1, "by": self.process}
        if kept:
            new |= {"sealed": old["sealed"] + 1, "base": old["base"] + kept}
            size = size * len(rest) // len(old["entries"])
        size += 48 + sum(len(json.dumps(block)) for block in entry[2].items())
        return new | {"size": size, "entries": [*rest, entry]}

    def _seal(self):
        name, tail = f"segment/{self.head['sealed']}", self.head["entries"]
        segment = {"base": self.head["base"], "entries": tail}
        if (yield ("replace", name, None, segment))[0] == OK:
            return len(tail)
        held = yield from read(name)
        if held in (None, TOMBSTONE) or len(held["entries"]) > len(tail):
            return 0
        same = held["base"] == segment["base"] and held["entries"] == tail[: len(held["entries"])]
        require(same, f"SegmentsImmutable: {name}")
        return len(held["entries"])


def read(name):
    """What an object holds, None: it is missing. Raises `Silent`."""
    for _ in range(TRIES):
        outcome, value = yield ("read", name)
        if outcome in (OK, MISSING):
            return value
    raise Silent(name)
