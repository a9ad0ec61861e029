"""The moving picture of README: a recorded session, played on the real page.

The browser that shows the page also compresses its pictures (`canvas.toDataURL`). They are put one after another into
an animated WebP here, whose container is a list of chunks: https://developers.google.com/speed/webp/docs/riff_container
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final

from playwright.async_api import Page, expect

from tests.web.browser import browsing
from tests.web.fake import FakeAround, FakeRuntime

NAME: Final = "recording.webp"
LARGEST: Final = 1_000_000
"""Bytes: it is in the repository, and the first thing that a reader of README loads."""
_RECORDING: Final = "research"
FRAMES: Final = 20
_FIRST: Final = 12
"""The record that is shown first: what comes before it prepares the session."""
_EACH_MS: Final = 900
_LAST_MS: Final = 4_000
_WIDTH, _HEIGHT = 1200, 750
_SHOWN_WIDTH, _SHOWN_HEIGHT = 960, 600

_COMPRESS: Final = """async ([png, width, height]) => {
  const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, width, height);
  return canvas.toDataURL("image/webp", 0.72).split(",")[1];
}"""


async def take_moving(folder: Path) -> None:
    """Play the recording and save its moving picture."""
    async with browsing(FakeRuntime(), FakeAround()) as opened:
        page = await opened.page(f"replay:{_RECORDING}", width=_WIDTH, height=_HEIGHT)
        desk = await opened.browser.new_page()
        frames = [await _compressed(desk, shot) async for shot in _shots(page)]
        opened.wrongs.found.clear()

    times = [_EACH_MS] * (len(frames) - 1) + [_LAST_MS]
    (folder / NAME).write_bytes(animated(frames, times, _SHOWN_WIDTH, _SHOWN_HEIGHT))


async def _shots(page: Page) -> AsyncIterator[bytes]:
    """Pictures of the page at records all along the recording."""
    length = page.locator("[data-role=replay-total]")
    await expect(length).to_have_text(re.compile(r"\d+"))
    total = int((await length.inner_text()).split()[-1])
    await page.get_by_role("tab", name="Timeline").click()
    await expect(page.locator(".timeline-track").first).to_be_visible()
    slider = page.locator("[data-role=replay-slider]")
    await slider.fill(str(_FIRST))
    await expect(page.locator("[role=treeitem]")).to_have_count(1)
    for frame in range(FRAMES):
        record = _FIRST + (total - _FIRST) * frame // (FRAMES - 1)
        await slider.fill(str(record))
        await expect(slider).to_have_value(str(record))
        await expect(page.locator(".awaited")).to_have_count(0)
        await page.wait_for_timeout(300)
        yield await page.screenshot()


async def _compressed(desk: Page, png: bytes) -> bytes:
    """A picture as WebP."""
    written = base64.b64encode(png).decode()
    return base64.b64decode(await desk.evaluate(_COMPRESS, [written, _SHOWN_WIDTH, _SHOWN_HEIGHT]))


def animated(frames: Sequence[bytes], times: Sequence[int], width: int, height: int) -> bytes:
    """An animated WebP of still ones. `times`: how long each is shown, in milliseconds."""
    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    # Bit 1 of the first byte: it is animated. Then the background, and 0: it is repeated for ever.
    chunks = _chunk(b"VP8X", b"\x02\0\0\0" + size) + _chunk(b"ANIM", b"\xff\xff\xff\xff\0\0")
    for frame, time in zip(frames, times, strict=True):
        picture = b"".join(
            _chunk(name, data) for name, data in chunks_of(frame) if name in (b"VP8 ", b"VP8L")
        )
        place = bytes(6)
        # 2: it replaces the one before and is not blended with it.
        chunks += _chunk(b"ANMF", place + size + struct.pack("<I", time)[:3] + b"\x02" + picture)
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def chunks_of(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a WebP."""
    place = 12
    while place < len(picture):
        name = picture[place : place + 4]
        (length,) = struct.unpack_from("<I", picture, place + 4)
        yield name, picture[place + 8 : place + 8 + length]
        place += 8 + length + length % 2
