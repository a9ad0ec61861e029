"""A question to a person as plain text, for people who decide at a terminal or through another program.

Nothing in a value is removed or invisible, and no value can look like one of our own lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from iact.core.characters import escaped
from iact.core.gate.provenance import OWN, USER
from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAsk
from iact.core.records.form_values import FormField
from iact.core.records.forms import FormAsk
from iact.core.records.hosts import HostAsk, rule_of
from iact.core.records.record import Record
from iact.core.records.skills import SkillOffer

NO_VALUES: Final[Mapping[str, str]] = {}
_SENTENCE: Final = 600
"""How long a sentence of the gate may be, in characters."""
_WIDTH: Final = 100
"""The width of one row of a value, in characters."""


def told(question: Record, values: Mapping[str, str] = NO_VALUES) -> str:
    """The complete text of any question. `values`: its long values (`core.stored.question_values`)."""
    if isinstance(question.content, HostAsk):
        return host_words(question.agent, question.content)
    if isinstance(question.content, FormAsk):
        return form_words(question.agent, question.content)
    assert isinstance(question.content, ClearanceAsk)
    return words(question.agent, question.content, values)


def about(question: Record) -> dict[str, JSON]:
    """What is asked, for programs: the whole call, the host, or the form to fill in."""
    asked = question.content
    if isinstance(asked, HostAsk):
        return {"module": asked.module, "host": asked.host, "port": asked.port}
    if isinstance(asked, FormAsk):
        said: dict[str, JSON] = {"function": asked.function, "message": asked.message}
        if asked.by_plan:
            said["title"] = asks_title(asked)
        if asked.skill is not None:
            files: dict[str, JSON] = {one.path: one.text for one in asked.skill.files}
            return {**said, "skill": asked.skill.name, "description": asked.skill.description, "files": files}
        if asked.tool is not None:
            said |= {"tool": asked.tool.name, "arguments": dict(asked.tool.arguments)}
        return {**said, "url": asked.url} if asked.url else {**said, "schema": dict(schema_of(asked.fields))}
    assert isinstance(asked, ClearanceAsk)
    long: dict[str, JSON] = {
        name: {"bytes": value.size, "media": value.media, "sha256": value.sha256}
        for name, value in (asked.attached or {}).items()
        if value.sha256
    }
    call: dict[str, JSON] = {
        "function": asked.function,
        "arguments": dict(asked.params),
        "impact": asked.impact,
    }
    return {**call, "attached": long} if long else call


def has_long_values(question: Record) -> bool:
    """Whether a question names values by their digests, because they are too long for its record."""
    asked = question.content
    return isinstance(asked, ClearanceAsk) and any(value.sha256 for value in (asked.attached or {}).values())


def words(agent: str, asked: ClearanceAsk, values: Mapping[str, str] = NO_VALUES) -> str:
    """The complete text of a question, for a terminal. No value can look like one of our own lines: its lines follow a
    bar. `values`: the texts of its long values, where they are to be shown."""
    lines = [
        _inline(f"{agent} asks to run {asked.function} (impact {asked.impact:g}).", _SENTENCE),
        *(_inline(one, _SENTENCE) for one in (asked.reason, asked.why) if one),
    ]
    for name, value in asked.params.items():
        labels = asked.provenance.get(name, ())
        source = f" (from {', '.join(labels)})" if labels else ""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"  {_inline(f'{name}{source}', _SENTENCE)}: {_about(text)}", *_quoted(text)]
    for name, about in (asked.attached or {}).items():
        if about.sha256:
            size = f"{about.size} bytes of {_inline(about.media)}, SHA-256 {about.sha256}"
            lines.append(f"  {_inline(name)}: {size}")
            if name in values:
                lines += [f"  | {line}" for line in _lines(values[name])]
    return "\n".join(_exact(line) for line in lines)


def host_words(agent: str, asked: HostAsk) -> str:
    """The text of a question about a host, for a terminal."""
    host = _inline(rule_of(asked.host, asked.port), _SENTENCE)
    who = f"one of {', '.join(asked.agents)}" if len(asked.agents) > 1 else agent
    new = "" if asked.allowed else ", which has not been allowed so far"
    lines = [
        f"{_inline(who, _SENTENCE)}: the module {asked.module} wants to reach {host}{new}.",
        *(f"  {_inline(address, 2 * _SENTENCE)}" for address in asked.addresses),
        _inline(named_by(asked), _SENTENCE),
    ]
    if asked.private:
        lines += [_inline(carried_by(asked), 2 * _SENTENCE)]
        lines += [f"  | {line}" for program in asked.programs for line in _lines(program)]
    lines.append("If you allow it, the module can send data there and receive data from there.")
    if asked.private:
        lines.append(LASTS)
    return "\n".join(_exact(line) for line in lines)


LASTS: Final = "Your yes lets it send there until this session ends."
"""How long a person's yes to a connection holds that can carry something out."""


