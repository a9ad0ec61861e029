"""What other people's tools speak: each folder is one standard, thin, on the core's public API.

A face does nothing that a person could not do on the page, so all that it does passes the same gate, bounds and accounts.
None of them is imported where it is not used.
"""
