"""What went wrong at a model endpoint, in words for a person, and whether trying again makes sense.

Pure: an HTTP status, a body and headers go in, an `AttemptFailure` comes out. What an endpoint says about an error is
untrusted text that ends up on screens and in journals. So it is cleaned, shortened and stripped of keys here, in the
one place that quotes it.
"""

from __future__ import annotations

import email.utils
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Final, Literal
from urllib.parse import urlsplit

from iact.core.characters import HIDDEN
from iact.core.errors import (
    ModelError,
    ModelFault,
    ModelGarbled,
    ModelOnlyThought,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
    UsageError,
)
from iact.core.models.stated_limits import TooLong, too_long

_WORDS_LIMIT: Final = 200
_SECRET_LENGTH: Final = 4  # a shorter "key" is a placeholder, and could be part of any word
_SPACE: Final = re.compile(r"\s+")
_KEYS: Final = re.compile(r"\b(?:[sp]k-|Bearer )[\w*.\-]{6,}", re.IGNORECASE)
_NO_CREDIT: Final = re.compile(
    r"insufficient_quota|exceeded your current quota|billing|credit", re.IGNORECASE
)


Again = Literal["no", "once", "few", "yes"]
"""Whether another attempt makes sense. "once": waiting rarely cures it. "few": it may pass. "yes": it is what an
endpoint looks like that is being restarted, so it is worth the whole patience."""

_RESTARTING: Final = frozenset({429, 502, 503, 504, 529})
"""HTTP statuses of servers that are starting or overloaded, and of proxies in front of them."""


class ContextTooLong(ModelRefused):
    """The endpoint says that the messages do not fit into the model's context window."""

    fault: ClassVar[ModelFault] = "too_long"


@dataclass(frozen=True, slots=True)
class AttemptFailure:
    """Why one attempt brought no reply."""

    kind: type[ModelError]

    why: str
    """Continues "The model endpoint URL …"."""

    remedy: str
    """Continues it after a semicolon."""

    again: Again = "yes"

    after: float | None = None
    """Seconds that the endpoint asked us to wait."""

    limited: bool = False
    """Whether the endpoint's rate limit was exceeded."""

    too_long: TooLong | None = None
    """What the endpoint says about its window, if the request was too long for it."""

    def error(self, endpoint: str, attempts: int) -> ModelError:
        """The error to raise when this was the last of `attempts`."""
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        return self.kind(f"The model endpoint {endpoint} {self.why}{tried}; {self.remedy}.")


@dataclass(frozen=True, slots=True)
class Retries:
    """When to try again. The waits grow: 0.5, 1, 2, 4, 8, 16, 30, 30, 30 seconds, over two minutes in all.

    A server that loads its model again after a crash or an update needs about that long. To each wait up to a quarter
    is added at random, so that many agents don't come back at the same moment.
    """

    attempts: int = 10
    """Attempts in total for what an endpoint that restarts looks like."""

    few: int = 5
    """Attempts in total for other failures that may pass."""

    seconds: float = 300.0
    """No attempt begins later than this after the endpoint's last sign of life."""

    base: float = 0.5
    """The first wait; each one after it is twice as long."""

    cap: float = 30.0
    """The longest of these waits, before its random part."""

    longest: float = 60.0
    """The longest wait that an endpoint may ask for (Retry-After)."""

    def limit(self, failure: AttemptFailure) -> int:
        """How many attempts there are in total if they fail like this."""
        limits = {"no": 1, "once": 2, "few": self.few, "yes": self.attempts}
        return min(limits[failure.again], self.attempts)

    def wait(
        self, failure: AttemptFailure, *, attempt: int, elapsed: float, rng: random.Random
    ) -> float | None:
        """Seconds to wait after failed attempt number `attempt`; None to give up."""
        if attempt >= self.limit(failure):
            return None

        backoff = min(self.cap, self.base * 2.0 ** (attempt - 1)) * (1 + rng.random() / 4)
        delay = max(backoff, min(failure.after or 0.0, self.longest))
        return delay if elapsed + delay <= self.seconds else None


def endpoint_name(base_url: str) -> str:
    """`base_url` in a form that may be shown: without user, password, query and fragment.

    Raises:
        UsageError: it is not an http or https address.
    """
    host: str | None = None
    port: int | None = None
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError(
            f"OPENAI_BASE_URL must be an http or https address such as http://127.0.0.1:8080/v1, not {base_url[:80]!r}."
        )

    shown = f"[{host}]" if ":" in host else host
    if port:
        shown = f"{shown}:{port}"
    return f"{parts.scheme}://{shown}{parts.path.rstrip('/')}"


def words(text: str, secret: str | None = None) -> str:
    """What an endpoint said, fit to be quoted: one line, printable, short, without keys."""
    if text.lstrip()[:1] == "<":
        return "an HTML page"

    if secret and len(secret) >= _SECRET_LENGTH:
        text = text.replace(secret, "…")
    line = _SPACE.sub(" ", HIDDEN.sub(" ", text))
    line = _KEYS.sub("…", line).strip().rstrip(".")
    return line if len(line) <= _WORDS_LIMIT else line[: _WORDS_LIMIT - 1] + "…"


