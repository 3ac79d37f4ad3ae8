"""JUnit XML of runs, for continuous integration: a test case for each run.

Of the many forms of this file it has the one that all readers know: `failure` for a run that ended in another
verdict than it should, `error` for one without a verdict, `skipped` for what does not count.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

import click

from runs.sweeps import CRASHED, UNKNOWN, Row

FAILURE, ERROR, SKIPPED = "failure", "error", "skipped"
FILE = click.Path(dir_okay=False, path_type=Path)
HELP = "Write a JUnit XML file with a test case for each run (docs/ci.md)."
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """A run. `problem` is the element that says that it did not go well, None if it did.

    `message` is one line, `details` what the run printed and how to repeat it.
    """

    name: str
    seconds: float = 0.0
    problem: str | None = None
    message: str = ""
    details: str = ""


def case_of(name: str, row: Row | None, details: str) -> Case:
    """The test case of a run of a sweep; without a row it was not made."""
    if row is None:
        return Case(name, problem=ERROR, message="not run")
    if row.as_expected:
        return Case(name, row.seconds)
    problem = ERROR if row.verdict in (UNKNOWN, CRASHED) else FAILURE
    found = f": {', '.join(row.anomalies)}" if row.anomalies else ""
    return Case(name, row.seconds, problem, f"{row.verdict}{found}", details)


def write(file: Path, suite: str, cases: Sequence[Case]) -> None:
    """Write the cases as one suite (`click.FileError` when the file cannot be written)."""
    counts = dict.fromkeys((FAILURE, ERROR, SKIPPED), 0)
    root = Element("testsuites")
    group = SubElement(root, "testsuite", name=_text(suite), tests=str(len(cases)))
    for case in cases:
        element = SubElement(
            group,
            "testcase",
            classname=_text(suite),
            name=_text(case.name),
            time=f"{case.seconds:.2f}",
        )
        if case.problem:
            counts[case.problem] += 1
            told = SubElement(element, case.problem, message=_text(case.message))
            told.text = _text(case.details)
    group.set("failures", str(counts[FAILURE]))
    group.set("errors", str(counts[ERROR]))
    group.set("skipped", str(counts[SKIPPED]))
    group.set("time", f"{sum(case.seconds for case in cases):.2f}")
    indent(root)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise click.FileError(str(file), error.strerror) from None


def _text(text: str) -> str:
    """The text without the characters that XML does not have, such as those that colour a terminal."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
