"""The messages of the websocket, all in one place: `requests` of a client, `answers` to them, and `news` that comes unasked.

Requests are pydantic models, since what a client sends must be checked. What the server sends is typed dictionaries: mypy
holds each to its type where it is made, and nothing is converted on the way, as thousands of records go out at once.
`docs/reference/wire.md` and the page's types (`web/static/js/state/wire.d.ts`) are generated from here.
"""
