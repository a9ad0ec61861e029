"""Sets up a machine: virtual environment, container engine, model file, browser for tests.

Why it exists: `make run` must work on a fresh machine without any other step, before any package is
installed. So this package uses only the standard library, runs under any Python from 3.11 on, and
first checks for each step whether there is anything to do: a second run changes nothing. A step that
can't do its work (not root, not Debian) prints the command that would, and the other steps continue.

    python -m iact.setup setup      everything that `make run` needs
    python -m iact.setup test       the same, and everything that the tests need
    python -m iact.setup engine     a single step: environment, engine, git, model, image, browser
"""
