"""What the page is told of the product around it: settings, what works here, and journals as pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from iact.choices import Choices
from iact.doctor import checks
from iact.examples import EXAMPLES
from iact.export import page
from iact.settings import ModelSettings, Settings
from iact.web.ports import Finding, Prices, Recorded


class ServerSurroundings:
    """Of one server (`web.ports.Surroundings`)."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    @property
    def _settings(self) -> Settings:
        return self.choices.settings

    def settings(self) -> Sequence[tuple[str, str]]:
        """The settings in force; of the key only whether there is one."""
        one = self._settings
        return [
            ("Data directory", str(one.data)),
            ("Endpoint", one.base_url or ("" if one.embedded else "OpenAI")),
            ("Key", "set" if one.api_key else "not set"),
            ("Model", one.model or ("embedded" if one.embedded else "the endpoint's")),
            ("Smart model", one.model_smart or ""),
            ("Fast model", one.model_fast or ""),
            ("Context", f"{one.context:,} tokens"),
            ("Sandbox", one.sandbox),
        ]

    def prices(self) -> Prices | None:
        """As they are set; what is not set costs nothing, but what is reused then costs what is read anew."""
        one = self._settings
        own = {
            role.model: _prices(role)
            for role in one.models.values()
            if role.model and (role.price_prompt is not None or role.price_completion is not None)
        }
        if one.price_prompt is None and one.price_completion is None and not own:
            return None
        return replace(_prices(one), models=own)

    def checks(self) -> Sequence[Finding]:
        """What `iact doctor` finds."""
        return [Finding(one.check, one.ok, one.detail, one.remedy) for one in checks(self._settings)]

    def examples(self) -> Sequence[Recorded]:
        """Those that come with the product."""
        return [Recorded(one.name, one.title, one.about, one.folder) for one in EXAMPLES]

    def export(self, journal: Path, at: int | None) -> str:
        """What `iact journal html` writes."""
        return page(journal, at=at)


def _prices(given: Settings | ModelSettings) -> Prices:
    prompt = given.price_prompt or 0.0
    cached = prompt if given.price_cached is None else given.price_cached
    return Prices(prompt, cached, given.price_completion or 0.0)
