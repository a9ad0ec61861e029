"""Which records this installation wrote: a keyed digest in the header of each.

A journal's own chain shows that nothing was removed or moved, but not who wrote it. Anyone who can write a file can
write a journal, and a journal determines in which directory its agents work, how much they may do, and what is carried
out next. So every appended record carries a seal: the first sixteen hex digits of the HMAC-SHA256 of exactly what the
record's digest covers, without the seal itself. The key is 32 random bytes in the data directory that no agent, module
or client ever sees.

A session is *ours* if every record has a valid seal. Records before its last `adopt` record need none, because that
record, itself sealed, names the SHA-256 of all bytes before it. Every other session is *foreign*: it can be read, and
has no authority (`core.stored.adopt`).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

from iact.core.errors import JournalError

KEY: Final = "seal.key"
"""The name of the key file in a data directory."""
_SIZE: Final = 32
_BLOCK: Final = 64
_DIGITS: Final = 16

MARK: Final = re.compile(rb',"seal":"([0-9a-f]{16})"\} -->\n\Z')
"""How a sealed header line ends."""
MARKED: Final = len(b',"seal":"0123456789abcdef"} -->\n')
"""The length of that end."""
PLAIN_END: Final = b"} -->\n"
"""How a header line ends without a seal."""


class Sealer:
    """Makes seals with one key. Holds only two hashes, started as in RFC 2104."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = key.ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def seal(self, *pieces: bytes | memoryview) -> str:
        """Return the seal of these bytes, concatenated."""
        inner = self._inner.copy()
        for piece in pieces:
            inner.update(piece)

        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.hexdigest()[:_DIGITS]


NOBODY: Final = Sealer(secrets.token_bytes(_SIZE))
"""Used where there is no key: no session belongs to the installation."""


class Seals:
    """The seals of the records read so far, from the first on."""

    __slots__ = ("adopted", "any", "unsealed")

    def __init__(self) -> None:
        self.unsealed = 0
        """The number of the first record after the last adoption that has no valid seal; 0 if there is none."""
        self.any = False
        """Whether any record has a valid seal."""
        self.adopted: tuple[int, str] | None = None
        """The byte before which everything belongs to an adopted session, and the SHA-256 that it must have."""

    def take(self, n: int, *, valid: bool) -> None:
        """Add one more record. `valid`: whether its seal is right."""
        self.any = self.any or valid
        if not valid and not self.unsealed:
            self.unsealed = n

    def adopt(self, offset: int, sha256: str) -> None:
        """Note that the last record, whose seal is right, adopts everything before it."""
        self.unsealed = 0
        self.adopted = (offset, sha256)

    def why_foreign(self, file: Path) -> str:
        """Why the journal is not this installation's, in words; empty if it is. `file`: to read what was adopted."""
        if self.unsealed:
            if self.any:
                return f"record {self.unsealed} was not written by this installation"
            return (
                "it has no seals of this installation: it was made elsewhere, or before seals were kept, or the key "
                "of this data directory was lost or replaced"
            )

        if self.adopted is not None:
            size, sha256 = self.adopted
            if sha256_of_start(file, size) != sha256:
                return "the part that it adopted has changed since"
        return ""


def sha256_of_start(file: Path, size: int) -> str:
    """Return the SHA-256, in hexadecimal digits, of the first `size` bytes of a file."""
    hasher = hashlib.sha256()
    with file.open("rb") as stream:
        while size > 0 and (chunk := stream.read(min(size, 1 << 20))):
            hasher.update(chunk)
            size -= len(chunk)
    return hasher.hexdigest()


# --- the key ----------------------------------------------------------------------------------------------


def open_sealer(data: Path) -> Sealer:
    """Return the sealer of a data directory. Its key is created the first time.

    Raises:
        JournalError: the key can't be created or read, or is invalid.
    """
    try:
        return read_sealer(data) or _make(data)
    except OSError as error:
        raise JournalError(
            f"The key {data / KEY}, which seals sessions, can't be created: {error.strerror}."
        ) from error


def read_sealer(data: Path) -> Sealer | None:
    """Return the sealer of a data directory; None if it has no key, so that no session there is its own.

    Raises:
        JournalError: the key can't be read, or is invalid.
    """
    path = data / KEY
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        what = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise _unreadable(path, str(what)) from error

    try:
        status = os.fstat(descriptor)
        key = b""
        if stat.S_ISREG(status.st_mode):
            key = os.read(descriptor, _SIZE + 1)
        if len(key) != _SIZE:
            raise _unreadable(path, f"it does not hold {_SIZE} bytes")

        others_may_use_it = bool(status.st_mode & 0o077)
        if others_may_use_it and status.st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    return Sealer(key)


def read_key(data: Path) -> bytes:
    """Return the key itself, created the first time, to derive another key from it. Raises as `open_sealer` does."""
    # It exists and is valid now, or this raises.
    open_sealer(data)
    return (data / KEY).read_bytes()


def _unreadable(path: Path, why: str) -> JournalError:
    return JournalError(
        f"The key {path}, which seals sessions, can't be used: {why}. Put the right key back. Or move "
        "the file away: a new key is then created, and existing sessions must be adopted."
    )


def _make(data: Path) -> Sealer:
    """Create the key: whole or not at all, and only once, even if other processes start at this moment."""
    draft = data / f".{KEY}-{secrets.token_hex(8)}"
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.write(descriptor, secrets.token_bytes(_SIZE))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

        # If another process was first, its key is used.
        with contextlib.suppress(FileExistsError):
            os.link(draft, data / KEY)
    finally:
        draft.unlink(missing_ok=True)

    folder = os.open(data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

    sealer = read_sealer(data)
    assert sealer is not None
    return sealer
