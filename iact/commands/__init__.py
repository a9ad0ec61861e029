"""The work of the commands: one function per command, which prints its output and returns the exit status."""
