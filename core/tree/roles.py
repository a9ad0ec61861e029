"""What a session's journal records about its model roles, so that it can be replayed without them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from iact.core.context.history import prompt_digest
from iact.core.context.prompt import STANDARD
from iact.core.ports import ChatMessage, Medium, ModelProfile, Price, StaticPrompt
from iact.core.records.parts import OwnPrompt, PriceTerms, PromptExample, RoleTerms


@dataclass(frozen=True, slots=True)
class Role:
    """A model's name, its window in tokens, and the static prompt that its agents share.

    `takes`: media that its model understands besides text. `price`: what its tokens cost. `small`: the model brings its
    own static prompt and is spared documentation notes.
    """

    model: str
    context: int
    static: StaticPrompt
    small: bool
    takes: tuple[Medium, ...] = ()
    price: Price | None = None

    @staticmethod
    def of(profile: ModelProfile) -> Role:
        """The role that a model plays."""
        return Role(
            profile.name,
            profile.context,
            profile.static or STANDARD,
            profile.static is not None,
            profile.takes,
            profile.price,
        )

    def terms(self) -> RoleTerms:
        """The role in the form of an `open` record. The standard prompt is not repeated there."""
        return RoleTerms(
            model=self.model,
            context=self.context,
            prompt=prompt_digest(self.static),
            takes=self.takes,
            static=_own(self.static) if self.small else None,
            price=_price_terms(self.price),
        )

    @staticmethod
    def back(terms: RoleTerms) -> Role:
        """Read a role from a journal. Does not check whether its prompt is still the recorded one."""
        own = terms.static
        static = STANDARD if own is None else StaticPrompt(own.system, _messages(own.examples))
        return Role(terms.model, terms.context, static, own is not None, terms.takes, _price(terms.price))


def _price_terms(price: Price | None) -> PriceTerms | None:
    if price is None:
        return None
    return PriceTerms(prompt=price.prompt, cached=price.cached, completion=price.completion)


def _price(terms: PriceTerms | None) -> Price | None:
    return None if terms is None else Price(terms.prompt, terms.cached, terms.completion)


def _own(static: StaticPrompt) -> OwnPrompt:
    examples = [
        PromptExample(role="assistant" if one.role == "assistant" else "user", content=one.content)
        for one in static.examples
    ]
    return OwnPrompt(system=static.system, examples=tuple(examples))


def _messages(examples: Iterable[PromptExample]) -> tuple[ChatMessage, ...]:
    return tuple(ChatMessage(one.role, one.content) for one in examples)
