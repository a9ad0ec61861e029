"""How many tokens a text has, roughly, when no exact count is available.

Budgets must hold for models whose tokenizer we don't have, so the estimate errs on the high side for ordinary text. A
`Calibration` takes the endpoint's reports into account, so that the estimate is close after the first turns. Both are
pure: a replay that folds the recorded usage gets the same numbers.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iact.core.ports import ChatMessage, Usage

MESSAGE_OVERHEAD: Final = 5
"""Tokens that a chat template adds to one message."""

PART_TOKENS: Final = 1100
"""Tokens of an image or a sound. Models count 85 to 1,600 for an image, by its size, which the core does not read."""

CHARACTERS_PER_TOKEN: Final = 16
"""Characters to a token, at most. A reply that is longer than its limit in tokens allows is ended."""

_PROSE: Final = (string.ascii_letters + " ").encode()
_ASCII: Final = bytes(range(128))
_PROSE_PER_TOKEN: Final = 3.6
"""Letters and blanks of a token. English has 4 to 4.5, identifiers and German less."""
_SIGN_TOKENS: Final = 0.75
"""Tokens of a digit, a mark or a line end: often one each, sometimes merged."""
_BYTE_TOKENS: Final = 0.5
"""Tokens of a byte of UTF-8 in other scripts: of a Cyrillic letter 1, of a CJK character 1.5."""
_LEAST_SAMPLE: Final = 50
"""The fewest tokens of a prompt from which the factor is learned."""
_RANGE: Final = (0.25, 4.0)
"""The least and the greatest factor."""


def estimate(text: str) -> int:
    """Estimate the tokens of `text`; 0 only for the empty text."""
    data = text.encode("utf-8", "surrogatepass")
    signs = data.translate(None, _PROSE)
    foreign = len(signs.translate(None, _ASCII))
    ascii_signs = len(signs) - foreign
    prose = len(data) - len(signs)
    return math.ceil(prose / _PROSE_PER_TOKEN + ascii_signs * _SIGN_TOKENS + foreign * _BYTE_TOKENS)


def weight(message: ChatMessage) -> int:
    """Estimate the tokens of one message, without the overhead of the chat template."""
    return estimate(message.content) + PART_TOKENS * len(message.parts)


def estimate_messages(messages: Sequence[ChatMessage]) -> int:
    """Estimate the tokens of a whole context as one text, which is faster than one call for each message."""
    parts = sum([len(message.parts) for message in messages if message.parts])
    text = "".join([message.content for message in messages])
    return estimate(text) + PART_TOKENS * parts + MESSAGE_OVERHEAD * len(messages)


def estimated_usage(messages: Sequence[ChatMessage], written: str) -> Usage:
    """Estimate the usage of a call whose endpoint reported none. `written`: the reply, with its reasoning."""
    return Usage(estimate_messages(messages), 0, estimate(written), estimated=True)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The factor for estimates, learned from reported usage; one per model."""

    factor: float = 1.0
    """The reported tokens for each estimated one."""

    def apply(self, estimated: int) -> int:
        """Return the calibrated count for an uncalibrated estimate."""
        return math.ceil(estimated * self.factor)

    def observe(self, estimated: int, reported: int) -> Calibration:
        """Take into account one report for a prompt whose uncalibrated estimate was `estimated`.

        A factor that is too low is corrected at once, one that is too high slowly. Small samples are ignored.
        """
        if estimated < _LEAST_SAMPLE or reported < _LEAST_SAMPLE:
            return self

        least, greatest = _RANGE
        seen = min(max(reported / estimated, least), greatest)
        if seen > self.factor:
            return Calibration(seen)
        return Calibration(0.7 * self.factor + 0.3 * seen)