def carried_by(asked: HostAsk) -> str:
    """What a connection can carry out, as a sentence for people."""
    read = ", ".join(asked.strange)
    return f"Its program may follow what strangers wrote ({read}), and can send what isn't public: {', '.join(asked.private)}."


def named_by(asked: HostAsk) -> str:
    """Where the host of a question was named first, as a sentence for people."""
    if asked.origins == (USER,):
        return "You named this host."
    if not asked.origins:
        return "No call names this host: a page may lead there, or a program asks on its own."
    strangers = [label for label in asked.origins if label not in OWN]
    if strangers:
        return f"The agent named this host, after it had read from: {', '.join(strangers)}."
    return "The agent named this host on its own."


def asks_title(asked: FormAsk) -> str:
    """The question of a form as one line."""
    if asked.skill is not None:
        return f"The skill {asked.skill.name} is offered for your approval"
    if asked.tool is not None:
        return f"The tool {asked.tool.name} of your front end is called"
    if asked.by_plan:
        return "A result waits for your yes" if asked.accepts else "A step of a plan is yours"
    return f"{asked.function} asks you something"


def skill_words(agent: str, offer: SkillOffer) -> str:
    """A skill that an agent offers, for a terminal: all of it, each of its lines after a bar."""
    lines = [
        _inline(f"{agent} wrote a skill, and offers it to you: {offer.name}", _SENTENCE),
        *(f"  | {line}" for line in _lines(offer.description)),
        "It replaces the skill of this name." if offer.replaces else "There is no skill of this name yet.",
    ]
    if offer.read:
        lines.append(
            _inline(
                f"Its agent and its files have received untrusted content from: {', '.join(offer.read)}",
                2 * _SENTENCE,
            )
        )
    for one in offer.files:
        about = "" if one.change == "new" and not offer.replaces else f" ({one.change})"
        lines += [_inline(f"  {one.path}{about}:", _SENTENCE), *(f"  | {line}" for line in _lines(one.text))]
        if one.differs:
            lines += ["  What is changed in it:", *(f"  | {line}" for line in _lines(one.differs))]
    lines += [_inline(f"  {path} is left out.", _SENTENCE) for path in offer.gone]
    last = "If you approve it, agents in this and later sessions find it, trust its text, and may run its scripts."
    return "\n".join([*lines, last])


def form_words(agent: str, asked: FormAsk) -> str:
    """A module's question, for a terminal: its words after a bar, and where the answer goes; or the offered skill."""
    if asked.skill is not None:
        return skill_words(agent, asked.skill)
    if asked.tool is not None:
        shown = json.dumps(dict(asked.tool.arguments), ensure_ascii=False)
        named = _inline(f"{agent} calls {asked.tool.name}, a tool of your front end:", _SENTENCE)
        return "\n".join([named, *(f"  | {line}" for line in _lines(shown)), "You can answer in its place."])
    if asked.by_agent:
        named = _inline(f"An agent that works on a step of {agent} asks:", _SENTENCE)
        goes_on = "Your answer goes to this agent, which then goes on."
        return "\n".join([named, *(f"  | {line}" for line in _lines(asked.message)), goes_on])
    if asked.by_plan:
        head = f"A step of {agent} is yours:"
        goes_on = "What you enter is the result of the step, and the plan goes on with it."
        if asked.accepts:
            head = f"{agent} goes on if you accept a result:"
            goes_on = "What you enter is told to the model that makes it again."
        lines = [_inline(head, _SENTENCE), *(f"  | {line}" for line in _lines(asked.message))]
        return "\n".join([*lines, *(f"  {field_words(one)}" for one in asked.fields), goes_on])
    module = asked.function.split(".", 1)[0]
    lines = [
        _inline(f"{agent}: {asked.function} asks you something. These are the words of the module {module}:")
    ]
    lines += [f"  | {line}" for line in _lines(asked.message)]
    if asked.url:
        lines += ["It wants you to open this address yourself:", f"  {asked.url}"]
    lines += [f"  {field_words(one)}" for one in asked.fields]
    goes = "Whether you did so is reported" if asked.url else "Your answer goes"
    lines += (
        ["Your input is stored in the journal of this session, so do not enter a password."]
        if asked.fields
        else []
    )
    return "\n".join([*lines, f"{goes} to the module {module}, which may send it on."])


