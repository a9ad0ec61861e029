"""Writes the page's list of the ways of working, `web/static/js/state/ways.js`, from `core/records/ways.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from iact.core.records.ways import ABOUT

LIST: Final = Path(__file__).parents[2] / "web" / "static" / "js" / "state" / "ways.js"

_HEAD: Final = """\
// The ways of working on a message, in the order in which they are offered.
// Written by docs/reference/ways.py from core/records/ways.py; run: python -m docs.reference.generated

import { t } from "../base/language.js";

/** Each way: value, name, description. @type {[string, string, string][]} */
export const WAYS = [
"""


def javascript() -> str:
    """The list, with its texts in the language of the page."""
    rows = [
        f"  [{json.dumps(way)}, t({json.dumps(about.label)}), t({json.dumps(about.help)})],\n"
        for way, about in ABOUT.items()
    ]
    return f"{_HEAD}{''.join(rows)}];\n"
