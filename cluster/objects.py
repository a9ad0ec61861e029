"""An object store by its address: S3, Google Cloud Storage, Azure, or a directory that all hosts mount.

`obstore` speaks to all of them. Nothing but creating what is absent is asked of a store: comparing and swapping is not
to be had everywhere (a directory has none), and the fence needs no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

if TYPE_CHECKING:
    from obstore.store import ClientConfig

from core.errors import StoreUnavailable, UsageError

_PAGE: Final = 1000
_SECONDS: Final = 10


class Objects:
    """A store as `core.ports.ObjectStore` has it. Times out after ten seconds a request and is not asked twice: who calls
    knows better whether to ask again."""

    def __init__(self, store: ObjectStore, address: str) -> None:
        self._store = store
        self.address: Final = address

    def create(self, name: str, data: bytes) -> bool:
        """As `core.ports.ObjectStore.create`."""
        try:
            obstore.put(self._store, name, data, mode="create", use_multipart=False)
        except (AlreadyExistsError, FileExistsError):
            return False
        except (BaseError, OSError) as error:
            raise self._unavailable(error) from error
        return True

    def get(self, name: str) -> bytes | None:
        """As `core.ports.ObjectStore.get`."""
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise self._unavailable(error) from error

    def names(self, prefix: str, *, after: str = "") -> Iterator[str]:
        """As `core.ports.ObjectStore.names`."""
        try:
            found = obstore.list(self._store, prefix.rstrip("/"), offset=after or None, chunk_size=_PAGE)
            # A directory is listed as the file system has it, which is in no order.
            if isinstance(self._store, LocalStore | MemoryStore):
                yield from sorted(one["path"] for page in found for one in page)
                return
            for page in found:
                yield from (one["path"] for one in page)
        except (BaseError, OSError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        why = str(error).split("\n", 1)[0].strip().rstrip(".")
        return StoreUnavailable(f"The store {self.address} gave no answer: {why[:300]}.")


def open_objects(address: str) -> Objects:
    """The store at `address`: `s3://bucket/prefix`, `gs://…`, `az://…`, or `file:///directory`.

    What else a provider needs (region, keys, an endpoint of one's own) is read from its usual environment variables,
    such as `AWS_ENDPOINT_URL` and `AWS_ACCESS_KEY_ID`.

    Raises:
        UsageError: it is no such address, or the directory can't be made.
    """
    try:
        if address.startswith("file://"):
            folder = Path(address.removeprefix("file://"))
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return Objects(LocalStore(folder), address)
        timeout = timedelta(seconds=_SECONDS)
        options: ClientConfig = {"timeout": timeout, "connect_timeout": timeout, "allow_http": True}
        return Objects(from_url(address, client_options=options, retry_config={"max_retries": 0}), address)
    except (BaseError, OSError, ValueError) as error:
        why = str(error).split("\n", 1)[0].strip().rstrip(".")
        raise UsageError(
            f"{address!r} is no address of a store: {why}. Give s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
            "az://CONTAINER/PREFIX or file:///DIRECTORY."
        ) from error
