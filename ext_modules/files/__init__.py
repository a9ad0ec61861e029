"""The files module: read, write, edit, search and compare files of the session's workspace."""
