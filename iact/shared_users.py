"""The parts that users have in a store shared by several hosts: a separate part for each, with its own seal key.

A part is laid out like the store of an installation with one user, just as a user's directory is laid out like its
data directory. Reading or listing a user's part therefore returns only that user's data, without any filtering.
"""

from __future__ import annotations

from iact.core.errors import UsageError
from iact.core.session.assembly import SharedStore
from iact.settings import Settings
from iact.user_folders import USERS, folder_of, shared_folder
from iact.wiring import shared_of


def check_accounts(settings: Settings) -> None:
    """Check that all hosts that share a store also share the accounts.

    Raises:
        UsageError: the accounts are in a file on this machine.
    """
    if (
        settings.accounts.authenticator != "token"
        and settings.store is not None
        and not settings.accounts_url
    ):
        raise UsageError(
            "Hosts that share a store need one shared accounts database, but here the accounts are "
            "in a local file. Name a PostgreSQL database that all hosts and gateways can reach: "
            "IACT_ACCOUNTS_URL=postgresql://USER@HOST/NAME."
        )


def settings_of_user(settings: Settings, user: str) -> Settings:
    """The same settings, applied to a user's data. `user`: the user's id.

    Raises:
        UsageError: no user can have this id.
    """
    return _below(settings, folder_of(settings.data, user).relative_to(settings.data).as_posix())


def settings_of_all(settings: Settings) -> Settings:
    """The same settings, applied to what is set for all users."""
    return _below(settings, shared_folder(settings.data).relative_to(settings.data).as_posix())


def _below(settings: Settings, part: str) -> Settings:
    store = None if settings.store is None else f"{settings.store.rstrip('/')}/{part}"
    return settings.model_copy(update={"data": settings.data / part, "store": store})


def stores_of(settings: Settings) -> dict[str, SharedStore]:
    """The parts of all users in the store, by user id; "" is the part of the user `local`. Empty without a store. Blocks.

    Raises:
        UsageError: as `iact.wiring.shared_of`.
        StoreUnavailable: the store does not answer.
    """
    shared = shared_of(settings)
    if shared is None:
        return {}
    found = {"": shared}
    for user in shared.users(USERS):
        own = shared_of(settings_of_user(settings, user))
        if own is not None:
            found[user] = own
    return found


def share_key(settings: Settings, part: Settings) -> None:
    """Make sure that a part has the same seal key on all hosts. Does nothing without a store. Blocks.

    `part`: the result of `settings_of_user` or `settings_of_all`.

    Raises:
        JournalError: as `SharedStore.share_key`.
    """
    shared = shared_of(settings)
    if shared is not None:
        shared.share_key(settings.data, part.data.relative_to(settings.data).as_posix())


def holds(settings: Settings, shared: SharedStore, user: str, session: str) -> bool:
    """Whether a user has a session of this id in the store. Blocks.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    return shared.holds(folder_of(settings.data, user).relative_to(settings.data).as_posix(), session)
