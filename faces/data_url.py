"""Files and pictures inside a message, as data URLs (RFC 2397)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from iact.core.errors import UsageError

_DATA_URL: Final = re.compile(r"data:([\w.+/-]{1,100})?(?:;[\w=.-]+)*?(;base64)?,(.*)", re.DOTALL)


def read_data_url(url: str, name: str) -> tuple[str, bytes]:
    """Return the media type and content of a data URL. Nothing is fetched. `name`: its name in error messages.

    Raises:
        UsageError: it is another kind of URL, or can't be decoded.
    """
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise UsageError(
            f"{name} has to be a data URL (data:image/png;base64,…): iact fetches no addresses and reads no paths."
        )
    media = found[1] or "application/octet-stream"
    try:
        content = base64.b64decode(found[3], validate=True) if found[2] else unquote_to_bytes(found[3])
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"The content of {name} is no base64.") from error
    return media, content
