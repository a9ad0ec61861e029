"""The policy file of a data directory: which scopes a new session can have, and the levels of intent between them."""

from __future__ import annotations

from pathlib import Path

from iact.core import whole_file
from iact.core.errors import UsageError
from iact.core.gate.policy_file import DEFAULT, FILE, Policies
from iact.core.plan.modes.profile_rules import fault_of
from iact.core.tree.plan_domain_rules import domain_rules


def read_policies(data: Path) -> Policies:
    """Read the scopes of a data directory's policy file; the built-in policy if there is no file.

    Raises:
        UsageError: it can't be read, or is not a valid policy.
    """
    path = data / FILE
    try:
        policies = Policies.from_toml(path.read_text(encoding="utf-8"), where=str(path))
    except FileNotFoundError:
        return Policies()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The policy {path} can't be read: {error}.") from error
    _check_plan_rules(policies)
    return policies


def _check_plan_rules(policies: Policies) -> None:
    """Check the expressions of rules for plans, which the gate does not know.

    Raises:
        UsageError: one of them can't be used; the message names it.
    """
    for name in policies.scope:
        for rule in domain_rules(policies.named([name])):
            fault = fault_of(rule)
            if fault:
                raise UsageError(fault)


def policy_text(data: Path) -> str:
    """The text of a data directory's policy file; empty if there is none.

    Raises:
        UsageError: it can't be read.
    """
    path = data / FILE
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The policy {path} can't be read: {error}.") from error


def check_policy(text: str, *, scope: str = DEFAULT) -> None:
    """Check the text of a policy file, which must have a scope of the name `scope`.

    Raises:
        UsageError: it is not a valid policy, or lacks that scope.
    """
    policies = Policies.from_toml(text)
    policies.chosen(scope)
    _check_plan_rules(policies)


def write_policy(data: Path, text: str, *, was: str | None = None, scope: str = DEFAULT) -> None:
    """Write the policy file of a data directory. `was`: the text that the writer saw there, or None to overwrite any;
    `scope`: a scope that the policy must have.

    Raises:
        UsageError: the text is not a valid policy or lacks that scope, the file has changed, or it can't be written.
    """
    check_policy(text, scope=scope)
    path = data / FILE
    try:
        with whole_file.locked(path):
            if was is not None and policy_text(data) != was:
                raise UsageError(
                    "Somebody else has changed the policy in the meantime. Review the new policy, "
                    "then make your change again."
                )
            whole_file.replace(path, text.encode())
    except OSError as error:
        raise UsageError(f"The policy {path} can't be written: {error.strerror}.") from error
