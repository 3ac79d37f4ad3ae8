"""A log in a SQLite file, and its values, without our package (docs/SPEC.md, sections 5.4 and 8.4)."""

import json
import os
import secrets
import sqlite3
import time
from base64 import b64decode

from second_log import CONFLICT, FIELDS, FORMATS, MISSING, OK, TRIES, UNKNOWN, Log, Silent, require

INLINE_BYTES = 16384


class File:
    """The store of section 8.4 in a SQLite file that is there."""

    def __init__(self, path):
        self._db = sqlite3.connect(path, timeout=10, isolation_level=None)
        self._db.execute("PRAGMA synchronous=FULL")

    def run(self, steps):
        """What a generator of `Log` returns, its operations carried out."""
        outcome = None
        try:
            while True:
                outcome = self.perform(*steps.send(outcome))
        except StopIteration as end:
            return end.value

    def perform(self, kind, name, old=None, new=None):
        """The outcome of one operation, and what was read."""
        try:
            if kind == "replace":
                return self.replace(name, old, new), None
            content = self.bytes_of(name)
            return (MISSING, None) if content is None else (OK, json.loads(content))
        except (Silent, ValueError):
            return UNKNOWN, None

    def replace(self, name, old, new):
        """The outcome of a replacement of an object. Raises `Silent`."""
        with self._db:  # the end of the block commits, or undoes all
            self._db.execute("BEGIN IMMEDIATE")
            content = self.bytes_of(name)
            if (content and json.loads(content)) != old:
                return CONFLICT
            self._db.execute("UPDATE writes SET count = count + 1")
            [version] = self._db.execute("SELECT count FROM writes").fetchone()
            row = [name, json.dumps(new).encode(), version, time.time()]
            self._db.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", row)
        return OK

    def bytes_of(self, name):
        """The content of an object, None: it is missing. Raises `Silent`."""
        row = self._db.execute("SELECT value FROM objects WHERE key = ?", [name]).fetchone()
        return row and row[0]


def message_of(file, text):
    """The message for a text; a large one is written apart."""
    if (size := len(json.dumps(text))) <= INLINE_BYTES:
        return text
    for _ in range(TRIES):
        name = f"{int(time.time())}-{os.getpid()}-{secrets.token_hex(12)}"
        if file.perform("replace", f"data/{name}", None, text)[0] == OK:
            return {"$data": [name, size, "json"]}
    raise Silent(f"data/{name}")


def value_of(file, message):
    """The value that a message stands for."""
    if not isinstance(message, dict) or len(message) != 1:
        return message
    [(form, content)] = message.items()
    if not form.startswith("$"):
        return message
    if form == "$json":
        return content
    if form == "$headers":
        return value_of(file, content[1])
    if form == "$bytes":
        return b64decode(content)
    require(form == "$data", f"RegistersReadable: a message {form}")
    name, size, kind = content
    text = file.bytes_of(f"data/{name}")
    require(text is not None and len(text) == size, f"DataReadable: data/{name}")
    return text if kind == "bytes" else json.loads(text)


def log_in(file):
    """A view of the log in a store, from its beginning."""
    made = json.loads(file.bytes_of("format"))
    known = made["format"] == FORMATS[-1] and made["shape"].keys() == {*FIELDS}
    require(known, "FormatKnown: format")
    require(made["shape"]["runs"] == "json", "FormatKnown: this program reads no Parquet")
    return Log(f"p{os.getpid()}", [made["shape"][field] for field in FIELDS], has_times=True)
