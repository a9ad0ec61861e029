"""What a session needs to be at home on more than one machine. Nobody with one machine imports any of it.

The journal alone keeps a session safe (`core.journal.fence`); this room has the stores that hosts share.
"""
