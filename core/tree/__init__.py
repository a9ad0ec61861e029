"""The call tree as data, and the pure fold of a journal's records over it.

Running, resuming, verifying and replaying a session share this room: the same records give the same tree, and
the same contexts, wherever and whenever they are folded. So nothing here knows a clock, chance, a task or a file.
"""
