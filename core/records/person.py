"""Records that a person caused, and the field that says which person."""

# Annotations are objects here, and not strings: the codec reads them.

from dataclasses import dataclass
from typing import Annotated

from iact.core.records.content import Content
from iact.core.records.mark import Outcome, Since


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonContent(Content):
    """The content of a record that a person caused. No model is ever shown who it was."""

    who: Annotated[Outcome[str], Since("1.2")] = ""
    """The person's user name. Empty in an installation with a single user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonMessage(PersonContent):
    """A message of a person."""

    once: Annotated[Outcome[str], Since("1.3")] = ""
    """What the program that sent it calls it. If the line loses the answer, it is sent again under this name, and is not
    said a second time. Empty if it has no name."""
