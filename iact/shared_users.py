"""What each user has in a store that several hosts share: a part of it by itself, and a key of their seals.

A part is laid out like the store of an installation with one user, as a user's directory is laid out like its data
directory. So whatever is read or listed for a user is of that user, and there is nothing to leave out.
"""

from __future__ import annotations

from iact.core.errors import UsageError
from iact.core.session.assembly import SharedStore
from iact.settings import Settings
from iact.user_folders import USERS, folder_of, shared_folder
from iact.wiring import shared_of


def check_accounts(settings: Settings) -> None:
    """See to it that accounts are known to all hosts that share a store.

    Raises:
        UsageError: they are in a file of this machine.
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
    """The same settings, over what is a user's. `user`: their id.

    Raises:
        UsageError: no user can have this id.
    """
    return _below(settings, folder_of(settings.data, user).relative_to(settings.data).as_posix())


def settings_of_all(settings: Settings) -> Settings:
    """The same settings, over what is set for everybody."""
    return _below(settings, shared_folder(settings.data).relative_to(settings.data).as_posix())


def _below(settings: Settings, part: str) -> Settings:
    store = None if settings.store is None else f"{settings.store.rstrip('/')}/{part}"
    return settings.model_copy(update={"data": settings.data / part, "store": store})


def stores_of(settings: Settings) -> dict[str, SharedStore]:
    """What each user has in the store, by their id; by "", what the user `local` has. Nothing without a store. Blocks.

    Raises:
        UsageError: as `iact.wiring.shared_of`.
        StoreUnavailable: it does not answer.
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
    """See to it that a part has the same key of its seals on all hosts. Nothing without a store. Blocks.

    `part`: as `settings_of_user` or `settings_of_all` gives it.

    Raises:
        JournalError: as `SharedStore.share_key`.
    """
    shared = shared_of(settings)
    if shared is not None:
        shared.share_key(settings.data, part.data.relative_to(settings.data).as_posix())


def holds(settings: Settings, shared: SharedStore, user: str, session: str) -> bool:
    """Whether a user has a session of this id in the store. Blocks.

    Raises:
        StoreUnavailable: it does not answer.
    """
    return shared.holds(folder_of(settings.data, user).relative_to(settings.data).as_posix(), session)