def field_words(field: FormField) -> str:
    """One field of a form as a line, for a terminal."""
    named = field.title or field.name
    kinds = {"number": "a number", "integer": "a whole number", "boolean": "yes or no"}
    about = [kinds[field.kind]] if field.kind in kinds else []
    if field.choices:
        shown = [
            f"{value} ({title})" if title and title != value else value
            for value, title in zip(field.choices, field.titles or field.choices, strict=True)
        ]
        about.append(f"{'some' if field.kind == 'choices' else 'one'} of {', '.join(shown)}")
    about += [field.format] if field.format else []
    about += ["needed"] if field.required else []
    about += [f"default {json.dumps(field.default, ensure_ascii=False)}"] if field.default is not None else []
    told = f"{named} [{'; '.join(about)}]" if about else named
    return _inline(f"{told}: {field.description}" if field.description else told, 2 * _SENTENCE)


def schema_of(fields: Sequence[FormField]) -> Mapping[str, JSON]:
    """The JSON Schema of a form, for other programs that ask their users."""
    needed: list[JSON] = [one.name for one in fields if one.required]
    return {"type": "object", "properties": {one.name: _schema(one) for one in fields}, "required": needed}


def _schema(field: FormField) -> JSON:
    said: dict[str, JSON] = {"title": field.title, "description": field.description, "format": field.format}
    found: dict[str, JSON] = {key: value for key, value in said.items() if value}
    if field.default is not None:
        found["default"] = field.default
    least, most = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}.get(
        field.kind, ("minimum", "maximum")
    )
    for key, bound in ((least, field.least), (most, field.most)):
        if bound is not None:
            found[key] = int(bound) if float(bound).is_integer() else bound
    match field.kind:
        case "choice":
            return {"type": "string", **_choices(field, "oneOf"), **found}
        case "choices":
            return {"type": "array", "items": _choices(field, "anyOf"), **found}
        case "text":
            return {"type": "string", **found}
        case kind:
            return {"type": kind, **found}


def _choices(field: FormField, titled: str) -> dict[str, JSON]:
    """The available choices. `titled`: the keyword for values that have titles."""
    if not field.titles:
        return {"enum": [*field.choices]}
    pairs = zip(field.choices, field.titles, strict=True)
    return {titled: [{"const": value, "title": title or value} for value, title in pairs]}


def _exact(text: str) -> str:
    """Escape a text for a person who decides by it: nothing is removed and nothing is invisible."""
    return escaped(text, every=True)


def _inline(text: str, limit: int = 200) -> str:
    """The text as part of one line."""
    line = " ".join(_exact(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _about(text: str) -> str:
    """A value that fits after its name, or the length of the one that follows."""
    lines = _lines(text)
    return lines[0] if len(lines) == 1 else f"{len(text)} characters in {len(lines)} lines"


def _quoted(text: str) -> list[str]:
    lines = _lines(text)
    return [f"  | {line}" for line in lines] if len(lines) > 1 else []


def _lines(text: str) -> list[str]:
    """The lines that a terminal would make of a text, at least one; long lines are cut into several."""
    rows = [
        row[at : at + _WIDTH]
        for row in _exact(text).splitlines()
        for at in range(0, max(1, len(row)), _WIDTH)
    ]
    return rows or [""]
