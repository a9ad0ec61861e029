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
        return _about_form(asked)

    assert isinstance(asked, ClearanceAsk)
    call: dict[str, JSON] = {
        "function": asked.function,
        "arguments": dict(asked.params),
        "impact": asked.impact,
    }
    long: dict[str, JSON] = {
        name: {"bytes": value.size, "media": value.media, "sha256": value.sha256}
        for name, value in (asked.attached or {}).items()
        if value.sha256
    }
    if long:
        call["attached"] = long
    return call


def _about_form(asked: FormAsk) -> dict[str, JSON]:
    """What a form asks, for programs. One about a skill has its files, and one with an address no fields."""
    form: dict[str, JSON] = {"function": asked.function, "message": asked.message}
    if asked.by_plan:
        form["title"] = asks_title(asked)

    if asked.skill is not None:
        files: dict[str, JSON] = {file.path: file.text for file in asked.skill.files}
        return {**form, "skill": asked.skill.name, "description": asked.skill.description, "files": files}

    if asked.tool is not None:
        form |= {"tool": asked.tool.name, "arguments": dict(asked.tool.arguments)}
    if asked.url:
        form["url"] = asked.url
    else:
        form["schema"] = dict(schema_of(asked.fields))
    return form


def has_long_values(question: Record) -> bool:
    """Whether a question names values by their digests, because they are too long for its record."""
    asked = question.content
    return isinstance(asked, ClearanceAsk) and any(value.sha256 for value in (asked.attached or {}).values())


def words(agent: str, asked: ClearanceAsk, values: Mapping[str, str] = NO_VALUES) -> str:
    """The complete text of a question, for a terminal. No value can look like one of our own lines: its lines follow a
    bar. `values`: the texts of its long values, where they are to be shown."""
    lines = [_inline(f"{agent} asks to run {asked.function} (impact {asked.impact:g}).", _SENTENCE)]
    lines += [_inline(sentence, _SENTENCE) for sentence in (asked.reason, asked.why) if sentence]

    for name, value in asked.params.items():
        labels = asked.provenance.get(name, ())
        source = f" (from {', '.join(labels)})" if labels else ""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines += [f"  {_inline(f'{name}{source}', _SENTENCE)}: {_about(text)}", *_quoted(text)]

    for name, blob in (asked.attached or {}).items():
        if not blob.sha256:
            continue
        size = f"{blob.size} bytes of {_inline(blob.media)}, SHA-256 {blob.sha256}"
        lines.append(f"  {_inline(name)}: {size}")
        if name in values:
            lines += _barred(values[name])

    return "\n".join(_exact(line) for line in lines)


def host_words(agent: str, asked: HostAsk) -> str:
    """The text of a question about a host, for a terminal."""
    host = _inline(rule_of(asked.host, asked.port), _SENTENCE)
    who = f"one of {', '.join(asked.agents)}" if len(asked.agents) > 1 else agent
    new = "" if asked.allowed else ", which has not been allowed so far"
    lines = [f"{_inline(who, _SENTENCE)}: the module {asked.module} wants to reach {host}{new}."]
    lines += [f"  {_inline(address, 2 * _SENTENCE)}" for address in asked.addresses]
    lines.append(_inline(named_by(asked), _SENTENCE))

    if asked.private:
        lines.append(_inline(carried_by(asked), 2 * _SENTENCE))
        for program in asked.programs:
            lines += _barred(program)

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
        *_barred(offer.description),
        "It replaces the skill of this name." if offer.replaces else "There is no skill of this name yet.",
    ]
    if offer.read:
        labels = ", ".join(offer.read)
        text = f"Its agent and its files have received untrusted content from: {labels}"
        lines.append(_inline(text, 2 * _SENTENCE))

    for file in offer.files:
        # In a skill that replaces none, every file is new.
        change = "" if file.change == "new" and not offer.replaces else f" ({file.change})"
        lines += [_inline(f"  {file.path}{change}:", _SENTENCE), *_barred(file.text)]
        if file.differs:
            lines += ["  What is changed in it:", *_barred(file.differs)]
    lines += [_inline(f"  {path} is left out.", _SENTENCE) for path in offer.gone]

    last = "If you approve it, agents in this and later sessions find it, trust its text, and may run its scripts."
    return "\n".join([*lines, last])


def form_words(agent: str, asked: FormAsk) -> str:
    """A module's question, for a terminal: its words after a bar, and where the answer goes; or the offered skill."""
    if asked.skill is not None:
        return skill_words(agent, asked.skill)

    if asked.tool is not None:
        arguments = json.dumps(dict(asked.tool.arguments), ensure_ascii=False)
        head = _inline(f"{agent} calls {asked.tool.name}, a tool of your front end:", _SENTENCE)
        return "\n".join([head, *_barred(arguments), "You can answer in its place."])

    if asked.by_agent:
        head = _inline(f"An agent that works on a step of {agent} asks:", _SENTENCE)
        goes_on = "Your answer goes to this agent, which then goes on."
        return "\n".join([head, *_barred(asked.message), goes_on])

    if asked.by_plan:
        return _step_words(agent, asked)
    return _module_words(agent, asked)


