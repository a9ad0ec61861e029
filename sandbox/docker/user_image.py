"""Images that a person supplies: the whole system of a module, with its program, in any language.

Such an image is identified by its digest once it is added, so another image under the same name is not the approved
one. Only the program is taken from its configuration; everything that confines a module is ours, as for any other.
"""

from __future__ import annotations

import json
from dataclasses import replace

import docker
from docker.errors import ImageNotFound
from docker.models.images import Image

from iact.core.errors import SandboxUnavailable, UsageError
from iact.core.ports import ModuleSource


def pinned(client: docker.DockerClient, source: ModuleSource) -> ModuleSource:
    """Return `source` with its image by digest, and the image's program in the form of a `module.toml`. Blocks.

    Raises:
        UsageError: the image names no program, or would write outside of what is bounded.
        SandboxUnavailable: there is no such image.
    """
    image = image_of(client, source.image, f"There is no module at {source.image}, and no image of that name; "
        f"none is fetched for a module, so run: docker pull {source.image}")  # fmt: skip
    said = image.attrs.get("Config") or {}
    command = [*(said.get("Entrypoint") or ()), *(said.get("Cmd") or ())]
    if not command:
        raise UsageError(
            f"The image {source.image} names no program; give it an ENTRYPOINT that takes --socket PATH."
        )
    if said.get("Volumes"):
        raise UsageError(
            f"The image {source.image} declares volumes, whose size can't be limited; build it without VOLUME."
        )
    card = "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
        for key, value in {
            "name": source.name, "summary": source.summary, "system": str(image.id), "command": command
        }.items()
    )  # fmt: skip
    return replace(source, files={"module.toml": card.encode()}, image="")


def image_of(client: docker.DockerClient, reference: str, otherwise: str) -> Image:
    """The engine's image with this name or digest. Blocks.

    Raises:
        SandboxUnavailable: it has none; the message is `otherwise`.
    """
    try:
        return client.images.get(reference)
    except ImageNotFound as error:
        raise SandboxUnavailable(otherwise) from error
