"""The log as a table: its runs as Parquet files, and a consistent list of them."""
