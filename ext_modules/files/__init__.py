"""The files module: the session's workspace, read, written, edited, searched and compared."""
