"""What a session needs to run on more than one machine. A single machine imports none of it.

The journal alone keeps a session safe (`core.journal.fence`); this package has the stores that hosts share.
"""
