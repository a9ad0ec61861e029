"""Sets up a machine: virtual environment, container engine, model file, browser for tests.

Why it exists: `make run` has to work on a fresh machine with no other step, and no package of ours
is installed at that moment. So this package uses the standard library alone, starts under any
Python from 3.11 on, and asks each step first whether there is anything to do: a second run only
looks. A step that may not do its work (not root, not Debian) says which command would, and the
others go on.

    python -m iact.setup setup      everything that `make run` needs
    python -m iact.setup test       that, and what the tests need besides
    python -m iact.setup engine     one step alone: environment, engine, git, model, image, browser
"""
