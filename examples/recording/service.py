"""A question leads to a small service with a database. Its tests find a fault, and then its user opens it.

Only the agent's work is recorded, not what the user typed into the service.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from iact.examples.recording.stage import performed
from tests.endpoint import Request

QUESTION: Final = (
    "Five of us water the plants here, and they are watered twice or not at all. Could we have a small page where we tick "
    "off what was watered, and see when it was last done? Please test it before I open it."
)

WRITE: Final = '''\
A page, a form and one table: Python's own library has all of it. The tests ask the service as a browser would, on a data base
of their own.

```files.write path=service.py
"""Which plant was watered when: a WSGI application with an SQLite data base."""

import html
import os
import sqlite3
from contextlib import closing
from urllib.parse import parse_qs

DATABASE = os.environ.get("WATERED", "/tmp/watered.sqlite")
TABLE = "CREATE TABLE IF NOT EXISTS watered (plant TEXT NOT NULL, at TEXT NOT NULL DEFAULT (datetime('now')))"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Watered</title>
<style>body {{ font: 1rem system-ui; max-width: 30rem; margin: 2rem auto }} td {{ padding-right: 1rem }}</style>
<h1>Watered</h1>
<form method="post"><label>Plant <input name="plant" required></label> <button>Watered now</button></form>
<table>{}</table></html>"""
ROW = "<tr><td>{}</td><td>{} times</td><td>last {} UTC</td></tr>"


def app(environ, start_response):
    with closing(sqlite3.connect(DATABASE)) as base, base:
        base.execute(TABLE)
        if environ["REQUEST_METHOD"] == "POST":
            size = int(environ.get("CONTENT_LENGTH") or 0)
            plant = parse_qs(environ["wsgi.input"].read(size).decode()).get("plant", [""])[0].strip()
            if not plant:
                start_response("400 Bad Request", [("Content-Type", "text/plain")])
                return [b"Which plant?"]
            base.execute(f"INSERT INTO watered (plant) VALUES ('{plant}')")
            start_response("303 See Other", [("Location", "/")])
            return [b""]
        rows = base.execute("SELECT plant, count(*), max(at) FROM watered GROUP BY plant ORDER BY max(at)").fetchall()
    told = "".join(ROW.format(html.escape(plant), times, at) for plant, times, at in rows)
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
    return [PAGE.format(told).encode()]
```

```files.write path=test_service.py
import io
import unittest
from urllib.parse import urlencode
from wsgiref.util import setup_testing_defaults

from service import app


def ask(**form):
    """A request as a browser makes it; status and page."""
    body = urlencode(form).encode()
    environ = {"REQUEST_METHOD": "POST" if form else "GET", "CONTENT_LENGTH": str(len(body))}
    environ["wsgi.input"] = io.BytesIO(body)
    setup_testing_defaults(environ)
    told = []
    page = b"".join(app(environ, lambda status, headers: told.append(status[:3])))
    return told[0], page.decode()


class Service(unittest.TestCase):
    def test_what_was_watered_is_counted(self):
        for _ in range(2):
            self.assertEqual(ask(plant="Ivy")[0], "303")
        self.assertIn("<td>Ivy</td><td>2 times</td>", ask()[1])

    def test_any_name_will_do_and_none_is_markup(self):
        ask(plant="Ada's <b>fern</b>")
        self.assertIn("<td>Ada&#x27;s &lt;b&gt;fern&lt;/b&gt;</td><td>1 times</td>", ask()[1])

    def test_a_name_is_needed(self):
        self.assertEqual(ask(plant=" ")[0], "400")
```

```shell.run
rm -f watered.sqlite; WATERED=watered.sqlite python3 -m unittest
```
'''

MEND: Final = """\
Good that I asked: a name with an apostrophe ends the statement, and somebody could write one of their own there. A name belongs
into a parameter.

~~~files.edit path=service.py
<<<<<<<
(f"INSERT INTO watered (plant) VALUES ('{plant}')")
=======
("INSERT INTO watered (plant) VALUES (?)", (plant,))
>>>>>>>
~~~

```shell.run
rm -f watered.sqlite; WATERED=watered.sqlite python3 -m unittest
```

```sql.query database=watered.sqlite
SELECT plant, count(*) AS times, count(at) AS with_a_time FROM watered GROUP BY plant ORDER BY plant
```
"""

READ: Final = """\
All three hold, and the table has what they wrote. What I serve is the file as it was tested.

```files.read path=service.py
```
"""

SERVE: Final = "```app.serve source=$read_1\n```\n"

ANSWER: Final = """\
It is served. Open it on this machine: {address}

- Type a plant and press **Watered now**; the list says how often and when last, the thirstiest first.
- Three tests hold: waterings are counted, any name will do (`Ada's <b>fern</b>` stays what it is), and an empty one is refused.
  The second of them found a hole in my first version, through which a name could have changed the data base.
- What you tick off is in an SQLite file of the running service, and I can't see it. **It ends with this session**, so treat it
  as a trial: `service.py` needs nothing but Python, and on a machine of yours `WATERED` says where its file is.
"""

_STEPS: Final = (WRITE, MEND, READ, SERVE)


def answer(request: Request) -> str:
    """The model's reply, with the address that it was given."""
    if request.turn < len(_STEPS):
        return _STEPS[request.turn]
    found = re.search(r"http://[0-9a-f]{16}\.localhost:\d+/", request.last)
    return ANSWER.format(address=found[0] if found else "(it is not served)")


def play(data: Path) -> Path:
    """Run the scene in the data directory `data`. Returns the session's directory."""
    with performed(data, answer) as person:
        person.say(QUESTION)
        person.answered()
        return person.folder
