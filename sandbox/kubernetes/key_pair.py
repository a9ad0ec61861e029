"""The two certificates of a tunnel, each known to the other end in advance, so that no authority is needed.

A host makes one pair for itself when it starts, and one for each pod. The pod's pair goes into the cluster as a secret,
together with the host's certificate; the host's key never leaves its process. So anyone who reads the secret can
impersonate that pod, but no one can impersonate the host.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_VALID = timedelta(days=3650)
"""Much longer than any pod or host lives; pods end by other means."""
_CLOCKS = timedelta(days=1)
"""How far clocks may differ."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A self-signed certificate and its key, both as PEM."""

    certificate: str
    key: str = field(repr=False)

    @classmethod
    def make(cls, name: str) -> KeyPair:
        """Create a new pair. `name`: for people."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCKS)
            .not_valid_after(now + _VALID)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(
            made.public_bytes(serialization.Encoding.PEM).decode(),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ).decode(),
        )

    def meets(self, other: str) -> ssl.SSLContext:
        """The TLS context with which the owner of this pair connects to the owner of certificate `other` only."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        made.check_hostname = False  # the certificate itself is known, whatever its address
        made.load_verify_locations(cadata=other)
        with _as_file(self.key + self.certificate) as path:
            made.load_cert_chain(path)
        return made


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path to `text` in memory: OpenSSL reads a key only from a file."""
    descriptor = os.memfd_create("iact-key")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
