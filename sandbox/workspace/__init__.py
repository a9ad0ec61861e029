"""A session's workspace as the core sees it: its versions, kept with git, and what is mounted in it."""
