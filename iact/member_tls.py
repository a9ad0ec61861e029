"""The certificates that hosts and gateways use to talk to each other, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iact.core.errors import UsageError
from iact.settings import Settings

if TYPE_CHECKING:
    from iact.cluster.tls import MemberTls


def member_tls(settings: Settings) -> MemberTls | None:
    """The TLS configuration of cluster members, or None if they communicate unencrypted.

    Raises:
        UsageError: a file can't be used, or only some of the files are named.
    """
    files = (settings.cluster_ca, settings.cluster_cert, settings.cluster_key)
    if files == (None, None, None):
        return None
    authority, certificate, key = files
    if authority is None or certificate is None or key is None:
        raise UsageError(
            "Encrypted connections between hosts and gateways need all three settings: "
            "IACT_CLUSTER_CA, IACT_CLUSTER_CERT and IACT_CLUSTER_KEY."
        )
    from iact.cluster.tls import open_tls

    return open_tls(authority=authority, certificate=certificate, key=key)
