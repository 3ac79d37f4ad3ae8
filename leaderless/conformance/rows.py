"""What is tried of each row of section 17 of docs/SPEC.md. It is data: `programs` plays it.

A story is played once as it stands, and then once for each fate of each request of one of its steps, until that
step makes no further request. What a step may answer then is free: the end of the story tells.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from leaderless.core.shape import LOG_FORMAT

NEVER = 1 << 30
OF_A_STORE = ("killed before", "killed after")  # of a store that the program itself writes
LOST_ANSWERS = ("lost after", "late")
LOST = (*OF_A_STORE, "lost before", "lost after", "late", "very late", "throttled", "cut off")
SMALL = {"seal_entries": 2, "segments_per_run": 2, "page_children": 2, "seal_bytes": 65536}
LARGE = "." * 20_000
DEEP: Any = json.loads("[" * 200 + "]" * 200)
VALUES: list[Any] = [
    None, True, 1, 1.0, -0.5, 1e300, "", "ß\u2028😀", [], {}, {"a": [{"b": None}]}, 2**64 - 1, -(2**63),
    {"$bytes": "AAEC"}, {"$json": {"$bytes": "AAEC"}}, {"$json": {"$x": 1}}, {"$a": 1, "$b": 2},
]  # fmt: skip


# What becomes of a request: is it applied, at once or after so many others; is who asked killed; the status of
# the answer, 0: the connection breaks; is half of the answer cut off.
FATES = {
    "killed before": (False, 0, True, 0, False),
    "killed after": (True, 0, True, 0, False),
    "lost before": (False, 0, False, 0, False),
    "lost after": (True, 0, False, 0, False),
    "late": (False, 1, False, 0, False),
    "very late": (False, NEVER, False, 0, False),
    "refused": (False, 0, False, 403, False),
    "throttled": (False, 0, False, 503, False),
    "cut off": (True, 0, False, 200, True),
    "overtaken": (True, 0, False, 200, False),
}


@dataclass
class Sweep:
    """The request `at`, from 0, of a call meets the fate `name`, after `meanwhile`; -1: none does.

    `seen`: requests. `fired`: the one that met it; "": it did not come so far.
    """

    name: str = "overtaken"
    at: int = -1
    meanwhile: Any = None
    seen: int = 0
    fired: str = ""


class Step(NamedTuple):
    """What happens next: lines that are asked at once, beside their `op`.

    `by`: "theirs", the program; "ours", this library beside it; "either", the program if it can; "kit", which
    changes objects, kills the program (`die`), or is another compactor (`rob`).
    `must`: how the program answers, see `MUST`, or the records that it must have read.
    """

    op: str
    lines: Sequence[Mapping[str, Any]] = ({},)
    by: str = "theirs"
    must: str | Sequence[Any] = "done"


# "refused" changes nothing, and for good.
MUST: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "done": lambda answer: "error" not in answer,
    "refused": lambda answer: answer.get("may_have_happened") is False,
    "error": lambda answer: "error" in answer,
    "may": lambda _: True,
}


class Story(NamedTuple):
    """Steps; the one at `swept` meets each of `fates` at each request, before which `meanwhile` happens.

    `shape`: of the log. `objects`: that are there, None: those of a new log. `lawful`: False where the kit
    breaks the log, so that only answers count.
    """

    steps: Sequence[Step]
    fates: Sequence[str] = ()
    swept: int = 0
    meanwhile: Sequence[Step] = ()
    shape: Mapping[str, Any] = SMALL
    objects: Mapping[str, bytes] | None = None
    lawful: bool = True


class RowOfMatrix(NamedTuple):
    """A row of the matrix. `stories`: none where this kit cannot try it, for the reason `why`."""

    rules: str
    holds: str
    stories: Sequence[Story] = ()
    why: str = ""


def rules_of(row: RowOfMatrix) -> set[str]:
    """Each rule of a row, as R20."""
    spans = re.findall(r"R(\d+)(?: to R(\d+))?", row.rules)
    return {f"R{n}" for one, last in spans for n in range(int(one), int(last or one) + 1)}


def append(*values: Any, key: str = "k", times: int = 1, name: Any = None, **given: Any) -> Step:
    """The step that appends a batch, perhaps with a name; `times`: so many at once, of different texts."""
    batches = (
        [[f"{each}.{at}" for each in values] for at in range(times)] if times > 1 else [[*values]]
    )
    line = {"key": key, "name": name} if name else {"key": key}
    return Step("append", [line | {"values": batch} for batch in batches], **given)


def ours(*steps: Step) -> list[Step]:
    """The same steps, by this library."""
    return [step._replace(by="ours") for step in steps]


def texts(name: str, number: int) -> list[Step]:
    """Appends of so many texts that begin so."""
    return [append(f"{name}{at}", key="kj"[at % 2]) for at in range(number)]


def append_if(*values: Any, key: str = "k", must: str = "done", **condition: int) -> Step:
    """The step that appends a batch on a condition: the end that it `expected`, its `token`."""
    return Step("append_if", [{"key": key, "values": [*values]} | condition], must=must)


def close(key: str = "k") -> Step:
    """The step that closes a key."""
    return Step("close", [{"key": key}])


def read(key: str = "k", must: str | Sequence[Any] = "done") -> Step:
    """The step that reads all records of a key."""
    return Step("read", [{"key": key}], must=must)


def put(**given: Any) -> Step:
    """The step by which the kit changes objects: fields and their values; None: there is no object."""
    return Step("put", [given], by="kit")


READ = read()
COMPACT, FENCE, UNFENCE, VACUUM = map(Step, ("compact", "fence", "unfence", "vacuum"))
DIE, AGED, ROBBED = (Step(op, by="kit") for op in ("die", "age", "rob"))
GROUP = {"group": "a/b", "key": "k"}
COMPACTED = (*texts("a", 9), COMPACT._replace(by="either"))  # runs and pages, whoever made them
OVERTAKEN = ("overtaken",)
COMMIT = Step("commit", [GROUP | {"offset": 0}])
MORE = (*texts("more", 5), COMPACT)
NAMED = append("named", name=["daily", 7])

ROWS = (
    RowOfMatrix(
        "R1",
        "no two names are escaped alike; an object of another name is left alone",
        (
            Story([*COMPACTED, AGED, VACUUM]),
            Story(
                [
                    append("a", key=".k"),
                    Step("commit", [{"group": "a/b", "key": ".k", "offset": 0}]),
                ]
            ),
        ),
    ),
    RowOfMatrix(
        "R2, R4, R6 to R11, R49",
        "the forms are read and written as here; what is forbidden is refused",
        (
            Story([append("a"), append("b", key="\u00df" * 513, must="refused")]),
            Story([append("a"), append(DEEP), append([DEEP], must="refused")]),
            Story([append("a"), append(2**64, must="refused"), append("b")]),
            Story(
                [
                    *texts("a", 1),
                    DIE,
                    put(head={"entries": [["x/0", 1, {"k": [0, [{"$new": 1}]]}, {}]]}),
                    READ._replace(must="error"),
                ],
                lawful=False,
            ),
        ),
    ),
    RowOfMatrix(
        "R3, R58",
        "what is senseless is no answer; unknown names do no harm",
        (
            Story([*COMPACTED, put(head={"new": 1}, compacted={"new": 1}), *texts("b", 3), READ]),
            Story([*texts("a", 3), append("b")], ("cut off",), 3),
            Story([append("a"), *ours(append("b")), READ], ("cut off",), 2),
        ),
    ),
    RowOfMatrix(
        "R5, R8, R9",
        "a value comes back as it was, after compaction too",
        (Story([append(*VALUES, LARGE, DEEP), *COMPACTED, append(*VALUES)]),),
    ),
    RowOfMatrix(
        "R12 to R15, R50",
        "files hold what their segments held, whoever dies or is late",
    ),
    RowOfMatrix(
        "R16 to R18",
        "full is full to all; no object outgrows its bound; who cannot share a log says so",
        (
            Story([*texts("a", 7), *ours(append("b"))], shape=SMALL | {"seal_entries": 3}),
            Story(
                [
                    append(*(f"{LARGE[:16000]}{at}" for at in range(40)), must="may"),
                    append("b"),
                    READ,
                ],
                shape=SMALL
                | {"register_bytes": 1 << 20, "run_bytes": 1 << 19, "page_bytes": 1 << 14},
            ),
        ),
    ),
    RowOfMatrix(
        "R19, R37",
        "nothing enters a fenced log, or in another epoch; a definite answer stays true",
        (
            Story(
                [
                    append("a"),
                    *ours(FENCE),
                    append("b", must="refused"),
                    READ,
                    *ours(UNFENCE),
                    append("c"),
                ]
            ),
            Story(
                [append("a"), append("b"), READ],
                (*OVERTAKEN, "late", "very late", "lost after"),
                1,
                ours(FENCE),
            ),
            Story(
                [append("a"), FENCE, FENCE, append("b", must="refused"), UNFENCE, append("c")],
                LOST,
                1,
            ),
        ),
    ),
    RowOfMatrix(
        "R20, R33",
        "a full head is sealed and let go of by two at once; other entries in a segment stop the appender",
        (
            Story(
                [
                    *texts("a", 2),
                    DIE,
                    put(
                        **{
                            "segment/0": {
                                "base": 0,
                                "entries": [["x", 1, {"k": [0, ["other"]]}, {}]],
                            }
                        }
                    ),
                    append("b", must="error"),
                ],
                lawful=False,
            ),
            Story([*texts("a", 4), append("b"), *texts("c", 3)], LOST, 4),
            Story(
                [*texts("a", 4), append("b"), *texts("c", 3)], OVERTAKEN, 4, ours(append("ours"))
            ),
        ),
    ),
    RowOfMatrix(
        "R21, R22, R45",
        "a slow owner does no harm",
        (
            Story(
                [*texts("a", 9), COMPACT._replace(must="may"), *texts("b", 2)],
                OVERTAKEN,
                9,
                [ROBBED],
            ),
        ),
    ),
    RowOfMatrix(
        "R23, R25, R27",
        "one of two creates succeeds; a stale replace conflicts",
        (
            Story([append("a"), append("b")], OVERTAKEN, 0, ours(append("ours"))),
            Story([append("a"), append("b"), append("c")], OVERTAKEN, 1, ours(append("ours"))),
        ),
    ),
    RowOfMatrix(
        "R24, R26, R28",
        "an unclear answer is no conflict, and is not repeated; a refusal is told",
        (
            Story([append("a"), append("b"), append("c"), READ], (*LOST, "refused"), 1),
            Story([append("a"), append(LARGE), append("c"), READ], (*LOST, "refused"), 1),
        ),
    ),
    RowOfMatrix("R29", "only 20 and 22 say what `lin-kv` holds", why="this kit hosts no lin-kv"),
    RowOfMatrix(
        "R30, R38",
        "two implementations share a log while their processes are killed",
        (
            Story(
                [
                    append("a"),
                    DIE,
                    *ours(*texts("b", 3)),
                    append("c"),
                    DIE,
                    append("d"),
                    *ours(append("e")),
                    append("f"),
                ]
            ),
            Story(
                [*texts("a", 3), append("b"), *ours(append("c")), append("d"), append("e")],
                OF_A_STORE,
                3,
            ),
        ),
    ),
    RowOfMatrix(
        "R31, R32, R39",
        "20 appends at once have 20 offsets; one whose answer is lost, or late, is in the log once",
        (
            Story([append("a", times=20), READ]),
            Story([append("a"), append("b"), append("c"), READ], LOST, 1, ours(append("ours"))),
        ),
    ),
    RowOfMatrix(
        "R34, R51",
        "a vacuum beside appends deletes no value that a message refers to",
        (
            Story([append("a"), append(LARGE), READ], OVERTAKEN, 1, [AGED, *ours(VACUUM)]),
            Story(
                [append("a"), *ours(append(LARGE)), VACUUM, append(LARGE + "b"), READ],
                OVERTAKEN,
                2,
                [*ours(append(LARGE + "ours")), AGED],
            ),
        ),
    ),
    RowOfMatrix(
        "R35, R36",
        "an attempt takes along what waits, from the head that is known",
        (Story([append("a"), *ours(append("ours")), append("b", times=8), append("c")]),),
    ),
    RowOfMatrix(
        "R40, R41",
        "a batch that is named, or handed over, is in the log once",
        (
            Story([append("a"), NAMED, *texts("b", 3), NAMED, READ], LOST, 1),
            Story([append("a"), NAMED, *ours(NAMED), READ], OVERTAKEN, 1, ours(NAMED)),
            Story([NAMED, *COMPACTED, NAMED, READ]),
        ),
    ),
    RowOfMatrix(
        "R42 to R44",
        "a reader that is overtaken by seals, compaction and old heads reads all",
        (
            Story(
                [append("a"), *ours(*texts("grew", 5), COMPACT), READ, append("b")],
                OVERTAKEN,
                -2,
                ours(*MORE),
            ),
            Story([*COMPACTED, DIE, READ, append("b")], OVERTAKEN, -2, ours(*MORE)),
            Story(
                [
                    *COMPACTED,
                    DIE,
                    put(**{"run/0-1": None}),
                    READ._replace(must="error"),
                ],
                lawful=False,
            ),
        ),
    ),
    RowOfMatrix(
        "R46", "five deaths in a row stop the task, until it is revived", why="it takes five leases"
    ),
    RowOfMatrix(
        "R47, R48",
        "a compactor that dies after any request: the next one goes on",
        (Story([*texts("a", 9), COMPACT, COMPACT, *ours(COMPACT), *texts("b", 3)], LOST, 9),),
    ),
    RowOfMatrix(
        "R52",
        "a log in or around another one is refused",
        why="the kit has no line that makes a log",
    ),
    RowOfMatrix(
        "R53, R55, R56",
        "a cursor never falls; a key has one live owner, and each member its share",
        (
            Story(
                [*texts("a", 4), COMMIT, COMMIT, Step("consume", [GROUP]), *ours(COMMIT)], LOST, 4
            ),
        ),
    ),
    RowOfMatrix(
        "R54",
        "commits of registers and of entries are one",
        why="no line tells the commits of nodes",
    ),
    RowOfMatrix(
        "R57",
        "another number is refused by name, and nothing is changed",
        (
            Story(
                [
                    *texts("a", 3),
                    put(format={"format": LOG_FORMAT + 1}),
                    DIE,
                    append("b", must="refused"),
                    READ._replace(must="error"),
                ],
                lawful=False,
            ),
            Story(
                [
                    *COMPACTED,
                    put(compacted={"format": LOG_FORMAT + 1}),
                    DIE,
                    READ._replace(must="error"),
                ],
                lawful=False,
            ),
        ),
    ),
    RowOfMatrix(
        "R59, R60",
        "times rise, whatever clocks say; an old log is read, and upgraded",
    ),
    RowOfMatrix(
        "R61",
        "frames are read as what is in them; damaged or too large ones are no answer",
        why="no log of its is compressed",
    ),
    RowOfMatrix(
        "R62",
        "what was buried is redriven once, whoever dies of it",
        why="no line redrives",
    ),
    RowOfMatrix(
        "R63 to R65",
        "conditions hold whoever commits, and a refusal stays true",
        (
            Story(
                [
                    append_if("a", expected=0),
                    append_if("b", expected=0, must="refused"),
                    append_if("b", expected=1, token=5),
                    append_if("c", token=4, must="refused"),
                    *COMPACTED,
                    DIE,
                    append_if("c", token=4, must="refused"),
                    append_if("c", "d", token=5),
                ]
            ),
            Story(
                [
                    append_if("a", key="l", expected=0),
                    close("l"),
                    *COMPACTED,
                    DIE,
                    append("b", key="l", must="refused"),
                    *ours(append("b", key="l", must="refused")),
                    close("l"),
                ]
            ),
            Story([append_if("a", expected=0), append_if("b", expected=1), READ], LOST_ANSWERS, 1),
            Story([append_if("a", expected=0), close(), append("b", must="may")], LOST_ANSWERS, 1),
            *(
                Story([append_if("a", token=1), step, READ], OVERTAKEN, 1, ours(meanwhile))
                for step, meanwhile in (
                    (append_if("b", expected=1), append("ours")),
                    (append_if("b", token=1), append_if("ours", token=2)),
                    (append("b"), close()),
                )
            ),
        ),
    ),
)
