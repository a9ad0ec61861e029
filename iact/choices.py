"""What a person chooses on the page: models for roles, and first messages.

The models are written to the data directory's `iact.toml`, next to everything that the person wrote there. A key is
stored with the secrets and never shown again. It belongs to the endpoint that it was given for: if the address changes,
the key is removed.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from iact.core import whole_file
from iact.core.errors import IactError, UsageError
from iact.core.json_file import replace_json
from iact.core.session.models import OPENAI, Models, RoleModel, Tried, try_model
from iact.models.added import (
    AddedEndpoint,
    AddedFile,
    AddedModels,
    chosen_file,
    no_such_model,
    own_file,
)
from iact.models.board import Board
from iact.models.presets import PRESETS, Preset
from iact.models.weights import KNOWN, ModelFile, OwnFile
from iact.sandbox.secrets import Secrets
from iact.settings import ModelSettings, Settings, load
from iact.web.ports import AddedEndpointView, FirstMessage, ModelFileView, RoleChoice, RoleTerms, RoleView
from iact.wiring import endpoint_of, models_of, role_of

FILE: Final = "first_messages.json"
"""The name of the file in the data directory."""
_MOST: Final = 200


class Choices:
    """The choices of one server (`web.ports.Choices`). `use`: makes sessions continue with other models.

    `board`: is told how far a model on board is that is chosen.
    """

    def __init__(self, settings: Settings, use: Callable[[Models], None], board: Board | None = None) -> None:
        self.settings = settings
        self.board: Final = board or Board()
        self._use = use
        self._file = settings.data / "iact.toml"
        self._kept = settings.data / FILE
        self._secrets = Secrets(settings.data)
        self._changing = asyncio.Lock()

    # --- models ---------------------------------------------------------------------------------

    def roles(self) -> Sequence[RoleView]:
        """The roles that always exist, and the roles that have their own model."""
        names = ("smart", "fast", *(name for name in self.settings.models if name not in ("smart", "fast")))
        return [self._view(name) for name in names]

    def _view(self, name: str) -> RoleView:
        settings, own = self.settings, self.settings.models.get(name)
        if own is not None:
            url = own.base_url or settings.base_url or OPENAI
            elsewhere = own.base_url is not None and own.base_url != settings.base_url
            return RoleView(
                role=name,
                url=url,
                model=own.model or "" if elsewhere else own.model or settings.model or "",
                context=own.context or settings.context,
                key=own.key is not None or (not elsewhere and bool(settings.api_key)),
                own=True,
                terms=_terms(own),
            )
        endpoint = endpoint_of(settings)
        if endpoint is None:
            return RoleView(role=name, url="", model="", context=settings.context, key=False, own=False)
        model = endpoint.fast if name == "fast" else endpoint.smart
        return RoleView(
            role=name, url=endpoint.url, model=model or "", context=endpoint.context, key=bool(endpoint.key), own=False,
            terms=_terms(settings),
        )  # fmt: skip

    async def try_role(self, choice: RoleChoice) -> Tried:
        """Ask the model for a word. If no key was typed, the stored key is sent, but only to its own endpoint."""
        return await try_model(await asyncio.to_thread(self._meant, choice))

    def _meant(self, choice: RoleChoice) -> RoleModel:
        key = choice.key
        if key is None and self._same_place(choice):
            own = self.settings.models.get(choice.role) or ModelSettings()
            key = role_of(self.settings, choice.role, own).key
        return RoleModel(
            url=choice.url,
            key=key or None,
            model=choice.model or None,
            context=choice.context or self.settings.context,
            dialect=choice.terms.dialect or self.settings.dialect,
        )

    def _same_place(self, choice: RoleChoice) -> bool:
        return self._view(choice.role).url.rstrip("/") == choice.url.rstrip("/")

    async def choose_role(self, choice: RoleChoice) -> None:
        """Choose a role's model, from the next message on.

        Raises:
            UsageError: it can't be written, or other settings take precedence; then nothing has changed.
        """
        async with self._changing:
            await self._change(
                choice.role, lambda: self._write(choice), partial(_demand_role, choice.role, choice.url)
            )

    async def forget_role(self, name: str) -> None:
        """Remove a role's own model, from the next message on.

        Raises:
            UsageError: it has no model of its own, or no model would be left.
        """
        if name not in self.settings.models:
            raise UsageError(f"The role {name} has no model of its own.")
        async with self._changing:
            await self._change(name, lambda: self._remove(name), partial(_demand_role, name, None))

    def presets(self) -> Sequence[Preset]:
        """The providers and programs whose models can be connected."""
        return PRESETS

    def model_files(self) -> Sequence[ModelFileView]:
        """The models on board, and the files that a person added and that are still there. Blocks.

        Raises:
            UsageError: the list of added models can't be read.
        """
        settings = self.settings
        answering = None
        if settings.without_endpoint:
            answering = chosen_file(settings.embedded, settings.data).weights

        added = AddedModels(settings.data).all()
        own = [own_file(name, model) for name, model in added.items() if isinstance(model, AddedFile)]
        usable: list[ModelFile | OwnFile] = [*KNOWN.values(), *(file for file in own if file.present)]
        return [
            ModelFileView(
                name=file.key if isinstance(file, ModelFile) else file.name,
                title=file.name,
                size=file.size,
                present=file.present,
                in_use=file == answering,
            )
            for file in usable
        ]

    async def use_on_board(self, name: str) -> None:
        """Let a model on board answer, from the next message on, and no endpoint. `name`: as `embedded` names it.

        Raises:
            UsageError: it can't be written, or other settings take precedence; then nothing has changed.
        """
        async with self._changing:
            await self._change("smart", lambda: self._write_on_board(name), partial(_demand_on_board, name))

    def added_endpoints(self) -> Sequence[AddedEndpointView]:
        """The models behind endpoints that a person added. Blocks.

        Raises:
            UsageError: the list of added models can't be read.
        """
        answering = self._view("smart")
        return [
            AddedEndpointView(
                name=name,
                model=model.model,
                url=model.url,
                in_use=(model.url, model.model) == (answering.url, answering.model),
            )
            for name, model in AddedModels(self.settings.data).all().items()
            if isinstance(model, AddedEndpoint)
        ]

    async def use_endpoint(self, name: str) -> None:
        """Let a model that a person added answer, from the next message on. `name`: as it was added.

        Raises:
            UsageError: there is no such model, its key is gone, it can't be written, or other settings take precedence;
                then nothing has changed.
        """
        await self.choose_role(await asyncio.to_thread(self._choice_of, name))

    def _choice_of(self, name: str) -> RoleChoice:
        model = AddedModels(self.settings.data).all().get(name)
        if not isinstance(model, AddedEndpoint):
            raise no_such_model(name)
        key = value_of_key(self._secrets, model.key) if model.key else ""
        return RoleChoice(role="smart", url=model.url, model=model.model, key=key)

    async def _change(self, name: str, write: Callable[[], None], demand: Callable[[Settings], None]) -> None:
        """`demand`: raises UsageError if what was written is not in force."""
        before = await asyncio.to_thread(self._text)
        secret = secret_of(name)
        kept = (await asyncio.to_thread(self._secrets.of, (secret,))).get(secret)
        try:
            await asyncio.to_thread(write)
            settings = await asyncio.to_thread(load, data=str(self.settings.data))
            demand(settings)
            opened = await asyncio.to_thread(models_of, settings, self.board)
        except (IactError, OSError) as error:
            await asyncio.to_thread(self._put_back, before, secret, kept)
            if isinstance(error, OSError):
                raise UsageError(f"{self._file} can't be written: {error.strerror}.") from error
            raise
        self.settings = settings
        if not settings.without_endpoint:
            self.board.clear()
        self._use(opened)

    def _text(self) -> str | None:
        try:
            return self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The settings file {self._file} can't be read: {error}.") from error

    def _write(self, choice: RoleChoice) -> None:
        document, tables = self._document()
        table = tables.get(choice.role)
        if not isinstance(table, MutableMapping):
            table = tables[choice.role] = tomlkit.table()
        same = self._same_place(choice)
        table["base_url"] = choice.url
        terms = {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in asdict(choice.terms).items()
        }
        for name, value in {"model": choice.model or None, "context": choice.context, **terms}.items():
            if value is not None:
                table[name] = value
            else:
                table.pop(name, None)
        if choice.key:
            secret = secret_of(choice.role)
            self._secrets.store(secret, choice.key)
            table["key"] = secret
        elif choice.key == "" or not same:
            # A key belongs to the endpoint that it was given for.
            table.pop("key", None)
            self._drop_key(choice.role)
        _replace(self._file, tomlkit.dumps(document))

    def _remove(self, name: str) -> None:
        document, tables = self._document()
        tables.pop(name, None)
        self._drop_key(name)
        _replace(self._file, tomlkit.dumps(document))

    def _write_on_board(self, name: str) -> None:
        document, tables = self._document()
        document["embedded"] = name
        tables.pop("smart", None)
        self._drop_key("smart")
        _replace(self._file, tomlkit.dumps(document))

    def _document(self) -> tuple[tomlkit.TOMLDocument, MutableMapping[str, object]]:
        try:
            document = tomlkit.parse(self._text() or "")
        except TOMLKitError as error:
            raise UsageError(f"The settings file {self._file} can't be read: {error}.") from error
        tables = document.get("models")
        if not isinstance(tables, MutableMapping):
            tables = document["models"] = tomlkit.table(is_super_table=True)
        return document, tables

    def _drop_key(self, role: str) -> None:
        secret = secret_of(role)
        if secret in self._secrets.names():
            self._secrets.remove(secret)

    def _put_back(self, text: str | None, secret: str, value: str | None) -> None:
        if text is None:
            self._file.unlink(missing_ok=True)
        elif text != self._text():
            _replace(self._file, text)
        now = self._secrets.of((secret,)).get(secret)
        if value is not None and now != value:
            self._secrets.store(secret, value)
        elif value is None and now is not None:
            self._secrets.remove(secret)

    # --- first messages -------------------------------------------------------------------------

    def first_messages(self) -> Sequence[FirstMessage]:
        """The first messages, sorted by name."""
        try:
            held = json.loads(self._kept.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise UsageError(f"The first messages in {self._kept} can't be read: {error}.") from error
        found = held.items() if isinstance(held, dict) else ()
        return [FirstMessage(str(name), str(text)) for name, text in sorted(found)]

    def keep_first_message(self, message: FirstMessage) -> None:
        """Store a first message, replacing one of the same name.

        Raises:
            UsageError: there are too many, or it can't be written.
        """
        known = {one.name: one.text for one in self.first_messages()}
        if message.name not in known and len(known) >= _MOST:
            raise UsageError(f"There are already {_MOST} first messages. Forget one of them first.")
        self._keep({**known, message.name: message.text})

    def forget_first_message(self, name: str) -> None:
        """Delete a first message.

        Raises:
            UsageError: there is no first message of this name, or the file can't be written.
        """
        known = {one.name: one.text for one in self.first_messages()}
        if known.pop(name, None) is None:
            raise UsageError(f"There is no first message {name!r}.")
        self._keep(known)

    def _keep(self, known: dict[str, str]) -> None:
        replace_json(self._kept, dict(sorted(known.items())), "first messages")


def _demand_role(name: str, url: str | None, settings: Settings) -> None:
    """Check that a role's model is in force: a file in the working directory takes precedence. `url`: None: no model."""
    own = settings.models.get(name)
    holds = own is None if url is None else own is not None and own.base_url == url
    if not holds:
        raise UsageError(
            f"The file {Path('iact.toml').absolute()} defines the models and overrides the choice "
            "here. Change the model in that file."
        )


