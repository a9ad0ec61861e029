"""An object store by its address: S3, Google Cloud Storage, Azure, or a directory that all hosts mount.

`obstore` talks to all but the last. The only atomic operation required is to create what is absent: compare-and-swap is
not available everywhere (a directory has none), and the fence does not need it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import ObjectStore, from_url

if TYPE_CHECKING:
    from obstore.store import ClientConfig

from iact.core.errors import StoreUnavailable, UsageError

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PAGE: Final = 1000
_SECONDS: Final = 10


class Directory:
    """A directory that all hosts mount, as a `core.ports.ObjectStore`. What was created is on disk.

    obstore supports directories, too, but does not wait for the disk, and acknowledged data must outlast a power cut.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address: Final = f"file://{folder}"
        self._token = secrets.token_hex(8)
        self._drafts = count()

    def create(self, name: str, data: bytes) -> bool:
        """Implement `core.ports.ObjectStore.create`: write a draft in the same folder, and name it if the name is free.

        Each step of an agent waits for this, so the folder is opened once, and everything in it is done relative to it.
        """
        above, _, last = name.rpartition("/")
        draft = self._new_draft(last)
        try:
            folder = self._open(above)
            try:
                self._write(folder, draft, data)
                os.link(draft, last, src_dir_fd=folder, dst_dir_fd=folder)
                is_new = True
            except FileExistsError:
                is_new = False
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
                # Even if it was there: it may have been named a moment ago, and must be on disk before we say so.
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except OSError as error:
            raise self._unavailable(error) from error
        return is_new

    def _new_draft(self, last: str) -> str:
        """A name for a file that is not complete; no other host's, and not shown by `names`."""
        return f".{last}.{self._token}{next(self._drafts)}"

    def _open(self, above: str) -> int:
        path = f"{self._folder}/{above}"
        try:
            return os.open(path, _FOLDER)
        except FileNotFoundError:
            self._make(Path(path))
            return os.open(path, _FOLDER)

    def _write(self, folder: int, name: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb", buffering=0) as stream:
            left = memoryview(data)
            while left:
                left = left[stream.write(left) :]
            os.fsync(stream.fileno())

    def get(self, name: str) -> bytes | None:
        """See `core.ports.ObjectStore.get`."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(error) from error

    def names(self, prefix: str, *, after: str = "") -> Iterator[str]:
        """See `core.ports.ObjectStore.names`."""
        top = self._folder / prefix.rpartition("/")[0]
        names: list[str] = []
        try:
            for folder, _, files in os.walk(top, onerror=_raise):
                above = Path(folder).relative_to(self._folder)
                names += [f"{above}/{file}".removeprefix("./") for file in files if not file.startswith(".")]
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unavailable(error) from error

        yield from sorted(name for name in names if name.startswith(prefix) and name > after)

    def remove(self, name: str) -> None:
        """See `core.ports.ObjectStore.remove`."""
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise self._unavailable(error) from error

    def overwrite(self, name: str, data: bytes) -> None:
        """See `core.ports.ObjectStore.overwrite`."""
        above, _, last = name.rpartition("/")
        draft = self._new_draft(last)
        try:
            folder = self._open(above)
            try:
                self._write(folder, draft, data)
                os.rename(draft, last, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise self._unavailable(error) from error

    def _make(self, folder: Path) -> None:
        """Make a folder with its parents, and sync each to disk."""
        if not folder.is_dir():
            self._make(folder.parent)
            folder.mkdir(exist_ok=True, mode=0o700)
            _sync(folder.parent)

    def _unavailable(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(f"The store in {self._folder} gave no answer: {error.strerror}.")


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _raise(error: OSError) -> None:
    raise error


class Objects:
    """A cloud store as a `core.ports.ObjectStore`. A request times out after ten seconds and is not repeated: the
    caller knows better whether to try again."""

    def __init__(self, store: ObjectStore, address: str) -> None:
        self._store = store
        self.address: Final = address

    def create(self, name: str, data: bytes) -> bool:
        """See `core.ports.ObjectStore.create`."""
        try:
            obstore.put(self._store, name, data, mode="create", use_multipart=False)
        except (AlreadyExistsError, FileExistsError):
            return False
        except (BaseError, OSError) as error:
            raise self._unavailable(error) from error
        return True

    def get(self, name: str) -> bytes | None:
        """See `core.ports.ObjectStore.get`."""
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise self._unavailable(error) from error

    def names(self, prefix: str, *, after: str = "") -> Iterator[str]:
        """See `core.ports.ObjectStore.names`."""
        try:
            pages = obstore.list(self._store, prefix.rstrip("/"), offset=after or None, chunk_size=_PAGE)
            for page in pages:
                yield from (entry["path"] for entry in page)
        except (BaseError, OSError) as error:
            raise self._unavailable(error) from error

    def remove(self, name: str) -> None:
        """See `core.ports.ObjectStore.remove`."""
        try:
            obstore.delete(self._store, name)
        except (NotFoundError, FileNotFoundError):
            return
        except (BaseError, OSError) as error:
            raise self._unavailable(error) from error

    def overwrite(self, name: str, data: bytes) -> None:
        """See `core.ports.ObjectStore.overwrite`."""
        try:
            obstore.put(self._store, name, data, mode="overwrite", use_multipart=False)
        except (BaseError, OSError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        why = str(error).split("\n", 1)[0].strip().rstrip(".")
        return StoreUnavailable(f"The store {self.address} gave no answer: {why[:300]}.")


def open_objects(address: str) -> Directory | Objects:
    """The store at `address`: `s3://bucket/prefix`, `gs://…`, `az://…`, or `file:///directory`.

    Other settings of a provider (region, keys, a custom endpoint) are read from its usual environment variables, such
    as `AWS_ENDPOINT_URL` and `AWS_ACCESS_KEY_ID`.

    Raises:
        UsageError: the address is not valid, or the directory can't be made.
    """
    try:
        if address.startswith("file://"):
            folder = Path(address.removeprefix("file://"))
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return Directory(folder)

        timeout = timedelta(seconds=_SECONDS)
        options: ClientConfig = {"timeout": timeout, "connect_timeout": timeout, "allow_http": True}
        store = from_url(address, client_options=options, retry_config={"max_retries": 0})
        return Objects(store, address)
    except (BaseError, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0].strip().rstrip(".")
        raise UsageError(
            f"{address!r} is no address of a store: {reason}. Give s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
            "az://CONTAINER/PREFIX or file:///DIRECTORY."
        ) from error
