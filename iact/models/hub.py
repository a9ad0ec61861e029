"""The hub of models, huggingface.co or a mirror that speaks its protocol: what a repository holds, and where a file is.

Two addresses are used: the listing of a repository (`/api/models/OWNER/NAME`), and `…/resolve/REVISION/FILE`, which leads
to the file's bytes, often on another host. `HF_ENDPOINT` names a mirror; `HF_TOKEN` is sent to the hub, and to no host that
it leads to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import httpx

from iact.core.errors import IactError, ModelUnreachable, UsageError
from iact.models import gguf

HUB: Final = "https://huggingface.co"

_SECONDS: Final = 20.0
_LARGEST_LISTING: Final = 16 << 20
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_FILE: Final = re.compile(r"[\w.+-][\w .+-]*(/[\w.+-][\w .+-]*)*")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SHOWN: Final = 12
"""How many files are named where a person must choose one."""


@dataclass(frozen=True, slots=True)
class HubSource:
    """What a person wrote: a repository, and a file of it or a part of the file's name."""

    repository: str
    file: str = ""

    @staticmethod
    def of(text: str) -> HubSource:
        """Read `OWNER/NAME[:FILE]`.

        Raises:
            UsageError: it has another form.
        """
        repository, _, file = text.partition(":")
        if not _REPOSITORY.fullmatch(repository) or ".." in text or (file and not _FILE.fullmatch(file)):
            raise UsageError(
                f"hub:{text} does not name a model of the hub; write hub:OWNER/NAME or hub:OWNER/NAME:FILE."
            )
        return HubSource(repository, file)


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of the hub, fixed: the same bytes whenever it is downloaded."""

    repository: str
    revision: str
    """The commit that was the newest when it was looked up."""
    file: str
    """Its path in the repository."""
    size: int
    """In bytes."""
    sha256: str
    licence: str = ""
    """As the repository states it; empty if it doesn't."""

    @property
    def url(self) -> str:
        """The address that leads to its bytes."""
        return file_url(self.repository, self.revision, self.file)


def hub_address() -> str:
    """The hub's address, or that of the mirror that `HF_ENDPOINT` names."""
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def file_url(repository: str, revision: str, file: str) -> str:
    """The address that leads to a file's bytes."""
    return f"{hub_address()}/{repository}/resolve/{quote(revision, safe='')}/{quote(file)}"


def token_header() -> dict[str, str]:
    """The person's token for the hub, if there is one."""
    token = os.environ.get("HF_TOKEN", "").strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def look_up(source: HubSource) -> HubFile:
    """Find the file that a person means. Blocks.

    Raises:
        UsageError: there is no such repository or file, there are several, or it is no whole model.
        ModelUnreachable: the hub does not answer.
    """
    listing = _listing(source.repository)
    chosen = _choose(source, _files(listing))
    size, sha256 = _size_and_digest(chosen)
    revision = str(listing.get("sha") or "main")
    name = str(chosen["rfilename"])
    if not sha256:
        size, sha256 = _linked(source.repository, revision, name)
    return HubFile(source.repository, revision, name, size, sha256, _licence(listing))


# --- the listing ----------------------------------------------------------------------------------

_Json = Mapping[str, object]


def _listing(repository: str) -> _Json:
    url = f"{hub_address()}/api/models/{repository}"
    try:
        with (
            httpx.Client(timeout=_SECONDS, follow_redirects=True, headers=token_header()) as client,
            client.stream("GET", url, params={"blobs": "true"}) as answer,
        ):
            _demand_success(answer, repository)
            content = bytearray()
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > _LARGEST_LISTING:
                    raise ModelUnreachable(
                        f"{answer.url.host} sends a listing of {repository} that is too long."
                    )
            found = httpx.Response(200, content=bytes(content)).json()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _unreachable(error) from error
    except ValueError as error:
        raise ModelUnreachable(f"{hub_address()} does not answer as a hub of models does.") from error
    if not isinstance(found, dict):
        raise ModelUnreachable(f"{hub_address()} does not answer as a hub of models does.")
    return found


