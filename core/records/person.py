"""What a person caused: the one field by which a record says which person that was."""

# Annotations are objects here, and not strings: the codec reads them.

from dataclasses import dataclass
from typing import Annotated

from iact.core.records.content import Content
from iact.core.records.mark import Outcome, Since


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonContent(Content):
    """What one kind of record says of which a person was the cause. No model is ever shown who it was."""

    who: Annotated[Outcome[str], Since("1.2")] = ""
    """The user name of the person; empty where an installation has one user."""
