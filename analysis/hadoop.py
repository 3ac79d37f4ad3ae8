"""Files wherever Hadoop's FileSystem reaches: a local folder, `hdfs://`, `s3a://`.

Spark reads and writes tables there by itself; this is for the few small files beside them.
Configuration and credentials are those of the Spark session.
"""

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_SCHEME = re.compile(r"[a-zA-Z][\w+.-]*:/")


def is_local(path: str | Path) -> bool:
    """Whether `path` is one of this machine's own, and not a URI such as `s3a://bucket/runs`."""
    return isinstance(path, Path) or not _SCHEME.match(path)


def location(path: str | Path) -> str:
    """The path as Spark must be told it: a local one stays local even if the default is HDFS.

    Not percent-encoded: Hadoop takes the text after the scheme as it is.
    """
    return f"file://{Path(path).absolute()}" if is_local(path) else str(path).rstrip("/")


class Files:
    """The file systems that a session knows. Paths are those that `location` gives."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._configuration = spark._jsc.hadoopConfiguration()

    def found(self, pattern: str) -> list[tuple[str, int]]:
        """The paths that fit a pattern with `*`, with the Unix time of their last change in ms."""
        filesystem, target = self._at(pattern)
        found = filesystem.globStatus(target) or ()
        return [(str(each.getPath()), each.getModificationTime()) for each in found]

    def read_text(self, path: str) -> str:
        filesystem, target = self._at(path)
        stream = filesystem.open(target)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        """Write a small file."""
        filesystem, target = self._at(path)
        stream = filesystem.create(target, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def exists(self, path: str) -> bool:
        filesystem, target = self._at(path)
        return bool(filesystem.exists(target))

    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it."""
        filesystem, target = self._at(path)
        filesystem.mkdirs(target)

    def delete(self, path: str) -> None:
        """Remove a file or a folder with all that is in it; nothing happens if it is not there."""
        filesystem, target = self._at(path)
        filesystem.delete(target, True)

    def _at(self, path: str) -> tuple[Any, Any]:
        target = self._jvm.org.apache.hadoop.fs.Path(path)
        return target.getFileSystem(self._configuration), target
