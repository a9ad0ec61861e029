"""Commands about models: `model list`, `model add`, `model test`, `model use`, `model remove`."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import random
import re
import shutil
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

from iact import signals
from iact.choices import Choices, value_of_key
from iact.commands import remote
from iact.core.clock import SystemClock
from iact.core.errors import IactError, ModelError, UsageError
from iact.core.session.models import RoleModel, Tried, ask_shortly, list_models, try_model
from iact.models import gguf, hub
from iact.models.added import (
    NAME,
    AddedEndpoint,
    AddedFile,
    AddedModel,
    AddedModels,
    chosen_file,
    name_of_file,
    no_such_model,
    place_of,
)
from iact.models.download import FetchProgress, HubDownload, digest_of, fetch, fetch_from_hub
from iact.models.presets import preset
from iact.models.weights import KNOWN, ChosenFile, ModelFile, OwnFile, cache_folder, partial_path
from iact.sandbox.secrets import Secrets
from iact.settings import Settings, make_data_directory
from iact.web.ports import RoleChoice
from iact.wiring import endpoint_of, role_of

_Result = TypeVar("_Result")

_LICENCE: Final = "apache-2.0"
"""Of both models that come with the product."""

_LOADING_SECONDS: Final = 300
"""For how long a file that is tried may be loaded. From a slow disk, 30 GB take that long."""

_ANSWER_SECONDS: Final = 180
"""For how long it may write ten words. A model that needs longer for them is of no use in a
dialogue."""

_TELL_SECONDS: Final = 10
"""How often a person reads that it still goes on."""

_SHOWN: Final = 12
"""How many models of an endpoint are named where a person must choose one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One model as `model list` shows it."""

    name: str
    """Empty for an endpoint that only the settings name."""
    kind: Literal["board", "hub", "file", "endpoint"]
    source: str
    in_use: bool
    """Whether it answers (plays the role `smart`)."""
    model: str
    url: str = ""
    size: int = 0
    """In bytes."""
    present: bool = True
    """Whether its file is here; true for an endpoint."""
    sha256: str = ""
    licence: str = ""
    path: str = ""


# --- list -----------------------------------------------------------------------------------------


def show(settings: Settings, *, as_json: bool) -> int:
    """Print the models, and mark the one that answers.

    Raises:
        UsageError: the list of added models can't be read.
    """
    listed = _rows(settings)
    if as_json:
        print(json.dumps([asdict(row) for row in listed], ensure_ascii=False, indent=2))
        return 0

    width = max(len(row.name) for row in listed)
    for row in listed:
        star = "*" if row.in_use else " "
        print(f"{star} {row.name or '-':<{width}}  {_about(row)}")
    if not any(row.in_use for row in listed):
        reason = chosen_file(settings.embedded, settings.data).reason
        print(f"note: no model answers: {reason}", file=sys.stderr)
    return 0


def _rows(settings: Settings) -> list[ModelRow]:
    current = _current(settings)
    listed = [_board_row(weights, current) for weights in KNOWN.values()]
    listed += [_added_row(name, model, current) for name, model in AddedModels(settings.data).all().items()]
    if not any(row.in_use for row in listed) and isinstance(current, RoleModel):
        named = ModelRow(
            name="",
            kind="endpoint",
            source="settings",
            in_use=True,
            model=current.model or "",
            url=current.url,
        )
        listed.append(named)
    return listed


def _current(settings: Settings) -> RoleModel | str:
    """The endpoint that plays the role `smart`, or the name of the model on board ("" if none answers)."""
    own = settings.models.get("smart")
    if own is not None:
        return role_of(settings, "smart", own)
    endpoint = endpoint_of(settings)
    if endpoint is not None:
        return RoleModel(url=endpoint.url, key=endpoint.key, model=endpoint.smart, context=endpoint.context)
    weights = chosen_file(settings.embedded, settings.data).weights
    if isinstance(weights, ModelFile):
        return weights.key
    return "" if weights is None else weights.name


def _board_row(weights: ModelFile, current: RoleModel | str) -> ModelRow:
    return ModelRow(
        name=weights.key,
        kind="board",
        source=f"hub:{weights.repository}:{weights.remote}",
        in_use=weights.key == current,
        model=weights.name,
        size=weights.size,
        present=weights.present,
        sha256=weights.sha256,
        licence=_LICENCE,
        path=str(weights.path),
    )


def _added_row(name: str, model: AddedModel, current: RoleModel | str) -> ModelRow:
    if isinstance(model, AddedEndpoint):
        answers = isinstance(current, RoleModel) and _same(model, current)
        return ModelRow(
            name=name, kind="endpoint", source=model.source, in_use=answers, model=model.model, url=model.url
        )
    file = OwnFile(name, Path(model.path), model.size, model.sha256)
    return ModelRow(
        name=name,
        kind=model.kind,
        source=model.source,
        in_use=name == current,
        model=name,
        size=model.size,
        present=file.present,
        sha256=model.sha256,
        licence=model.licence,
        path=model.path,
    )


def _same(model: AddedEndpoint, current: RoleModel) -> bool:
    return model.url.rstrip("/") == current.url.rstrip("/") and model.model == (current.model or "")


def _about(row: ModelRow) -> str:
    """What a row says after its name."""
    if row.kind == "endpoint":
        return f"{row.model or 'its only model'} at {row.url} ({row.source})"

    parts = [row.source, f"{row.size / 1e6:,.0f} MB"]
    if row.kind == "board":
        parts.insert(0, f"{row.model}, on board")
    if row.licence:
        parts.append(row.licence)
    if not row.present:
        parts.append("not downloaded" if row.kind != "file" else "its file is missing")
    return ", ".join(parts)


# --- add ------------------------------------------------------------------------------------------


def add(settings: Settings, source: str, *, name: str, model: str, url: str, key: str, as_json: bool) -> int:
    """Add a model, and print its name. `model`, `url`, `key`: see the command's options.

    Raises:
        UsageError: the source, the name or an option can't be used.
        ModelUnreachable: a file can't be downloaded.
    """
    kind, _, rest = source.partition(":")
    is_file = kind in ("hub", "file")
    if is_file and (model or url or key):
        raise UsageError("--model, --url and --key are for presets of providers. Leave them out.")
    if name and (not NAME.fullmatch(name) or name in (*KNOWN, "off")):
        raise UsageError(
            f"{name!r} can't be the name of a model; use small letters, digits, dots and dashes, and another name than "
            f"{', '.join(KNOWN)} and off."
        )
    make_data_directory(settings)
    if kind == "hub":
        name, added = _from_hub(settings, rest, name)
    elif kind == "file":
        name, added = _from_file(settings, rest, name)
    else:
        name, added = _from_preset(settings, source, name, model, url, key)
    AddedModels(settings.data).put(name, added)

    row = _added_row(name, added, _current(settings))
    print(json.dumps(asdict(row), ensure_ascii=False) if as_json else name)
    if not row.in_use:
        _tell(f"added; to let it answer: iact model use {name}")
    return 0


def _from_hub(settings: Settings, text: str, name: str) -> tuple[str, AddedModel]:
    found = hub.look_up(hub.HubSource.of(text))
    source = f"hub:{found.repository}:{found.file}"
    name = name or name_of_file(found.file)
    _demand_free(settings, name, source)
    _tell(
        f"{found.file}: {found.size / 1e6:,.0f} MB, licence {found.licence or 'not stated'}, SHA-256 {found.sha256[:12]}…"
    )

    target = HubDownload(found, place_of(found.file, found.sha256))
    fetch_from_hub(target, _Printed())
    try:
        facts = gguf.read(target.path)
    except UsageError:
        _delete(target.path)
        raise
    added = AddedFile(
        kind="hub",
        source=source,
        path=str(target.path),
        size=found.size,
        sha256=found.sha256,
        licence=found.licence or facts.licence,
        revision=found.revision,
        trained=facts.context,
    )
    return name, added


def _from_file(settings: Settings, text: str, name: str) -> tuple[str, AddedModel]:
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")
    if gguf.is_part(path.name):
        raise UsageError(
            f"{path.name} is one of several parts of a model; only models in one file can be used here."
        )
    facts = gguf.read(path)
    name = name or name_of_file(path.name)
    _demand_free(settings, name, f"file:{path}")
    _tell(f"reading {path.name} for its digest")
    added = AddedFile(
        kind="file",
        source=f"file:{path}",
        path=str(path),
        size=path.stat().st_size,
        sha256=digest_of(path),
        licence=facts.licence,
        trained=facts.context,
    )
    return name, added


def _from_preset(
    settings: Settings, source: str, name: str, model: str, url: str, key: str
) -> tuple[str, AddedModel]:
    chosen = preset(source)
    address = url or chosen.url
    if not re.fullmatch(r"https?://\S+", address):
        raise UsageError(
            f"{address!r} is not the address of an endpoint; it begins with http:// or https://."
        )
    name = name or chosen.name
    known = AddedModels(settings.data).all().get(name)
    another = known is not None and not (
        isinstance(known, AddedEndpoint)
        and known.source == chosen.name
        and known.model == (model or known.model)
    )
    if another:
        raise _taken(name)

    key_name = key
    value = ""
    if key:
        value = value_of_key(Secrets(settings.data), key)
    elif chosen.needs_key:
        value = _typed_key(chosen.title, chosen.keys)
        key_name = f"ENDPOINT_{re.sub(r'[^A-Z0-9]', '_', name.upper())}_KEY"
    model = model or _only_model(address, value)

    # What can fail is done: nothing is kept of a model that could not be added.
    if not key and value:
        Secrets(settings.data).store(key_name, value)
    if chosen.about:
        _tell(chosen.about)
    return name, AddedEndpoint(source=chosen.name, url=address, model=model, key=key_name)


def _typed_key(title: str, keys: str) -> str:
    if sys.stdin.isatty():
        _tell(f"a key of {title} is made at {keys}")
        value = getpass.getpass(f"Key of {title}: ")
    else:
        value = sys.stdin.read()
    if not value.strip():
        raise UsageError(
            f"{title} needs a key: type it, give it on standard input, or name the variable that holds it with --key."
        )
    return value.strip()


def _only_model(url: str, key: str) -> str:
    listing = list_models(url, key or None)
    if listing.fault:
        raise UsageError(
            f"{url} does not answer ({listing.fault}), so its models are not known; name one with --model."
        )
    if listing.refused:
        raise UsageError(f"{url} rejects the key (HTTP {listing.status}).")
    if len(listing.names) == 1:
        return listing.names[0]
    some = ", ".join(listing.names[:_SHOWN])
    more = ", …" if len(listing.names) > _SHOWN else ""
    has = f": {some}{more}" if some else ""
    raise UsageError(f"{url} has {len(listing.names) or 'no list of'} models; choose one with --model{has}.")


def _demand_free(settings: Settings, name: str, source: str) -> None:
    """Check that a name is free, or is already that of the same source."""
    known = AddedModels(settings.data).all().get(name)
    if known is not None and known.source != source:
        raise _taken(name)


def _taken(name: str) -> UsageError:
    return UsageError(
        f"There is already a model {name!r}; choose another name with --name, or remove that one."
    )


class _Printed:
    """Prints how far a download is: on a terminal in one line, otherwise now and then."""

    def __init__(self) -> None:
        self._in_place = sys.stderr.isatty()
        self._told = -1
        self._phase = ""

    def __call__(self, progress: FetchProgress) -> None:
        if progress.phase == "waiting":
            _tell("waiting for another download of the same file")
        elif progress.phase == "checking":
            self._end_line()
            _tell("checking its digest")
        elif progress.phase != "ready":
            self._print(progress)

    def _print(self, progress: FetchProgress) -> None:
        percent = 100 * progress.done // progress.total
        line = f"{progress.done // 10**6:,} of {progress.total // 10**6:,} MB ({percent} %)"
        if self._in_place:
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
        elif percent // 10 != self._told:
            self._told = percent // 10
            _tell(line)

    def _end_line(self) -> None:
        if self._in_place:
            print(file=sys.stderr)


# --- test -----------------------------------------------------------------------------------------


def test(settings: Settings, name: str, *, as_json: bool) -> int:
    """Send a model one short request, and print what works.

    Raises:
        UsageError: there is no such model.
        IactError: it does not answer; the message says why.
    """
    wanted = _wanted(settings, name)
    tried = signals.run(_try(settings, wanted))
    if as_json:
        about = {
            "model": tried.model, "answers": not tried.fault, "answer": tried.answer, "fault": tried.fault,
            "streams": tried.pieces > 1, "tools": tried.tools, "first_seconds": tried.first_ms / 1000,
            "seconds": tried.ms / 1000,
        }  # fmt: skip
        print(json.dumps(about, ensure_ascii=False))
        return 1 if tried.fault else 0
    if tried.fault:
        raise IactError(tried.fault)
    print(_sentence(tried))
    return 0


def _wanted(settings: Settings, name: str) -> RoleModel | str:
    """The model to test: an endpoint's, or the name of a file."""
    if not name:
        current = _current(settings)
        if current == "":
            raise UsageError(chosen_file(settings.embedded, settings.data).reason)
        return current
    if name in KNOWN:
        return name
    model = _added(settings, name)
    return _role_model(settings, model) if isinstance(model, AddedEndpoint) else name


