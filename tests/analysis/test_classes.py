"""Spark starts with an archive of its classes, with a damaged one, and from a folder with a space."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.slow]
START = """
import sys
from pathlib import Path
from analysis import spark
spark.CLASSES = Path(sys.argv[1])
session = spark.start("local[1]", brief=True)
print(session.sparkContext.getConf().get("spark.driver.extraJavaOptions"))
session.stop()
"""


def test_a_damaged_archive_is_passed_over(tmp_path: Path) -> None:
    archive = tmp_path / "a folder" / "classes.jsa"
    archive.parent.mkdir()
    archive.write_bytes(b"not an archive")
    started = [sys.executable, "-c", START, str(archive)]
    done = subprocess.run(started, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    [options] = done.stdout.splitlines()
    assert options.endswith(f"'-XX:SharedArchiveFile={archive}'")
