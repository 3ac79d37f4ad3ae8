"""JSON Schema for the objects of a log, leaderless/conformance/schemas.json, from the types that decode them.

    python -m docs.schemas

An object that holds the objects of a log on a store by their names fits it. It is of draft 4, to which `1.0` is
no integer. It cannot say what is counted in bytes or levels, nor that an object has a name twice.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from leaderless.core.claims import Claim
from leaderless.core.coordination import COUNT_END, Json
from leaderless.core.decoding import KEY_BYTES_MAX
from leaderless.core.headlog.commits import Committed
from leaderless.core.headlog.index import Index, Page
from leaderless.core.headlog.records import FENCED, OPEN, Run, Segment
from leaderless.core.messages import Block, Entry, Heading, Offsets
from leaderless.core.shape import LOG_FORMAT, NAMES, Compression, Runs, Shape
from leaderless.groups.cursors import Cursor
from leaderless.groups.members import Roster
from leaderless.table.manifest import Manifest
from leaderless.upkeep.staged import Plan

FILE = Path(__file__).parents[1] / "leaderless/conformance/schemas.json"
Schema = dict[str, Any]
VALUE, TEXT = {"$ref": "#/definitions/value"}, {"type": "string"}
NUMBER, SPAN = "(?:0|[1-9][0-9]*)", "(?:0|[1-9][0-9]*)-(?:0|[1-9][0-9]*)"
DATA = f"{SPAN}-[0-9a-f]{{24}}"
BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
COUNT = {"type": "integer", "minimum": 0, "maximum": COUNT_END - 1}
SIMPLE: dict[Any, Schema] = {
    int: COUNT,
    str: TEXT,
    bool: {"type": "boolean"},
    float: {"type": "number"},
    Json: {"$ref": "#/definitions/message"},
    Runs: {"enum": [*get_args(Runs)]},
    Compression: {"enum": ["zstd"]},
}


def schema_of(kind: Any) -> Schema:
    """Of a field, or of a place in a list, of this type; see `leaderless.core.decoding.decoder`."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in SIMPLE:
        return SIMPLE[kind]
    if origin is UnionType:  # with None
        return {"anyOf": [schema_of(parts[0]), {"type": "null"}]}
    if origin is list or ... in parts:
        return {"type": "array", "items": schema_of(parts[0])}
    if origin in (dict, Mapping):
        return by_name(schema_of(parts[1]))
    places = [schema_of(of) for of in parts or kind.__annotations__.values()]
    if kind == Block:
        places[1] = {**places[1], "minItems": 1}
    if kind == Entry:  # the time may be left out
        return row([*places[:4], COUNT]) | {"minItems": 4}
    return row(places)


def row(places: list[Schema]) -> Schema:
    """Of a list with these places."""
    return {"type": "array", "items": places, "minItems": len(places), "maxItems": len(places)}


SHAPE = {
    name: SIMPLE[of] | {"minimum": 1} for name, of in Shape.__annotations__.items() if name in NAMES
}
SIMPLE[Shape] = row([*SHAPE.values()]) | {"minItems": len(SHAPE) - 1}  # the last may be left out


def by_name(schema: Schema, pattern: str = f"^[\\s\\S]{{0,{KEY_BYTES_MAX}}}$") -> Schema:
    """Of an object whose names have this pattern."""
    return {"type": "object", "patternProperties": {pattern: schema}, "additionalProperties": False}


def having(**fields: Schema) -> Schema:
    """Of an object with these fields, and perhaps others."""
    return {"type": "object", "required": [*fields], "properties": fields}


def record(kind: Any, **more: Schema) -> Schema:
    """Of an object with the fields of a type, and more."""
    own = {name: schema_of(of) for name, of in kind.__annotations__.items() if name != "rest"}
    return having(**own | more)


def one_name(pattern: str, schema: Schema) -> Schema:
    """Of an object with one name, which has this pattern."""
    return by_name(schema, pattern) | {"minProperties": 1, "maxProperties": 1}


SPECIAL = one_name("^\\$", {})
MESSAGES = [
    {"allOf": [VALUE, {"not": SPECIAL}]},
    one_name("^\\$bytes$", TEXT | {"pattern": BASE64}),
    one_name(
        "^\\$data$", row([TEXT | {"pattern": f"^{DATA}$"}, COUNT, {"enum": ["json", "bytes"]}])
    ),
    one_name("^\\$json$", {"allOf": [VALUE, SPECIAL]}),
]
HEADERS = {"type": "object", "additionalProperties": TEXT, "minProperties": 1}
MESSAGES += [one_name("^\\$headers$", row([HEADERS, {"anyOf": MESSAGES[:]}]))]
VALUES = [
    {"type": ["null", "boolean", "string"]},
    {"type": "integer", "minimum": -COUNT_END, "maximum": 2 * COUNT_END - 1},
    {"type": "number", "not": {"type": "integer"}},
    {"type": "array", "items": VALUE},
    {"type": "object", "additionalProperties": VALUE},
]


def schemas() -> Schema:
    """What the file holds."""
    form, parts = {"enum": [LOG_FORMAT]}, {"type": "array", "items": TEXT | {"pattern": "^sink/"}}
    run, cursor, shape = record(Run), record(Cursor), having(**SHAPE)
    for each, name in (run, "times"), (cursor, "cause"), (shape, "compression"):
        each["required"].remove(name)
    objects = {
        "format": having(format=form, shape=shape | {"additionalProperties": False}),
        "head": record(Heading, state={"enum": [OPEN, FENCED]}, entries=schema_of(list[Entry])),
        f"segment/{NUMBER}": {"anyOf": [having(deleted={"enum": [True]}), record(Segment)]},
        f"run/{SPAN}": run,
        f"page/{NUMBER}/{SPAN}/{NUMBER}-of-{NUMBER}": record(Page),
        "compacted": record(Index, format=form),
        "claim/(?:compaction|table)": record(Claim, epoch=COUNT | {"minimum": 1}),
        f"committed/{NUMBER}": record(Committed, format=form),
        "group/[^/]+/cursor/[^/]+": cursor,
        "group/[^/]+/members": record(Roster),
        "table": record(Manifest, format=form),
        "starts/[0-9a-f]{16}\\.json": schema_of(Offsets),
        f"peer/{DATA}": having(sha256=TEXT | {"pattern": "^[0-9a-f]{64}$"}),
        "sink/[^/]+/[0-9]{20}/plan": {
            "anyOf": [record(Plan, format=form, parts=parts), having(format=form, condemned=parts)]
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "patternProperties": {f"^{pattern}$": schema for pattern, schema in objects.items()},
        "additionalProperties": False,
        "definitions": {"message": {"anyOf": MESSAGES}, "value": {"anyOf": VALUES}},
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(schemas(), indent=1) + "\n")