def _added(settings: Settings, name: str) -> AddedModel:
    model = AddedModels(settings.data).all().get(name)
    if model is None:
        raise no_such_model(name)
    return model


def _role_model(settings: Settings, model: AddedEndpoint) -> RoleModel:
    key = value_of_key(Secrets(settings.data), model.key) if model.key else None
    return RoleModel(url=model.url, key=key, model=model.model, context=settings.context)


async def _try(settings: Settings, wanted: RoleModel | str) -> Tried:
    if isinstance(wanted, RoleModel):
        return await try_model(wanted)

    chosen = chosen_file(wanted, settings.data)
    if chosen.weights is None:
        return Tried(model=wanted, fault=chosen.reason)
    if not chosen.weights.present:
        # How long a download takes says nothing about the model.
        await asyncio.to_thread(fetch, chosen.weights, _Printed())
    return await _try_file(chosen, chosen.weights.size)


async def _try_file(chosen: ChosenFile, size: int) -> Tried:
    """Load a model's file, and ask it. Both end in time, and say meanwhile that they go on."""
    from iact.models.embedded import EmbeddedModel

    clock = SystemClock()
    model = EmbeddedModel(clock=clock, rng=random.Random(), selection=chosen, bare=True)
    name = model.profile.name
    try:
        # Loading it is no part of how fast it answers.
        await _in_time(f"loading {name} ({size / 1e6:,.0f} MB)", _LOADING_SECONDS, model.warm())
        return await _in_time(f"asking {name} for ten words", _ANSWER_SECONDS, ask_shortly(model, clock))
    except ModelError as error:
        return Tried(model=name, fault=str(error))
    except TimeoutError:
        done = "did not answer" if model.loaded else "was not loaded"
        seconds = _ANSWER_SECONDS if model.loaded else _LOADING_SECONDS
        return Tried(
            model=name,
            fault=f"{name} {done} within {seconds} seconds: it is too large for this machine, or the machine is busy. Try a "
            "smaller file, or again later.",
        )
    finally:
        await model.close()


