"""The web package: one port with the page, its assets and a websocket that watches and steers sessions.

It holds no state of a session: everything it sends is a journal record, rendered, or transient news
(`core.views.events`), and a client's position is a record number.
"""
