"""Questions with known answers, given to sessions in several ways of working, and what came of it: `iact eval`.

It is in the package, not beside it in `benchmarks/`, since it is for people who installed iact and have an endpoint: it
runs the sessions that they would run, and needs nothing of the repository.
"""
