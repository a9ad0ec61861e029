"""What the page shows of the product around it: settings, checks of this machine, and journals as pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from iact.choices import Choices
from iact.core.ports import Price
from iact.doctor import checks
from iact.examples import EXAMPLES
from iact.export import page
from iact.own_secrets import OwnSecrets
from iact.settings import Settings
from iact.web import ports
from iact.web.ports import Finding, Prices, Recorded


class ServerSurroundings:
    """The surroundings of one server (`web.ports.Product`).

    `choices`: the choices for the whole server. `own`: the choices of one user. `data`: that user's directory; by
    default, the server's data directory.
    """

    def __init__(
        self, choices: Choices, own: ports.Choices | None = None, *, data: Path | None = None
    ) -> None:
        self._server = choices
        self._choices: ports.Choices = choices if own is None else own
        self._secrets = OwnSecrets(data or choices.settings.data)

    @property
    def choices(self) -> ports.Choices:
        """What a person chose and can change."""
        return self._choices

    @property
    def board(self) -> ports.Board:
        """How far the model on board is."""
        return self._server.board

    @property
    def secrets(self) -> ports.OwnSecrets:
        """This user's secrets for modules."""
        return self._secrets

    @property
    def _settings(self) -> Settings:
        return self._server.settings

    def settings(self) -> Sequence[tuple[str, str]]:
        """The settings in force. For the key, only whether there is one."""
        one = self._settings
        return [
            ("Data directory", str(one.data)),
            ("Endpoint", one.base_url or ("" if one.without_endpoint else "OpenAI")),
            ("Key", "set" if one.api_key else "not set"),
            ("Model", one.model or ("on board" if one.without_endpoint else "the endpoint's")),
            ("Smart model", one.model_smart or ""),
            ("Fast model", one.model_fast or ""),
            ("Context", f"{one.context:,} tokens"),
            ("Sandbox", one.sandbox),
        ]

    def prices(self) -> Prices | None:
        """The configured prices. A missing price is zero, but a missing price for cached tokens is that of new ones."""
        one = self._settings
        own = {
            role.model: _prices(role.price)
            for role in one.models.values()
            if role.model and role.price is not None
        }
        if one.price is None and not own:
            return None
        return replace(_prices(one.price), models=own)

    def checks(self) -> Sequence[Finding]:
        """The findings of `iact doctor`."""
        return [Finding(one.check, one.ok, one.detail, one.remedy) for one in checks(self._settings)]

    def examples(self) -> Sequence[Recorded]:
        """The examples that come with the product."""
        return [Recorded(one.name, one.title, one.about, one.folder) for one in EXAMPLES]

    def export(self, journal: Path, at: int | None) -> str:
        """The page that `iact journal html` writes."""
        return page(journal, at=at)


def _prices(given: Price | None) -> Prices:
    return Prices(0.0, 0.0, 0.0) if given is None else Prices(given.prompt, given.cached, given.completion)