async def _in_time(what: str, seconds: float, work: Coroutine[object, object, _Result]) -> _Result:
    """Do some work and tell what it is, and every few seconds that it still goes on.

    Raises:
        TimeoutError: it takes longer than `seconds`.
    """
    _tell(what)
    began = time.monotonic()
    task = asyncio.ensure_future(work)
    try:
        while (spent := time.monotonic() - began) < seconds:
            rest = min(_TELL_SECONDS, seconds - spent)
            if (await asyncio.wait([task], timeout=rest))[0]:
                return task.result()
            _tell(f"still {what}: {time.monotonic() - began:.0f} s")
        raise TimeoutError
    finally:
        task.cancel()


def _sentence(tried: Tried) -> str:
    streams = f"streams (in {tried.pieces} pieces)" if tried.pieces > 1 else "sends its answer in one piece"
    calls = {True: ", takes function calls", False: ", takes no function calls (none are needed)", None: ""}
    return (
        f"{tried.model} answers, {streams}{calls[tried.tools]}; first word after {tried.first_ms / 1000:.1f} s, done "
        f"after {tried.ms / 1000:.1f} s."
    )


# --- use ------------------------------------------------------------------------------------------


def use(settings: Settings, name: str, *, as_json: bool) -> int:
    """Let a model answer from the next message on. A running server changes over at once.

    Raises:
        UsageError: there is no such model, or a setting that takes precedence names another.
    """
    added = None if name in (*KNOWN, "off") else _added(settings, name)
    if isinstance(added, AddedEndpoint):
        _use_endpoint(settings, _role_model(settings, added))
    else:
        if isinstance(added, AddedFile) and not Path(added.path).is_file():
            raise UsageError(f"The file of {name} is no longer at {added.path}; add it again.")
        _use_file(settings, name)

    if as_json:
        print(json.dumps({"name": name}))
    elif name == "off":
        print("No model on board answers from now on.")
    else:
        print(f"{name} answers from the next message on.")
    weights = KNOWN.get(name)
    if weights is not None and not weights.present:
        _tell(f"its file is downloaded when it is first needed ({weights.size / 1e6:,.0f} MB)")
    return 0


