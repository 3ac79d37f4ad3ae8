"""Why a line that a node printed is no message: the reason, the right form, and where other output belongs."""

import re
from codecs import BOM_UTF8
from functools import reduce
from typing import Any

import orjson

from bench.failure import RunFailure, clip, indent

LEVELS, _MOST_LEVELS = 150, 254  # of values in a message, and in what orjson writes
MESSAGE_FIELDS = frozenset(("id", "src", "dest", "body"))


def malformed(node: str, line: bytes) -> RunFailure:
    """The report on such a line."""
    try:
        message = orjson.loads(line)
    except ValueError as error:
        what = f"is not one JSON object: {_why_no_json(line) or error}"
    else:
        what = f"is no message: {_why_no_message(message)}"
    return RunFailure(
        f"Node {node} printed a line on stdout that {what}.\nThe line:\n"
        f"{indent(clip(line.decode(errors='replace')))}\n"
        'A message is {"src": "n0", "dest": "c1", "body": {"type": ...}} on one line.'
        " Anything else, such as a log, belongs on stderr.\n"
        "The real Maelstrom would go on, say so only in jepsen.log, and not hear the node any more. To go on"
        " without such lines, use --lenient."
    )


_MISTAKES = {  # a line that is no JSON, without white space at its ends -> what is wrong with it
    rb"$": "it is empty",
    BOM_UTF8: "it begins with a byte order mark; write UTF-8 without one",
    rb"b['\"]": "it is bytes as Python shows them; print json.dumps(message)",
    rb"\{\s*'": "it is a dictionary as Python shows it; print json.dumps(message)",
    rb"\{\s*\w+:": "it is an object as JavaScript shows it; print JSON.stringify(message)",
    rb".*[:\[,]\s*-?(NaN|Infinity)\b": "NaN and Infinity are no JSON; send a number",
    rb".*\"src\".*\"src\"": "it is several messages; end each with a newline, and print in one thread",
    rb"[{\[](.*[{,])?$": "it ends within an object; print each message on one line, without indentation",
}


def _why_no_json(line: bytes) -> str:
    """What is wrong with a line, if it is a usual mistake; else nothing."""
    text = line.strip()
    return next((why for form, why in _MISTAKES.items() if re.match(form, text, re.DOTALL)), "")


def _why_no_message(message: Any) -> str:
    if isinstance(message, str) and message.lstrip().startswith("{"):
        return "it is a text with an object in it; encode the message once"
    if not isinstance(message, dict):
        return "it is JSON, but not an object"
    for name, form in {"src": str, "dest": str, "body": dict}.items():
        if name not in message:
            return f"`{name}` is missing"
        if not isinstance(message[name], form):
            return f"`{name}` must be {'an object' if form is dict else 'a string'}"
    if beside := ", ".join(f"`{each}`" for each in sorted(message.keys() - MESSAGE_FIELDS)):
        return f"{beside} stands beside `body`: what a message says stands in its `body`"
    return f"it is nested deeper than {LEVELS} levels"


def check_levels(message: Any) -> None:
    """Raise `TypeError` if files of a run cannot hold it, which have it inside other values."""
    orjson.dumps(reduce(lambda inner, _: [inner], range(_MOST_LEVELS - LEVELS), message))
