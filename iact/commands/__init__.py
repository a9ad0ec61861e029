"""What the commands do: one function per command, which prints and gives the exit status."""
