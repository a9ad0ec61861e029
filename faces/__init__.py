"""Protocols for third-party tools: each folder implements one standard as a thin layer on the core's public API.

A face does nothing that a person could not do on the page, so everything passes the same gate, bounds and accounts. A face
is only imported when it is used.
"""
