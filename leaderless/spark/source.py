"""The data source `leaderless`, as Spark finds it: `spark.dataSource.register(LeaderlessDataSource)`."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from leaderless.spark.encoding import require_columns
from leaderless.spark.settings import place_in
from leaderless.spark.sink import BatchSink, StreamSink, Target, target_of


class LeaderlessDataSource(DataSource):
    """A log as a table. The options stand in docs/table-in-spark.md."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "leaderless"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A sink for a frame."""
        return BatchSink(self._target(schema, overwrite), self.options.get("name"))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """A sink for a stream."""
        return StreamSink(self._target(schema, overwrite))

    def _target(self, schema: StructType, overwrite: bool) -> Target:
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        require_columns(schema.names, types)
        return target_of(place_in(self.options), self.options.get("values"), overwrite=overwrite)