def _use_endpoint(settings: Settings, model: RoleModel) -> None:
    message: remote.Frame = {
        "type": "model.choose", "role": "smart", "url": model.url, "model": model.model, "key": model.key or "",
    }  # fmt: skip
    if remote.ask_server(settings, message) is None:
        choice = RoleChoice(role="smart", url=model.url, model=model.model or "", key=model.key or "")
        with _choices(settings) as choices:
            signals.run(choices.choose_role(choice))


def _use_file(settings: Settings, name: str) -> None:
    if remote.ask_server(settings, {"type": "model.board", "name": name}) is None:
        with _choices(settings) as choices:
            signals.run(choices.use_on_board(name))


@contextlib.contextmanager
def _choices(settings: Settings) -> Iterator[Choices]:
    """What changes the settings while no server runs."""
    make_data_directory(settings)
    yield Choices(settings, lambda opened: None)


# --- remove ---------------------------------------------------------------------------------------


def remove(settings: Settings, name: str, *, as_json: bool) -> int:
    """Take a model off the list, and delete what was downloaded for it. A model on board stays on the list.

    Raises:
        UsageError: there is no such model, or it answers now.
    """
    if any(row.in_use and row.name == name for row in _rows(settings)):
        raise UsageError(f"{name} is the model that answers; choose another with iact model use first.")
    weights = KNOWN.get(name)
    deleted = ""
    if weights is not None:
        deleted = _deleted(weights.path)
    else:
        model = _added(settings, name)
        AddedModels(settings.data).remove(name)
        deleted = _drop(settings, model)

    if as_json:
        print(json.dumps({"name": name, "deleted": deleted}))
    elif deleted:
        print(f"{name} is removed, and its file is deleted: {deleted}")
    elif weights is not None:
        print(f"{name} was not downloaded; there was nothing to delete.")
    else:
        print(f"{name} is removed.")
    return 0