def message_of(body: object) -> str:
    """The relevant text of an error body: `error.message`, `message`, `detail`, or all of it."""
    if isinstance(body, Mapping):
        for name in ("error", "message", "detail"):
            if body.get(name):
                return message_of(body[name])
        return ""
    return "" if body is None else str(body)


def codes_of(body: object) -> str:
    """`code` and `type` of an error body, to be searched for known codes."""
    if isinstance(body, Mapping):
        inner = body.get("error")
        source = inner if isinstance(inner, Mapping) else body
        return f"{source.get('code')} {source.get('type')}"
    return ""


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the endpoint asks us to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None

    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None

    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


def from_status(
    status: int, body: object, headers: Mapping[str, str], *, model: str, now: datetime, secret: str | None
) -> AttemptFailure:
    """The failure behind an HTTP error (or an error object in the middle of a stream)."""
    message = message_of(body)
    quote = words(message, secret)
    quoted = f": {quote}" if quote else ""
    marks = f"{codes_of(body)} {message}"

    # Providers tell of an empty account with the status of a rate limit, for which one would wait.
    if status in (402, 429) and _NO_CREDIT.search(marks):
        why = f"says that the account has no credit{quoted}"
        return AttemptFailure(ModelRefused, why, "check its billing page", again="no")

    about_window = _too_long(status, marks, body)
    if about_window is not None:
        why = f"says that the context is too long{quoted}"
        remedy = "set IACT_CONTEXT to the context size of the model"
        return AttemptFailure(ContextTooLong, why, remedy, again="no", too_long=about_window)

    if status in (408, 409, 429) or status >= 500:
        return _for_now(status, quoted, retry_after(headers, now))
    return _refused(status, quoted, model)


def _too_long(status: int, marks: str, body: object) -> TooLong | None:
    """What a refusal says about the window; None if it is about something else."""
    if status == 413:
        return too_long(marks, body) or TooLong()
    if status in (400, 422):
        return too_long(marks, body)
    if status < 500:
        return None

    # llama.cpp called it a fault of its own at first, and gateways do so with the refusals of others. A fault that only
    # mentions a context names no two numbers.
    stated = too_long(marks, body)
    is_exact = stated is not None and stated.window is not None and stated.prompt is not None
    return stated if is_exact or "exceed_context" in marks else None


def _for_now(status: int, quoted: str, after: float | None) -> AttemptFailure:
    """A refusal that may pass."""
    kind: type[ModelError] = ModelUnreachable if status == 408 else ModelOverloaded
    why = f"answers HTTP {status}{quoted}"
    remedy = "it is busy or broken for now, so try again later or choose another one"
    again: Again = "yes" if status in _RESTARTING else "few"
    return AttemptFailure(kind, why, remedy, again=again, after=after, limited=status == 429)


def _refused(status: int, quoted: str, model: str) -> AttemptFailure:
    """A refusal that lasts until a person changes something."""
    if status in (401, 403):
        why = f"does not accept the API key (HTTP {status}{quoted})"
        remedy = "check OPENAI_API_KEY"
    elif status == 404:
        why = f"does not know the model {model!r} or this address (HTTP 404{quoted})"
        remedy = "check IACT_MODEL and OPENAI_BASE_URL"
    else:
        why = f"refuses the request (HTTP {status}{quoted})"
        remedy = "check IACT_MODEL and OPENAI_BASE_URL"
    return AttemptFailure(ModelRefused, why, remedy, again="no")


def unreachable(why: str, *, again: Again = "yes") -> AttemptFailure:
    """No connection, or no answer."""
    return AttemptFailure(
        ModelUnreachable, why, "check that it runs and that OPENAI_BASE_URL is right", again
    )


def garbled(what: str) -> AttemptFailure:
    """An answer that does not follow the protocol."""
    remedy = "check that OPENAI_BASE_URL is the address of an OpenAI-compatible API (it often ends in /v1)"
    return AttemptFailure(
        ModelGarbled, f"did not answer in the OpenAI protocol ({what})", remedy, again="once"
    )


def empty() -> AttemptFailure:
    """A reply without any text."""
    return AttemptFailure(
        ModelGarbled, "sent an empty reply", "try again, or choose another model", again="once"
    )


def only_thought(*, cut_off: bool) -> AttemptFailure:
    """Reasoning, and no reply after it. `cut_off`: the length limit was reached.

    The same request is not sent again: anyone who asked can ask for the reply.
    """
    why = "reached the length limit before any text" if cut_off else "sent only its reasoning, and no reply"
    return AttemptFailure(ModelOnlyThought, why, "try again, or choose another model", again="no")


def cut(text: str, *, again: Again = "yes") -> AttemptFailure:
    """A stream that ended before the reply did."""
    remedy = "check the connection to it"
    return AttemptFailure(ModelUnreachable, f"broke off in the middle of a reply ({text})", remedy, again)
