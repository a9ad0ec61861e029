"""The sql module: SQLite and DuckDB over the files of the workspace."""
