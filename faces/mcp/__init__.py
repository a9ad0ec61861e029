"""The Model Context Protocol: sessions as a tool, tasks and resources of an MCP server.

Supports revision 2026-07-28 and, for older clients, the revisions with a handshake. `server` is the server without a
transport.
"""
