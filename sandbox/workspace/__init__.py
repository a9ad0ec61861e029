"""A session's workspace as the core sees it: its versions, kept with git, and the mounts in it."""
