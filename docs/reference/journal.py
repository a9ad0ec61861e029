"""Generate `journal.md` in this folder, and the page's types of records, from the classes in `core.records`:
python -m docs.reference.journal"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, Union, get_args, get_origin

from iact.core.ports import JSON
from iact.core.records import calls, control, dialogue, plans, session
from iact.core.records.codec import Field, Layout, layout_of, members_of
from iact.core.records.content import Content
from iact.core.records.kinds import CLASSES, FORMAT

PAGE: Final = Path(__file__).with_suffix(".md")
TYPES: Final = PAGE.parents[2] / "web" / "static" / "js" / "state" / "records.js"

_FAMILIES: Final = {
    dialogue: "Dialogue", calls: "Calls", plans: "Plans", control: "Control", session: "The session",
}  # fmt: skip

_HEAD: Final = f"""\
# The journal

<!-- Written by docs/reference/journal.py from core/records/; change that and run: python -m docs.reference.journal -->

Every record's header is a line of JSON: `n` (the record's number, from 1), `at` (UTC), `kind`, `agent` (a path), `step`
(the record's number among the records of its agent), the fields of its kind, `bytes` (the size of the body), `prev` (the
digest of the previous record) and, where needed, `wrapped` (the body is in a fence) and `seal` (the installation that
wrote the record). Fields that have their default value are omitted. A reader ignores fields that it does not know, and
keeps records of unknown kinds unchanged. A field that is missing or has the wrong type is an error. The format is
{FORMAT}.