def _demand_success(answer: httpx.Response, repository: str) -> None:
    code = answer.headers.get("X-Error-Code", "")
    if answer.status_code == 403 or code == "GatedRepo":
        raise UsageError(
            f"{repository} asks for an agreement first: accept its terms on {hub_address()}/{repository}, create a token "
            "there, and set HF_TOKEN to it."
        )
    # A hub hides what is private: it answers a stranger with 401, as for what does not exist.
    if answer.status_code in (401, 404):
        raise UsageError(
            f"There is no repository {repository} on {_host()}, or it is private; check its name, or set HF_TOKEN to a "
            "token of yours."
        )
    if not answer.is_success:
        raise ModelUnreachable(f"{_host()} answers with HTTP {answer.status_code}; try again later.")


def _unreachable(error: Exception) -> IactError:
    return ModelUnreachable(
        f"{_host()} can't be reached ({error or type(error).__name__}); check the network, or set HF_ENDPOINT to a mirror."
    )


def _host() -> str:
    return hub_address().partition("://")[2]


def _files(listing: _Json) -> list[_Json]:
    siblings = listing.get("siblings")
    if not isinstance(siblings, list):
        return []
    return [one for one in siblings if isinstance(one, dict) and isinstance(one.get("rfilename"), str)]


def _licence(listing: _Json) -> str:
    card = listing.get("cardData")
    if isinstance(card, dict) and isinstance(card.get("license"), str):
        return str(card["license"])[:100]

    tags = listing.get("tags")
    marked = [str(tag) for tag in tags if str(tag).startswith("license:")] if isinstance(tags, list) else []
    return marked[0].removeprefix("license:")[:100] if marked else ""


# --- the choice -----------------------------------------------------------------------------------


def _choose(source: HubSource, files: Sequence[_Json]) -> _Json:
    models = [one for one in files if _is_model(str(one["rfilename"]))]
    if not models:
        raise UsageError(
            f"{source.repository} holds no GGUF file; look for a repository of the same model whose name ends with -GGUF."
        )
    wanted = source.file.lower()
    exact = [one for one in models if str(one["rfilename"]).lower() == wanted]
    found = exact or [one for one in models if wanted in str(one["rfilename"]).lower()]
    if not found:
        raise UsageError(f"{source.repository} holds no file {source.file}; it has {_named(models)}.")
    if len(found) > 1:
        raise UsageError(
            f"{source.repository} holds {len(found)} GGUF files{_like(source)}; add one of them after a colon: "
            f"{_named(found)}."
        )
    [chosen] = found
    if gguf.is_part(str(chosen["rfilename"])):
        raise UsageError(
            f"{chosen['rfilename']} is one of several parts of a model; only models in one file can be used here."
        )
    return chosen


def _is_model(name: str) -> bool:
    """Whether a file is a model, and not only the part of one that reads pictures."""
    lower = name.lower()
    safe = _FILE.fullmatch(name) is not None and ".." not in name
    return safe and lower.endswith(".gguf") and not lower.rpartition("/")[2].startswith("mmproj")


def _like(source: HubSource) -> str:
    return f" like {source.file}" if source.file else ""


def _named(files: Sequence[_Json]) -> str:
    named = []
    for one in files[:_SHOWN]:
        size = _size_and_digest(one)[0]
        about = f" ({size / 1e6:,.0f} MB)" if size else ""
        named.append(f"{one['rfilename']}{about}")
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return f"{', '.join(named)}{more}"


# --- size and digest ------------------------------------------------------------------------------


def _size_and_digest(file: _Json) -> tuple[int, str]:
    """What the listing says; 0 and "" where it doesn't."""
    lfs = file.get("lfs")
    if not isinstance(lfs, dict):
        return 0, ""
    size = lfs.get("size")
    digest = str(lfs.get("sha256") or "").lower()
    if not isinstance(size, int) or size <= 0 or not _SHA256.fullmatch(digest):
        return 0, ""
    return size, digest


def _linked(repository: str, revision: str, file: str) -> tuple[int, str]:
    """The same from the headers of the address that leads to the file. Its redirection goes elsewhere, so it is not
    followed."""
    try:
        answer = httpx.head(file_url(repository, revision, file), headers=token_header(), timeout=_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _unreachable(error) from error
    if not answer.has_redirect_location:
        _demand_success(answer, repository)
    size = answer.headers.get("X-Linked-Size", "")
    digest = answer.headers.get("X-Linked-Etag", "").strip('W/"').lower()
    if not size.isdecimal() or not _SHA256.fullmatch(digest):
        raise ModelUnreachable(
            f"{_host()} does not say the size and the digest of {file}, so it can't be checked."
        )
    return int(size), digest
