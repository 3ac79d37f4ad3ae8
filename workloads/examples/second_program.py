#!/usr/bin/env python3
"""A program of `leaderless conformance` on the second implementation: JSON lines on stdin and stdout.

leaderless conformance --program workloads/examples/second_program.py
"""

import json
import sys
import urllib.error
import urllib.request
from base64 import b64encode
from http.client import HTTPException

from second_file import File, log_in, message_of, value_of
from second_log import (
    CONFLICT,
    IN_THE_LOG,
    INDEFINITE,
    MISSING,
    OK,
    OTHER_EPOCH,
    UNKNOWN,
    Broken,
    Silent,
)

FORMS = ("$bytes", "$json")  # of messages, of objects with one name that begins with "$"


class Bucket(File):
    """The store of section 8.4 in S3, whose requests are not signed."""

    def __init__(self, place):
        self._url = place

    def _asked(self, method, name, data=None, **headers):
        """Status, body and ETag of an answer; status 0: there was none."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"{self._url}/{name}", data, named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.read(), answer.headers["ETag"]
        except urllib.error.HTTPError as error:
            return error.code, b"", None
        except (OSError, HTTPException):
            return 0, b"", None

    def perform(self, kind, name, old=None, new=None):
        """See `File`."""
        if kind == "replace" and old is None:
            status, _, _ = self._asked("PUT", name, json.dumps(new).encode(), If_None_Match="*")
            return {200: OK, 412: CONFLICT}.get(status, UNKNOWN), None
        status, body, etag = self._asked("GET", name)
        try:
            found = json.loads(body) if status == 200 else None
        except ValueError:
            return UNKNOWN, None
        if kind == "read" or status != 200:
            return {200: OK, 404: MISSING if kind == "read" else CONFLICT}.get(
                status, UNKNOWN
            ), found
        if found != old:
            return CONFLICT, None
        status, _, _ = self._asked("PUT", name, json.dumps(new).encode(), If_Match=etag)
        return {200: OK, 412: CONFLICT, 404: CONFLICT}.get(status, UNKNOWN), None

    def bytes_of(self, name):
        """See `File`."""
        for _ in range(4):
            status, body, _ = self._asked("GET", name)
            if status in (200, 404):
                return body if status == 200 else None
        raise Silent(name)


class Program:
    """What each line asks for; `open` comes first."""

    def open(self, store, endpoint="", **_):
        """Open the log at a place."""
        kind, _, place = store.partition("://")
        self.file = File(place[1:]) if kind == "sqlite" else Bucket(f"{endpoint}/{place}")
        if json.loads(self.file.bytes_of("format"))["shape"]["runs"] == "parquet":
            return {"error": "not supported"}
        self.log = log_in(self.file)
        return {}

    def append(self, key, values, name=None):
        """Append a batch, in the epoch that was read before the objects of its large values are written."""
        if not fits(key, values):
            return {"error": "it cannot be kept", "may_have_happened": False}
        if name:
            name = [f"named/{name[0]}", name[1]]
        fate = OTHER_EPOCH
        while fate == OTHER_EPOCH:
            self.file.run(self.log.refresh())
            epoch = self.log.head["epoch"]
            messages = [
                each if isinstance(each, dict) else message_of(self.file, each) for each in values
            ]
            fate, firsts = self.file.run(self.log.append({key: messages}, None, epoch, name))
        if fate != IN_THE_LOG:
            return {"error": fate, "may_have_happened": fate == INDEFINITE}
        return {} if name else {"offset": firsts[key]}

    def read(self, key):
        """All records of a key."""
        self.file.run(self.log.refresh())
        messages = self.log.messages.get(key, [])
        return {"records": [*enumerate(whole(self.file, each) for each in messages)]}


def whole(file, message):
    """A message with nothing apart."""
    value = value_of(file, message)
    if not isinstance(message, dict) or "$data" not in message:
        return message
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode()}
    return {"$json": value} if is_special(value) else value


def is_special(value):
    """Whether an object has one name, which begins with "$"."""
    return isinstance(value, dict) and [name[:1] for name in value] == ["$"]


def fits(key, messages):
    """Whether rules 7 to 11 let a key, and messages, be."""
    try:
        forms = all(not is_special(each) or next(iter(each)) in FORMS for each in messages)
        return forms and len(key.encode()) <= 1024 and all(levels(each) <= 200 for each in messages)
    except ValueError:
        return False


def levels(value):
    """How many lists and objects are in each other. Raises `ValueError` for a number that cannot be kept."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError(value)
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max(map(levels, inner), default=0)


def main():
    program = Program()
    for text in sys.stdin:
        line = json.loads(text)
        number, ask = line.pop("id"), getattr(program, line.pop("op"), None)
        try:
            said = ask(**line) if ask else {"error": "not supported"}
        except Silent as silent:
            said = {"error": f"no clear answer: {silent}", "may_have_happened": False}
        except Broken as broken:
            said = {"error": str(broken), "may_have_happened": False}
        print(json.dumps({"id": number} | said), flush=True)


if __name__ == "__main__":
    main()
