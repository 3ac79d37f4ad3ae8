#!/usr/bin/env python3
"""A program of `leaderless conformance` on the second implementation: JSON lines on stdin and stdout.

leaderless conformance --program workloads/examples/second_program.py
"""

import json
import sys
from base64 import b64encode
from http.client import HTTPException
from urllib.request import Request, urlopen

from second_file import File, log_in, message_of, value_of
from second_log import CONFLICT, IN_THE_LOG, INDEFINITE, OK, OTHER_EPOCH, Broken, Silent

FORMS = ("$bytes", "$json")  # of messages, of objects with one name that begins with "$"


class Bucket(File):
    """The store of section 8.4 in S3, whose requests are not signed."""

    def __init__(self, place):
        self._url = place

    def _asked(self, method, name, expected, data=None, headers=None):
        """Body and ETag; None, None: the answer is an error that is expected. Raises `Silent`."""
        request = Request(f"{self._url}/{name}", data, headers or {}, method=method)
        try:
            with urlopen(request, timeout=5) as answer:
                return answer.read(), answer.headers["ETag"]
        except (OSError, HTTPException) as error:
            if getattr(error, "code", None) in expected:
                return None, None
            raise Silent(name) from error

    def replace(self, name, old, new):
        """See `File`."""
        if_it_is, expected = {"If-None-Match": "*"}, [412]
        if old is not None:
            content, etag = self._asked("GET", name, [404])
            if content is None or json.loads(content) != old:
                return CONFLICT
            if_it_is, expected = {"If-Match": etag}, [412, 404]
        done, _ = self._asked("PUT", name, expected, json.dumps(new).encode(), if_it_is)
        return CONFLICT if done is None else OK

    def bytes_of(self, name):
        """See `File`."""
        return self._asked("GET", name, [404])[0]


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
        named = [f"named/{name[0]}", name[1]] if name else None
        fate = OTHER_EPOCH
        while fate == OTHER_EPOCH:
            self.file.run(self.log.refresh())
            epoch = self.log.head["epoch"]
            messages = [
                each if isinstance(each, dict) else message_of(self.file, each) for each in values
            ]
            fate, firsts = self.file.run(self.log.append({key: messages}, None, epoch, named))
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
    value = value_of(file, message)  # it refuses forms that it does not know
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
        except (Silent, Broken) as error:
            said = {"error": f"{type(error).__name__}: {error}", "may_have_happened": False}
        print(json.dumps({"id": number} | said), flush=True)


if __name__ == "__main__":
    main()
