"""Encrypts what hosts and gateways say to each other, with certificates of their own authority.

TLS 1.3 alone, and both sides are looked at: a host serves nobody whose certificate is not of the authority that the
administrator named, and a gateway speaks to no host whose certificate is not, or is for another address than the one at
which the host is. Nothing is negotiated down: with this, a member neither speaks nor understands plain text.

It comes on top of the keys that members show each other (`cluster.control`, `cluster.statements`), and replaces none of
them. The authority should issue certificates for members of the cluster and for nothing else.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from iact.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class MemberTls:
    """For what a member serves, and for whom it asks."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def open_tls(*, authority: Path, certificate: Path, key: Path) -> MemberTls:
    """With the files of a member, all PEM. `authority`: who issues members' certificates; `certificate`, `key`: this one's.

    Raises:
        UsageError: one of them can't be read, or they don't belong together.
    """
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        for one in (server, client):
            one.minimum_version = ssl.TLSVersion.TLSv1_3
            one.load_verify_locations(cafile=authority)
            one.load_cert_chain(certificate, key)
    except OSError as error:  # those of TLS among them
        why = error.strerror or str(error)
        raise UsageError(
            f"The certificates for what hosts and gateways say to each other can't be used ({why}): {authority}, "
            f"{certificate}, {key}. Check IACT_CLUSTER_CA, IACT_CLUSTER_CERT and IACT_CLUSTER_KEY."
        ) from error
    server.verify_mode = ssl.CERT_REQUIRED
    return MemberTls(server, client)
