"""What a session's journal says about its model roles, so that it can be replayed without them."""

from __future__ import annotations

from dataclasses import dataclass

from core.context.history import prompt_digest
from core.context.prompt import STANDARD
from core.ports import JSON, MEDIA, ChatMessage, Medium, ModelProfile, StaticPrompt


@dataclass(frozen=True, slots=True)
class Role:
    """A model's name, its window in tokens, and the static prompt that its agents share.

    `takes`: media that its model understands beside text. `small`: the model brings a static prompt of its own and is spared documentation notes.
    """

    model: str
    context: int
    static: StaticPrompt
    small: bool
    takes: tuple[Medium, ...] = ()

    @staticmethod
    def of(profile: ModelProfile) -> Role:
        """The role that a model plays."""
        return Role(
            profile.name,
            profile.context,
            profile.static or STANDARD,
            profile.static is not None,
            profile.takes,
        )

    def to_json(self) -> dict[str, JSON]:
        """As it stands in an `open` record; the standard prompt is not repeated there."""
        found: dict[str, JSON] = {
            "model": self.model,
            "context": self.context,
            "prompt": prompt_digest(self.static),
        }
        if self.takes:
            found["takes"] = list(self.takes)
        if self.small:
            examples: list[JSON] = [
                {"role": one.role, "content": one.content} for one in self.static.examples
            ]
            found["static"] = {"system": self.static.system, "examples": examples}
        return found

    @staticmethod
    def from_json(data: JSON) -> tuple[Role, str]:
        """Back from a journal, with the prompt digest that was recorded."""
        fields = data if isinstance(data, dict) else {}
        own, context = fields.get("static"), fields.get("context")
        static = _static(own) if isinstance(own, dict) else STANDARD
        window = context if isinstance(context, int) else 8192
        takes = fields.get("takes")
        media = tuple(one for one in MEDIA if isinstance(takes, list) and one in takes)
        role = Role(str(fields.get("model", "")), window, static, isinstance(own, dict), media)
        return role, str(fields.get("prompt", ""))


def _static(own: dict[str, JSON]) -> StaticPrompt:
    examples = own.get("examples")
    messages = [
        ChatMessage("assistant" if one.get("role") == "assistant" else "user", str(one.get("content", "")))
        for one in (examples if isinstance(examples, list) else [])
        if isinstance(one, dict)
    ]
    return StaticPrompt(str(own.get("system", "")), tuple(messages))