def _demand_on_board(name: str, settings: Settings) -> None:
    if not settings.without_endpoint:
        raise UsageError(
            "An endpoint is set (OPENAI_BASE_URL or OPENAI_API_KEY, or base_url, api_key or [models.smart] in an iact.toml) "
            "and takes precedence over every model on board. Remove that setting first."
        )
    if settings.embedded != name:
        raise UsageError(
            f"IACT_EMBEDDED, or embedded in {Path('iact.toml').absolute()}, takes precedence over the choice here. Change "
            "the model there."
        )


def value_of_key(secrets: Secrets, name: str) -> str:
    """The key behind the name of an environment variable or of a stored secret. Blocks.

    Raises:
        UsageError: it is neither.
    """
    value = os.environ.get(name) or secrets.of((name,)).get(name)
    if not value:
        raise UsageError(
            f"{name} is neither a variable of the environment nor a stored secret; store it with iact secret set {name}."
        )
    return value


def _terms(given: Settings | ModelSettings) -> RoleTerms:
    return RoleTerms(
        dialect=given.dialect,
        takes=given.takes,
        price_prompt=given.price_prompt,
        price_cached=given.price_cached,
        price_completion=given.price_completion,
    )


def secret_of(role: str) -> str:
    """The name under which the key of a role is stored."""
    return f"MODEL_{role.upper().replace('-', '_')}_KEY"


def _replace(file: Path, text: str) -> None:
    """Write a file atomically. A symbolic link stays a link."""
    file = file.resolve()
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    whole_file.replace(file, text.encode(), mode=mode)
