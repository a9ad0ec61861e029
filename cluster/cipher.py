"""Encrypts what hosts share of their data directories, with a key derived from the key of their seals.

AES-256-GCM with the name as associated data: without the key, an entry can't be read, changed, or stored under another
name. All hosts of a store share one key of seals already (`SharedJournals.check_key`), so no second key needs to be
distributed; HKDF derives one for this purpose.
"""

from __future__ import annotations

import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from iact.core.errors import JournalError

_NONCE: Final = 12


class HostCipher:
    """Implements `core.journal.documents.Cipher`. `key`: the 32 bytes of the key of seals."""

    def __init__(self, key: bytes) -> None:
        derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"iact: files that hosts share")
        self._cipher = AESGCM(derivation.derive(key))

    def encrypt(self, name: str, data: bytes) -> bytes:
        """See `Cipher.encrypt`."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, data, name.encode())

    def decrypt(self, name: str, data: bytes) -> bytes:
        """See `Cipher.decrypt`."""
        try:
            return self._cipher.decrypt(data[:_NONCE], data[_NONCE:], name.encode())
        except (InvalidTag, ValueError) as error:
            raise JournalError(
                f"{name} in the store was not written by a host with this key, so it is not used. Somebody else wrote there; "
                "remove it from the store."
            ) from error
