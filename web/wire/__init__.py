"""The messages of the websocket: `requests` from a client, `answers` to them, and `news` that the server sends unasked.

Requests are pydantic models, because client input must be checked. Messages from the server are typed dictionaries:
mypy checks each where it is built, and nothing is converted on the way, since thousands of records are sent at once.
`docs/reference/wire.md` and the page's types (`web/static/js/state/wire.d.ts`) are generated from this package.
"""