def _step_words(agent: str, asked: FormAsk) -> str:
    """What a plan asks: for the result of a step, or whether a result is accepted."""
    if asked.accepts:
        head = f"{agent} goes on if you accept a result:"
        goes_on = "What you enter is told to the model that makes it again."
    else:
        head = f"A step of {agent} is yours:"
        goes_on = "What you enter is the result of the step, and the plan goes on with it."

    fields = [f"  {field_words(field)}" for field in asked.fields]
    return "\n".join([_inline(head, _SENTENCE), *_barred(asked.message), *fields, goes_on])


def _module_words(agent: str, asked: FormAsk) -> str:
    """What a module asks during a call."""
    module = asked.function.split(".", 1)[0]
    head = f"{agent}: {asked.function} asks you something. These are the words of the module {module}:"
    lines = [_inline(head), *_barred(asked.message)]

    if asked.url:
        lines += ["It wants you to open this address yourself:", f"  {asked.url}"]
    lines += [f"  {field_words(field)}" for field in asked.fields]
    if asked.fields:
        lines.append("Your input is stored in the journal of this session, so do not enter a password.")

    goes = "Whether you did so is reported" if asked.url else "Your answer goes"
    lines.append(f"{goes} to the module {module}, which may send it on.")
    return "\n".join(lines)


def field_words(field: FormField) -> str:
    """One field of a form as a line, for a terminal."""
    kinds = {"number": "a number", "integer": "a whole number", "boolean": "yes or no"}
    facts = [kinds[field.kind]] if field.kind in kinds else []
    if field.choices:
        amount = "some" if field.kind == "choices" else "one"
        facts.append(f"{amount} of {', '.join(_choice_words(field))}")
    if field.format:
        facts.append(field.format)
    if field.required:
        facts.append("needed")
    if field.default is not None:
        facts.append(f"default {json.dumps(field.default, ensure_ascii=False)}")

    line = field.title or field.name
    if facts:
        line = f"{line} [{'; '.join(facts)}]"
    if field.description:
        line = f"{line}: {field.description}"
    return _inline(line, 2 * _SENTENCE)


def _choice_words(field: FormField) -> list[str]:
    """What can be chosen in a field: each value, with its title if that says something else."""
    pairs = zip(field.choices, field.titles or field.choices, strict=True)
    return [f"{value} ({title})" if title and title != value else value for value, title in pairs]


def schema_of(fields: Sequence[FormField]) -> Mapping[str, JSON]:
    """The JSON Schema of a form, for other programs that ask their users."""
    required: list[JSON] = [field.name for field in fields if field.required]
    properties: dict[str, JSON] = {field.name: _schema(field) for field in fields}
    return {"type": "object", "properties": properties, "required": required}


def _schema(field: FormField) -> JSON:
    """The JSON Schema of one field."""
    texts = {"title": field.title, "description": field.description, "format": field.format}
    schema: dict[str, JSON] = {key: text for key, text in texts.items() if text}
    if field.default is not None:
        schema["default"] = field.default

    bound_names = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}
    least, most = bound_names.get(field.kind, ("minimum", "maximum"))
    for key, bound in ((least, field.least), (most, field.most)):
        if bound is not None:
            schema[key] = int(bound) if float(bound).is_integer() else bound

    match field.kind:
        case "choice":
            return {"type": "string", **_choices(field, "oneOf"), **schema}
        case "choices":
            return {"type": "array", "items": _choices(field, "anyOf"), **schema}
        case "text":
            return {"type": "string", **schema}
        case kind:
            return {"type": kind, **schema}


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
    if len(line) <= limit:
        return line
    return line[: limit - 1] + "…"


def _about(text: str) -> str:
    """A value that fits after its name, or the length of the one that follows."""
    lines = _lines(text)
    return lines[0] if len(lines) == 1 else f"{len(text)} characters in {len(lines)} lines"


def _quoted(text: str) -> list[str]:
    """A value of several lines, each after a bar. One of a single line is after its name already."""
    return _barred(text) if len(_lines(text)) > 1 else []


def _barred(text: str) -> list[str]:
    """The lines of a text that somebody else wrote, each after a bar."""
    return [f"  | {line}" for line in _lines(text)]


def _lines(text: str) -> list[str]:
    """The lines that a terminal would make of a text, at least one; long lines are cut into several."""
    rows = [
        row[at : at + _WIDTH]
        for row in _exact(text).splitlines()
        for at in range(0, max(1, len(row)), _WIDTH)
    ]
    return rows or [""]
