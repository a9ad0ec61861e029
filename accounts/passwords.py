"""Passwords as people choose them: stored by argon2, which makes each guess cost time and memory."""

from __future__ import annotations

from threading import BoundedSemaphore
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from iact.core.errors import UsageError

SHORTEST: Final = 10
LONGEST: Final = 256
_HASHER: Final = PasswordHasher()
_AT_ONCE: Final = BoundedSemaphore(2)
"""Each takes 64 MiB for a moment: whoever tries many at once waits in line."""

_NOBODY: Final = _HASHER.hash("a password that nobody has")


def hashed(password: str) -> str:
    """What is stored of a password.

    Raises:
        UsageError: it is too short, or too long.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise UsageError(
            f"A password has at least {SHORTEST} characters, and at most {LONGEST}. Choose another one."
        )
    with _AT_ONCE:
        return _HASHER.hash(password)


def matches(stored: str | None, password: str) -> bool:
    """Whether it is the password. Where none is stored, it takes as long, so that nobody can tell who has an account."""
    try:
        with _AT_ONCE:
            return _HASHER.verify(stored or _NOBODY, password[: LONGEST + 1]) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


def outdated(stored: str) -> bool:
    """Whether it was stored with less effort than is usual now."""
    return _HASHER.check_needs_rehash(stored)
