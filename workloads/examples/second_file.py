#!/usr/bin/env python3
"""A program on a log in a SQLite file, without our package (docs/SPEC.md, sections 5.4 and 8.4).

second_file.py FILE append    append each line of stdin, KEY VALUE; print KEY OFFSET when it is in the log
second_file.py FILE read      print all records, a line each: [KEY, OFFSET, VALUE]
"""

import json
import os
import secrets
import sqlite3
import sys
import time
from base64 import b64decode, b64encode

from second_log import CONFLICT, FIELDS, IN_THE_LOG, MISSING, OK, Log, require

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
                outcome = self._perform(*steps.send(outcome))
        except StopIteration as end:
            return end.value

    def bytes_of(self, name):
        """The content of an object, None: it is missing."""
        row = self._db.execute("SELECT value FROM objects WHERE key = ?", [name]).fetchone()
        return row and row[0]

    def write(self, name, content):
        """Write an object, whatever is there."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._put(name, content)

    def _perform(self, kind, name, old=None, new=None):
        if kind == "read":
            content = self.bytes_of(name)
            return (MISSING, None) if content is None else (OK, json.loads(content))
        with self._db:  # the end of the block commits, or undoes all
            self._db.execute("BEGIN IMMEDIATE")
            content = self.bytes_of(name)
            if (content and json.loads(content)) != old:
                return CONFLICT, None
            self._put(name, json.dumps(new).encode())
        return OK, None

    def _put(self, name, content):
        self._db.execute("UPDATE writes SET count = count + 1")
        [version] = self._db.execute("SELECT count FROM writes").fetchone()
        row = [name, content, version, time.time()]
        self._db.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", row)


# ---------------------------------------------------------------- values


def message_of(file, value):
    """The message for a value; a large one is written apart."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    kind = "bytes" if isinstance(value, bytes) else "json"
    if len(text) > INLINE_BYTES:
        name = f"{int(time.time())}-{os.getpid()}-{secrets.token_hex(12)}"
        file.write(f"data/{name}", text)
        return {"$data": [name, len(text), kind]}
    if kind == "bytes":
        return {"$bytes": b64encode(value).decode()}
    return {"$json": value} if _is_special(value) else value


def value_of(file, message):
    """The value that a message stands for."""
    if not _is_special(message):
        return message
    [(form, content)] = message.items()
    if form == "$json":
        return content
    if form == "$bytes":
        return b64decode(content)
    require(form == "$data", f"RegistersReadable: a message {form}")
    name, size, kind = content
    text = file.bytes_of(f"data/{name}")
    require(text is not None and len(text) == size, f"DataReadable: data/{name}")
    return text if kind == "bytes" else json.loads(text)


def _is_special(value):
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith("$")


# ---------------------------------------------------------------- the program


def append_lines(file, log):
    """Append one line after the other."""
    for line in sys.stdin:
        key, value = line.split()
        file.run(log.refresh())
        epoch = log.head["epoch"]  # before the object of a large value is written
        fate, firsts = file.run(log.append({key: [message_of(file, value)]}, epoch=epoch))
        print(key, firsts[key] if fate == IN_THE_LOG else fate, flush=True)


def read_all(file, log):
    """Print all records."""
    file.run(log.refresh())
    for key, messages in log.messages.items():
        for offset, message in enumerate(messages):
            value = value_of(file, message)
            print(json.dumps([key, offset, value.hex() if isinstance(value, bytes) else value]))


def main(path, command):
    file = File(path)
    made = json.loads(file.bytes_of("format"))
    require(made["format"] == 1 and made["shape"].keys() == {*FIELDS}, "FormatKnown: format")
    require(made["shape"]["runs"] == "json", "FormatKnown: this program reads no Parquet")
    log = Log(f"p{os.getpid()}", [made["shape"][field] for field in FIELDS])
    {"append": append_lines, "read": read_all}[command](file, log)


if __name__ == "__main__":
    main(*sys.argv[1:])
