"""Names of objects: those that a log writes, and names that users chose as one segment of a key.

Only an object that a log can have written is deleted, or read as a part of it: another log, or another program,
may keep its own in the same folder. A new kind of object needs its form here (`is_own`).

A segment lets no name escape from a folder, and makes no two names alike.
ASCII letters, digits, `_`, `-` and `.` stand for themselves. Every other byte of the UTF-8 text is `=` and two
hexadecimal digits, a leading dot too, and the empty name is a lone `=`. So `..` cannot climb, `a/b` is
another name than `a%2Fb` and `a=2Fb`, and no layer that escapes `%` for a URL can mix them up.
"""

import re
import string

FORMAT = "format"  # the object that says which version of the library made a log
_PLAIN = frozenset((string.ascii_letters + string.digits + "_-.").encode())
SEGMENT_BYTES_MAX = 400  # two of them and our own names stay below the 1024 bytes of a key on S3

COPIES = "named/copy/"  # begins the writers of copies (`leaderless.upkeep.copying`)
PEERS = "peer"  # the folder of what programs prove that they may hand over
TOPICS = "topic"  # the folder of other logs, which have names of their own
FILE_FOLDERS = ("run", "merged", "starts")
_NUMBER = "(?:0|[1-9][0-9]{0,18})"
_SPAN = f"{_NUMBER}-{_NUMBER}"
_TOKEN = "[0-9a-f]{16}"
_PROCESS = f"{_NUMBER}-[0-9a-f]{{24}}"  # of `leaderless.hosting.surroundings`
_CHOSEN = r"([\w.=-]+)"  # by users
_RUN_FILE = re.compile(rf"run/({_NUMBER})-({_NUMBER})\.parquet")
_FILES = rf"run/{_SPAN}\.parquet|merged/{_SPAN}-{_TOKEN}\.parquet|starts/{_TOKEN}\.json"
_FILE = re.compile(_FILES)
_DATA = re.compile(f"data/{_NUMBER}-{_PROCESS}")
_OWN = re.compile(
    "|".join(
        (
            f"{FORMAT}|head|compacted|table|clock|claim/compaction|claim/table",
            f"segment/{_NUMBER}|run/{_SPAN}|page/{_NUMBER}/{_SPAN}/{_NUMBER}-of-{_NUMBER}",
            f"{_DATA.pattern}|{PEERS}/{_NUMBER}-{_PROCESS}|committed/{_NUMBER}|probe/{_TOKEN}",
            f"group/{_CHOSEN}/cursor/{_CHOSEN}|group/{_CHOSEN}/members",
            f"sink/{_CHOSEN}/[0-9]{{20}}/(?:plan|[0-9]+-[a-z0-9-]+/[0-9]{{6,}})",
            f"{_FILES}|(?:{'|'.join(FILE_FOLDERS)})/unfinished-{_TOKEN}",
        )
    ),
    re.ASCII,
)


def is_own(key: str) -> bool:
    """Whether a log can have written an object, or a file, of this name."""
    found = _OWN.fullmatch(key)
    return found is not None and all(map(_is_segment, filter(None, found.groups())))


def is_file(path: str) -> bool:
    """Whether a log can have written a whole file of this name."""
    return _FILE.fullmatch(path) is not None


def span_of_run(path: str) -> tuple[int, int] | None:
    """The first and the last segment of a run, if this is the name of its file."""
    found = _RUN_FILE.fullmatch(path)
    return found and (int(found[1]), int(found[2]))


def is_data(key: str) -> bool:
    """Whether a log can have written a large value in an object of this name."""
    return _DATA.fullmatch(key) is not None


def path_segment(name: str) -> str:
    """The segment for a name. Raises `ValueError` for a name that no key has room for, or that is no text."""
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"a name must be text that UTF-8 can write, not {name!r}") from None
    segment = "".join(chr(byte) if byte in _PLAIN else f"={byte:02X}" for byte in encoded)
    if segment.startswith("."):
        segment = f"=2E{segment[1:]}"
    if len(segment) > SEGMENT_BYTES_MAX:
        raise ValueError(
            f"the name {name[:40]!r}... takes {len(segment)} bytes in a key, of at most {SEGMENT_BYTES_MAX}"
        )
    return segment or "="


def name_of(segment: str) -> str:
    """The name of a segment that `path_segment` made. Raises `ValueError` for any other."""
    first, *rest = segment.split("=") if segment != "=" else [""]
    try:
        parts = [bytes.fromhex(part[:2]) + part[2:].encode() for part in rest]
        name = (first.encode() + b"".join(parts)).decode()
        if path_segment(name) == segment:
            return name
    except ValueError:
        pass
    raise ValueError(f"{segment!r} is no escaped name")


def _is_segment(segment: str) -> bool:
    try:
        name_of(segment)
    except ValueError:
        return False
    return True
