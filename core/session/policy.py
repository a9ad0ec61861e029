"""The policy file of a data directory: which scopes a new session can have, and the levels of intent between them."""

from __future__ import annotations

from pathlib import Path

from iact.core.errors import UsageError
from iact.core.gate.policy_file import FILE, Policies


def read_policies(data: Path) -> Policies:
    """The scopes of a data directory's policy file; the built-in one if there is no file.

    Raises:
        UsageError: it can't be read, or holds something that a policy can't.
    """
    path = data / FILE
    try:
        return Policies.from_toml(path.read_text(encoding="utf-8"), where=str(path))
    except FileNotFoundError:
        return Policies()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The policy {path} can't be read: {error}.") from error
