"""The Model Context Protocol: sessions as a tool, tasks and resources of an MCP server.

Revision 2026-07-28 and, for older clients, those with a handshake. `server` is the server without a transport.
"""
