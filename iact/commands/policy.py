"""Commands about the policy: `policy show`, `policy set`."""

from __future__ import annotations

import sys
from pathlib import Path

from iact.commands import audit
from iact.core.errors import UsageError
from iact.core.session.policy import policy_text, write_policy
from iact.settings import Settings
from iact.wiring import make_data_directory


def show(settings: Settings) -> int:
    """Print the policy file."""
    print(policy_text(settings.data), end="")
    return 0


def replace(settings: Settings, source: str) -> int:
    """Replace the policy, if the new one is valid. `source`: a file, or `-` for standard input.

    Raises:
        UsageError: the new policy can't be read, is invalid, or can't be written.
    """
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{source} can't be read: {error}.") from error
    make_data_directory(settings)
    write_policy(settings.data, text)
    audit.tell(settings, "policy.changed")
    return 0
