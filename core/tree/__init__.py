"""The call tree as data, and the pure fold of a journal's records over it.

Running, resuming, verifying and replaying a session all use this package. The same records give the same tree and the
same contexts, wherever and whenever they are folded, so no code here uses a clock, randomness, a task or a file.
"""
