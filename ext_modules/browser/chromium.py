"""One Chromium per container, started when the first page is opened; each agent has its own context in it.

It runs without Chromium's own sandbox, which needs the name spaces that ours takes away: the container is the
isolation. It reaches outside hosts through the egress proxy.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Playwright, ProxySettings, async_playwright

PROGRAM: Final = os.environ.get("IACT_CHROMIUM", "/usr/lib/chromium/chromium")
WORKSPACE: Final = "/workspace"
_ARGUMENTS: Final = (
    "--disable-gpu", "--disable-dev-shm-usage", "--no-zygote", "--no-first-run", "--disable-quic", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
    "--disable-domain-reliability", "--disable-client-side-phishing-detection", "--disable-default-apps", "--no-pings",
    "--metrics-recording-only",
)  # fmt: skip
_OWN: Final = (
    "update.googleapis.com", "optimizationguide-pa.googleapis.com", "content-autofill.googleapis.com",
    "safebrowsing.googleapis.com", "safebrowsingohttpgateway.googleapis.com", "clientservices.googleapis.com",
    "android.clients.google.com", "clients1.google.com", "clients2.google.com", "clients3.google.com",
    "clients4.google.com", "redirector.gvt1.com", "edgedl.me.gvt1.com", "mtalk.google.com",
)  # fmt: skip
"""Chromium asks there on its own, in spite of its options. Past the proxy it finds no network, and no person is asked."""
_OTHER_SCHEMES: Final = ("file:", "data:", "about:", "javascript:", "chrome:")
_SIZE: Final = (1280, 800)


class AddressRefused(Exception):
    """The address can't be opened; the message says which addresses can."""


def checked(url: str) -> str:
    """Check `url` and return it; "example.com/x" becomes "https://example.com/x".

    Raises:
        AddressRefused: no page may be opened at it.
    """
    address = url.strip()
    if "://" not in address and not address.startswith(_OTHER_SCHEMES):
        address = f"https://{address}"
    try:
        parts = urlsplit(address)
        host = parts.hostname
        path = os.path.normpath(parts.path)
    except ValueError as error:
        raise AddressRefused(f"{url[:200]!r} is not an address: {error}.") from error

    if parts.scheme in ("http", "https") and host:
        return address
    if parts.scheme == "file" and not host and path.startswith(f"{WORKSPACE}/"):
        return address
    raise AddressRefused(f"{url[:200]!r} can't be opened; use https://host/path, or file://{WORKSPACE}/name.")


class Chromium:
    """Starts the browser when it is first needed, and again if it was lost."""

    def __init__(self) -> None:
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()

    async def context(self) -> BrowserContext:
        """Open a new, empty context: no cookies or history of others."""
        async with self._starting:
            if self._driver is None:
                self._driver = await async_playwright().start()
            if self._browser is None or not self._browser.is_connected():
                self._browser = await self._driver.chromium.launch(
                    executable_path=PROGRAM,
                    headless=True,
                    chromium_sandbox=False,
                    args=list(_ARGUMENTS),
                    proxy=_proxy(),
                )

        width, height = _SIZE
        return await self._browser.new_context(
            viewport={"width": width, "height": height}, accept_downloads=False, service_workers="block"
        )

    async def close(self) -> None:
        """End the browser, if it was started."""
        if self._browser is not None:
            await self._browser.close()
        if self._driver is not None:
            await self._driver.stop()


def _proxy() -> ProxySettings | None:
    server = os.environ.get("HTTPS_PROXY")
    # Chromium bypasses the proxy for loopback addresses on its own.
    return {"server": server, "bypass": ",".join(_OWN)} if server else None
