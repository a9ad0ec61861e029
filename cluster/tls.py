"""Encrypts the connections between hosts and gateways, with certificates of their own authority.

TLS 1.3 only, and both sides are checked: a host refuses clients whose certificate is not from the authority that the
administrator named, and a gateway refuses hosts whose certificate is not, or is for an address other than the host's.
There is no downgrade: with this, a member neither sends nor accepts plain text.

It adds to the keys that members show each other (`cluster.control`, `cluster.statements`), and replaces none of them.
The authority should issue certificates for members of the cluster and for nothing else.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from iact.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class MemberTls:
    """The TLS contexts with which a member serves, and with which it connects."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def open_tls(*, authority: Path, certificate: Path, key: Path) -> MemberTls:
    """The TLS contexts from a member's files, all PEM.

    `authority`: the issuer of members' certificates; `certificate`, `key`: this member's.

    Raises:
        UsageError: one of them can't be read, or they don't belong together.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        for context in (server, client):
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.load_verify_locations(cafile=authority)
            context.load_cert_chain(certificate, key)
    except OSError as error:  # includes TLS errors
        reason = error.strerror or str(error)
        raise UsageError(
            f"The certificates for what hosts and gateways say to each other can't be used ({reason}): {authority}, "
            f"{certificate}, {key}. Check IACT_CLUSTER_CA, IACT_CLUSTER_CERT and IACT_CLUSTER_KEY."
        ) from error

    # A server asks nobody for a certificate unless it is told to.
    server.verify_mode = ssl.CERT_REQUIRED
    return MemberTls(server, client)
