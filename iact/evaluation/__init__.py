"""Questions with known answers, given to sessions in several ways of working, and the results: `iact eval`.

It is in the package and not in `benchmarks/` because it is for people who installed iact and have an endpoint: it runs
the same sessions that they would run, and needs nothing from the repository.
"""
