"""People: who may use a server, who owns what, and who did what.

A server with one user imports only `rights` and `people`, which are pure and need no library.
"""
