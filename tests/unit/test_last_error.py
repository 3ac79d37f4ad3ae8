"""The last error on stderr, as programs in several languages print it."""

import pytest

from bench.verdict.last_error import last_error

PYTHON = """Exception in thread Thread-1 (handle):
Traceback (most recent call last):
  File "threading.py", line 1045, in _bootstrap_inner
    self.run()
  File "threading.py", line 982, in run
    self._target(*self._args, **self._kwargs)
  File "node.py", line 7, in handle
    reply(body["ecko"])
          ~~~~^^^^^^^^
"""
JAVASCRIPT = "    at handle (node.js:7:3)\n    at a\n    at b\n    at c\n    at d\n"
GO = "\ngoroutine 1 [running]:\nmain.main()\n\tnode.go:8 +0x1d\n"
CASES = {  # what stands on stderr: the line that names the error for certain, the last line that is shown
    f"{PYTHON}KeyError: 'ecko'\nlater\n": ("KeyError: 'ecko'", "KeyError: 'ecko'"),
    f"{PYTHON}queue.Empty\nlater": ("queue.Empty", "queue.Empty"),
    f"TypeError: no function\n{JAVASCRIPT}later": ("TypeError: no function", "    at c"),
    f"(node:12) Unhandled: Error: x\n{JAVASCRIPT}": ("(node:12) Unhandled: Error: x", "    at c"),
    f"panic: no map\n{GO}exit status 2\n": ("panic: no map", "\tnode.go:8 +0x1d"),
    "thread 'main' panicked at node.rs:2:5:\nboo": (
        "thread 'main' panicked at node.rs:2:5:",
        "boo",
    ),
    'Exception in thread "main" java.lang.Oops: x\n\tat Main.main(Main.java:3)': (
        'Exception in thread "main" java.lang.Oops: x',
        "\tat Main.main(Main.java:3)",
    ),
    "KeyError: 1\nretry failed\n": ("KeyError: 1", "KeyError: 1"),
    "1\n2026/11/28 cas failed\n3": ("", "2026/11/28 cas failed"),
    "node: line 3: jq: not found": ("", "node: line 3: jq: not found"),
    "all is well\n": ("", ""),
}


@pytest.mark.parametrize("log", CASES)
def test_the_last_error_and_its_stack(log: str) -> None:
    certain, last = CASES[log]
    found = last_error(log)
    assert (found.certain, found.text.split("\n")[-1]) == (certain, last)
    assert len(found.text.splitlines()) <= 10
    assert not found.text.startswith(" ")


def test_a_long_stack_is_cut_and_begins_as_it_did() -> None:
    text = last_error(f"{PYTHON}KeyError: {'x' * 9000}").text
    assert text.startswith("Exception in thread Thread-1 (handle):\nTraceback (most recent call")
    assert 'File "node.py", line 7' in text
    assert len(text) < 1000
