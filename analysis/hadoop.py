"""Files wherever Hadoop's FileSystem reaches: a local folder, `hdfs://`, `s3a://`.

Spark reads and writes tables there by itself; this is for the few small files and renames beside them.
Configuration and credentials are those of the Spark session.
"""

import re
from pathlib import Path
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

_SCHEME = re.compile(r"[a-zA-Z][\w+.-]*:/")
LOCAL_SCHEME = "^file:/+"  # Java writes file:/ or file:///, as it happens


def is_local(path: str | Path) -> bool:
    """Whether `path` is one of this machine's own, and not a URI such as `s3a://bucket/runs`."""
    return isinstance(path, Path) or not _SCHEME.match(path)


def location(path: str | Path) -> str:
    """The path as Spark must be told it: a local one stays local even if the default is HDFS.

    Not percent-encoded: Hadoop takes the text after the scheme as it is.
    """
    return f"file://{Path(path).absolute()}" if is_local(path) else str(path).rstrip("/")


def shown_uri() -> Column:
    """Of a scan: the file that a row is from, as `Files.uri` has it."""
    return F.regexp_replace("_metadata.file_path", LOCAL_SCHEME, "file:/")


class Files:
    """The file systems that a session knows. Paths are those that `location` gives."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._configuration = spark._jsc.hadoopConfiguration()

    def uri(self, path: str) -> str:
        """The path as `shown_uri` has it."""
        filesystem, target = self._at(path)
        shown = str(filesystem.makeQualified(target).toUri().toString())  # percent-encoded
        return re.sub(LOCAL_SCHEME, "file:/", shown)

    def changed_ms(self, folder: str) -> dict[str, int]:
        """What is in a folder, by name, with the Unix time of its last change; {} if it is not there."""
        filesystem, target = self._at(folder)
        found = filesystem.listStatus(target) if filesystem.exists(target) else []
        return {status.getPath().getName(): status.getModificationTime() for status in found}

    def read_text(self, path: str) -> str:
        filesystem, target = self._at(path)
        stream = filesystem.open(target)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Make a new file in one step: it is there with all of its text, or not at all."""
        filesystem, target = self._at(path)
        _, draft = self._at(f"{path}.draft")
        filesystem.mkdirs(target.getParent())
        stream = filesystem.create(draft, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if not filesystem.rename(draft, target):
            raise OSError(f"cannot make {path}")

    def exists(self, path: str) -> bool:
        filesystem, target = self._at(path)
        return bool(filesystem.exists(target))

    def move(self, source: str, target: str) -> None:
        """Rename a folder, in place of what is there: one step locally and on HDFS, a copy on object stores."""
        filesystem, from_ = self._at(source)
        _, to = self._at(target)
        filesystem.delete(to, True)
        filesystem.mkdirs(to.getParent())
        if not filesystem.rename(from_, to):
            raise OSError(f"cannot move {source} to {target}")

    def delete(self, path: str) -> None:
        """Remove a file or a folder with all that is in it; nothing happens if it is not there."""
        filesystem, target = self._at(path)
        filesystem.delete(target, True)

    def _at(self, path: str) -> tuple[Any, Any]:
        target = self._jvm.org.apache.hadoop.fs.Path(path)
        return target.getFileSystem(self._configuration), target
