"""The shell module: bash and Python in the sandbox."""