def _drop(settings: Settings, model: AddedModel) -> str:
    """Delete what was kept for a model that is no longer on the list. Returns the deleted file."""
    others: Mapping[str, AddedModel] = AddedModels(settings.data).all()
    if isinstance(model, AddedEndpoint):
        secrets = Secrets(settings.data)
        ours = model.key.startswith("ENDPOINT_")
        needed = any(isinstance(other, AddedEndpoint) and other.key == model.key for other in others.values())
        if ours and not needed and model.key in secrets.names():
            secrets.remove(model.key)
        return ""

    path = Path(model.path)
    downloads = cache_folder() / "models" / "hub"
    shared = any(isinstance(other, AddedFile) and other.path == model.path for other in others.values())
    if model.kind != "hub" or shared or not path.is_relative_to(downloads):
        return ""
    return _deleted(path)


def _deleted(path: Path) -> str:
    """Delete a download, finished or not. Returns its path if there was a whole file."""
    there = path.exists()
    _delete(path)
    return str(path) if there else ""


def _delete(path: Path) -> None:
    try:
        for file in (path, partial_path(path)):
            file.unlink(missing_ok=True)
        # A download of the hub has a folder of its own.
        if path.parent.parent == cache_folder() / "models" / "hub":
            shutil.rmtree(path.parent, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"{path} can't be deleted: {error.strerror}.") from error


def _tell(line: str) -> None:
    print(f"note: {line}", file=sys.stderr, flush=True)
