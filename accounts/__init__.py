"""People: who may be on a server, what is whose, and who did what.

Nobody with one user imports any of it but `rights` and `people`, which are pure and know no library.
"""