Every field is either an outcome or derived. An *outcome* is what only the world could determine; it is taken as
recorded. A *derived* field was computed by the core: verification computes it again, and reports the first record that
differs.
"""


def page() -> str:
    """The reference of all kinds of records, as Markdown."""
    parts = [_HEAD]
    for module, title in _FAMILIES.items():
        about = inspect.cleandoc(module.__doc__ or "")
        parts.append(f"## {title}\n\n{about}\n")
        parts += [_kind(cls) for cls in CLASSES if cls.__module__ == module.__name__]
    used = {one: None for cls in CLASSES for one in _parts_of(layout_of(cls))}
    parts.append("## Parts\n\nThe objects that several kinds have in their fields.\n")
    parts += [_part(cls) for cls in sorted(used, key=lambda one: one.__name__)]
    return "\n".join(parts)


def _kind(cls: type[Content]) -> str:
    name = f"`{cls.KIND}`" + (f" with `op` `{cls.OP}`" if cls.OP else "")
    body = "" if cls.BODY is None else f" The body is {'derived' if cls.BODY.derived else 'an outcome'}."
    return f"### {name}\n\n{_about(cls)}{body}\n" + _table(cls, marks=True)


def _part(cls: type) -> str:
    return f"### {cls.__name__}\n\n{_about(cls)}\n" + _table(cls, marks=False)


def _about(cls: type) -> str:
    return " ".join(inspect.cleandoc(cls.__doc__ or "").split())


def _table(cls: type, *, marks: bool) -> str:
    rows = list(_rows(cls))
    if not rows:
        return ""
    head = "| field | type |" + (" origin |" if marks else "") + " meaning |"
    lines = [head, "|" + "---|" * head.count(" |")]
    for field, said, required in rows:
        mark = ""
        if marks:
            word = "derived" if field.mark is not None and field.mark.derived else "outcome"
            mark = f" {word} |"
        since = f" Since format {field.since}." if field.since else ""
        optional = "" if required else "?"
        lines.append(f"| `{field.key}{optional}` | {_words(field.hint)} |{mark} {said}{since} |")
    return "\n" + "\n".join(lines) + "\n"


def _rows(cls: type) -> Iterator[tuple[Field, str, bool]]:
    """The fields of a class in order, including those of groups, with their descriptions and whether they are required."""
    told = _told(cls)
    for field in layout_of(cls).fields:
        if field.group is not None:
            yield from ((one, said, must and field.required) for one, said, must in _rows(field.group.cls))
        else:
            yield field, told.get(field.name, ""), field.required


@cache
def _told(cls: type) -> Mapping[str, str]:
    """The description of each field: the string after it in the class or, for inherited fields, in the base class."""
    found: dict[str, str] = {}
    for base in cls.__bases__:
        if hasattr(base, "__dataclass_fields__"):
            found.update(_told(base))
    tree = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(tree, ast.ClassDef)
    for one, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and is_text:
            assert isinstance(after, ast.Expr)
            assert isinstance(after.value, ast.Constant)
            found[one.target.id] = " ".join(str(after.value.value).split())
    return found


def _parts_of(layout: Layout) -> Iterator[type]:
    """The classes of objects in the fields of a class, at any depth."""
    for field in layout.fields:
        if field.group is not None:
            yield from _parts_of(field.group)
        for inner in _classes(field.hint) if field.group is None else ():
            yield inner
            yield from _parts_of(layout_of(inner))


def _classes(hint: object) -> Iterator[type]:
    for member in members_of(hint):
        if member == JSON or isinstance(member, str):
            continue
        if isinstance(member, type) and hasattr(member, "__dataclass_fields__"):
            yield member
        for inner in get_args(member) if get_origin(member) is not Literal else ():
            yield from _classes(inner)


def _words(hint: object) -> str:
    """A type in the words of the page."""
    if _is_json(hint):
        return "any"
    found = [_word(one) for one in members_of(hint) if one is not type(None)]
    return " or ".join(dict.fromkeys(found))


def _word(hint: object) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in inner if one)
    if origin is tuple:
        return f"list of {_words(inner[0])}"
    if inner and isinstance(origin, type) and issubclass(origin, Mapping):
        return f"object of {_words(inner[1])}"
    plain = {str: "text", int: "number", float: "number", bool: "true or false"}
    assert isinstance(hint, type), hint
    return plain[hint] if hint in plain else f"[{hint.__name__}](#{hint.__name__.lower()})"


def _is_json(hint: object) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and {*get_args(JSON)} <= {*get_args(hint)}


# --- the page's types ---------------------------------------------------------------------------------------------


def javascript() -> str:
    """The records as types for the page's scripts."""
    used = sorted({one for cls in CLASSES for one in _parts_of(layout_of(cls))}, key=lambda one: one.__name__)
    lines = [
        "// The records of a journal (docs/reference/journal.md).",
        "// Written by docs/reference/journal.py from core/records/; run: python -m docs.reference.journal",
        "",
        "/**",
    ]
    for cls in used:
        lines += _typedef(cls.__name__, cls, ())
    for cls in CLASSES:
        said = [("kind", f'"{cls.KIND}"'), *([("op", f'"{cls.OP}"')] if cls.OP else [])]
        lines += _typedef(f"{cls.__name__}Record", cls, said)
    names = "|".join(f"{cls.__name__}Record" for cls in CLASSES)
    lines += [f" * @typedef {{{names}}} Said", " */", "", "export {};", ""]
    return "\n".join(lines)


def _typedef(name: str, cls: type, said: Iterable[tuple[str, str]]) -> list[str]:
    lines = [f" * {_about(cls)}", f" * @typedef {{object}} {name}"]
    for key, kind in said:
        lines.append(f" * @property {{{kind}}} {key}")
    for field, told, required in _rows(cls):
        key = field.key if required else f"[{field.key}]"
        lines.append(f" * @property {{{_script(field.hint)}}} {key} {told}".rstrip())
    return [*lines, " *"]


def _script(hint: object) -> str:
    if _is_json(hint):
        return "unknown"
    found = [_script_of(one) for one in members_of(hint)]
    return "|".join(dict.fromkeys(found))


def _script_of(hint: object) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "|".join(f'"{one}"' for one in inner)
    if origin is tuple:
        return f"({_script(inner[0])})[]"
    if inner and isinstance(origin, type) and issubclass(origin, Mapping):
        return f"Record<string, {_script(inner[1])}>"
    plain = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
    assert isinstance(hint, type), hint
    return plain.get(hint, hint.__name__)


def main() -> None:
    """Write the page and the types."""
    PAGE.write_text(page(), encoding="utf-8")
    TYPES.write_text(javascript(), encoding="utf-8")


if __name__ == "__main__":
    main()
