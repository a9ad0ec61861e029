"""Commands about the policy: `policy show`, `policy set`."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from iact.commands import audit
from iact.commands.agreement import agreed
from iact.core.characters import escaped
from iact.core.errors import UsageError
from iact.core.stored.policy import check_policy, policy_text, write_policy
from iact.core.views import consent
from iact.settings import Settings, make_data_directory


def show(settings: Settings) -> int:
    """Print the policy file."""
    print(policy_text(settings.data), end="")
    return 0


def replace(settings: Settings, source: str, *, seen: str) -> int:
    """Replace the policy, if the new one is valid. `source`: a file, or `-` for standard input.

    `seen`: the digest of the change as the person saw it; without it the change is shown, and the person is asked.

    Raises:
        UsageError: the new policy can't be read, is invalid, or can't be written, or there is nobody to ask.
        Changed: it is not the change that the person was shown.
    """
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{source} can't be read: {error}.") from error

    check_policy(text)
    was = policy_text(settings.data)
    if text == was:
        print("iact: This is the policy already.", file=sys.stderr)
        return 0

    if not _agrees(was, text, seen):
        return 1

    make_data_directory(settings)
    write_policy(settings.data, text, was=was)
    audit.tell(settings, "policy.changed")
    return 0


def _agrees(was: str, text: str, seen: str) -> bool:
    """Whether the person agrees to this change, beforehand by its digest or now at the terminal."""
    digest = consent.policy_digest(was, text)
    if seen:
        consent.check(seen, digest)
        return True

    # Line ends are shown as part of a line: one that only moves must be seen, too.
    before, after = was.split("\n"), text.split("\n")
    for line in difflib.unified_diff(before, after, "the policy now", "the new policy", lineterm=""):
        print(escaped(line, every=True))
    return agreed("Make it the policy?", digest)
