"""Generate the reference pages in this folder from the program: python -m docs.reference.generated

`commands.md` comes from the command line, `settings.md` from the settings, `actions.md` from the core actions,
`wire.md` and the page's types from the messages of the websocket, the page's list of ways of working from what is said
about each, and `protocol.md` from the protobuf file. The tables of failures in the guides of faces are written, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import iact.settings
from docs.reference import embedding, failures, ways, wire
from iact.cli import program
from iact.core.language.actions import CORE_ACTIONS, ActionSpec

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
PROTO: Final = ROOT / "protos" / "iact" / "ext_module" / "v1" / "ext_module.proto"

_NOTE: Final = (
    "<!-- Written by docs/reference/generated.py from {source}; run: python -m docs.reference.generated -->"
)


def _page(title: str, source: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", _NOTE.format(source=source), *(part for part in parts if part))) + "\n"


# --- commands ---------------------------------------------------------------------------------------


def commands() -> str:
    """Every command with its options."""
    intro = (
        "Every command takes `--data DIR` (where sessions are stored) and `--debug` (show tracebacks). Commands that "
        "take `--json` print JSON when it is given. `iact completion bash`, `zsh` or `fish` prints a shell script that "
        "completes commands and options."
    )
    return _page(
        "Commands", "iact/cli/", intro, *_commands(program, click.Context(program, info_name="iact"))
    )


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    for name, one in group.commands.items():
        inner = click.Context(one, info_name=name, parent=context)
        if isinstance(one, click.Group):
            yield from _commands(one, inner)
        else:
            yield _command(one, inner)


def _command(command: click.Command, context: click.Context) -> str:
    shown = [one for one in command.params if one.name not in ("data", "debug")]
    shown.sort(key=lambda one: isinstance(one, click.Option))
    words = [_usage(one, context) for one in shown]
    told = inspect.cleandoc(command.help or "")
    lines = [f"## {context.command_path}", "", f"`{' '.join((context.command_path, *words))}`", "", told, ""]
    described = [one for one in shown if isinstance(one, click.Option) and one.help and one.name != "as_json"]
    lines += [f"- `{_written(one)}`: {one.help}" for one in described]
    return "\n".join(lines).rstrip()


def _written(one: click.Option) -> str:
    """An option with its value, as it is typed."""
    choices = "|".join(one.type.choices) if isinstance(one.type, click.Choice) else ""
    value = "" if one.is_flag else f" {one.metavar or choices or (one.name or '').upper()}"
    return f"{one.opts[-1]}{value}"


def _usage(one: click.Parameter, context: click.Context) -> str:
    if not isinstance(one, click.Option):
        return one.make_metavar(context)
    text = _written(one)
    if one.multiple:
        return f"[{text}]..."
    return text if one.required else f"[{text}]"


# --- settings ---------------------------------------------------------------------------------------


def settings() -> str:
    """Every setting: its name in `iact.toml`, its environment variable, its default."""
    intro = (
        "Settings are read from `iact.toml` in the working directory or the data directory. Environment variables "
        "override them. Without an endpoint, the embedded model is used."
    )
    tables = [
        model
        for _, model in inspect.getmembers(iact.settings, inspect.isclass)
        if issubclass(model, BaseModel) and model is not BaseModel
    ]
    whole = next(model for model in tables if model.__name__ == "Settings")
    rows = _rows(whole, "")
    head = "| in `iact.toml` | variable | default | meaning |\n|---|---|---|---|"
    return _page("Settings", "iact/settings.py", intro, "\n".join((head, *rows)))


def _rows(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if inspect.isclass(inner) and issubclass(inner, BaseModel):
            yield from _rows(inner, f"{prefix}{name}.")
            continue
        of = get_args(inner)[1] if get_origin(inner) is dict else None
        if inspect.isclass(of) and issubclass(of, BaseModel):
            yield from _rows(of, f"{prefix}{name}.NAME.")
            continue
        variable = iact.settings.variable_of(name) if not prefix else None
        described = (field.description or "").replace("|", "\\|")
        yield f"| `{prefix}{name}` | {f'`{variable}`' if variable else ''} | {_default(field)} | {described} |"


def _default(field: FieldInfo) -> str:
    if field.default is not PydanticUndefined:
        return "" if field.default is None else f"`{field.default}`"
    return "your platform's directory for user data" if field.annotation is Path else ""


# --- actions ----------------------------------------------------------------------------------------


def actions() -> str:
    """Every core action with its arguments."""
    intro = (
        "Every agent has these actions. Modules add functions of their own; `iact module describe` shows a module's "
        "functions."
    )
    return _page("Actions", "core/language/actions.py", intro, *map(_action, CORE_ACTIONS.values()))


def _action(spec: ActionSpec) -> str:
    lines = [f"## {spec.name}", "", spec.summary, ""]
    for name, schema in spec.properties.items():
        kind = str(schema.get("type", "any"))
        choices = schema.get("enum")
        if isinstance(choices, list):
            kind = ", ".join(f"`{one}`" for one in choices)
        place = " (the body)" if name == spec.body else ""
        lines.append(f"- `{name}`{'' if name in spec.required else ', optional'}: {kind}{place}")
    return "\n".join(lines).rstrip()


# --- the protocol -----------------------------------------------------------------------------------


def protocol() -> str:
    """The contract of ext-modules, including its comments."""
    intro = (
        "An ext-module is a gRPC server on the unix socket that `IACT_SOCKET` names. It also serves the standard "
        "health and reflection services. `iact module check PATH` checks a module in any language against this protocol."
    )
    return _page(
        "The ext-module protocol", "protos/", intro, f"```protobuf\n{PROTO.read_text('utf-8').strip()}\n```"
    )


# --- embedding --------------------------------------------------------------------------------------


def embedded() -> str:
    """The calls of a program that embeds iact."""
    return _page("Embedding", "docs/reference/embedding.py", embedding.INTRO, *embedding.body())


PAGES: Final = {
    "embedding.md": embedded,
    "commands.md": commands,
    "settings.md": settings,
    "actions.md": actions,
    "wire.md": wire.page,
    "protocol.md": protocol,
}


def main() -> None:
    """Write every page."""
    for name, write in PAGES.items():
        (HERE / name).write_text(write(), encoding="utf-8")
    wire.TYPES.write_text(wire.typescript(), encoding="utf-8")
    ways.LIST.write_text(ways.javascript(), encoding="utf-8")
    failures.write()


if __name__ == "__main__":
    main()
