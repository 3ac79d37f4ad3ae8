"""Which Python Spark's workers run."""

import os
import shutil
import sys
from pathlib import Path

from pyspark import SparkContext

NAME = "PYSPARK_PYTHON"
DEFAULT = "python3"  # what PySpark takes from the path where `NAME` is not set


def use_this_python() -> None:
    """Let the workers on this machine run the Python that runs here, unless the user named another.

    A program that is started as `.venv/bin/python program.py` has an environment that is on no path. Spark's
    workers would run the `python3` of the path, which lacks our packages. A session reads the variable when it
    starts. A cluster that is connected already has its own places of Python.
    """
    if NAME in os.environ or _is_on_path():
        return
    context = SparkContext._active_spark_context
    if context is None:
        os.environ[NAME] = sys.executable
    elif (context.master or "").startswith("local"):
        context.pythonExec = sys.executable


def _is_on_path() -> bool:
    found = shutil.which(DEFAULT)
    return found is not None and Path(found).parent == Path(sys.executable).parent
