"""Every error of the core, in one tree. The class tells who can act on it.

    IactError
    ├── UsageError              the caller gave something wrong (exit status 2)
    │   └── Changed             what a person agreed to is not what they were shown
    ├── JournalError            the journal on disk
    │   ├── BlobLost            content beside the journal is missing or damaged
    │   ├── JournalCorrupt      a record does not match its digest, number or form
    │   ├── JournalLocked       another process holds the session
    │   ├── ForeignSession      this installation did not make it; it can be read, or adopted
    │   ├── SessionDeleted      it was deleted for good; it can't be opened, and its id is never used again
    │   ├── JournalTooNew       written by a newer major version
    │   ├── JournalUnwritable   the disk is full or refuses writes; the session stops
    │   │   └── Superseded      another host continues the session; this one stops for good
    │   └── StoreUnavailable    the store that several machines share did not answer
    ├── ReplayMismatch          the core, run over a journal, computed something else
    ├── ModelError              the model gave no reply
    │   ├── ModelUnreachable    nothing answers, or it answers too slowly (retried)
    │   ├── ModelRefused        wrong key, unknown model, bad request (not retried)
    │   ├── ModelOverloaded     HTTP 429 or 5xx until the retries ran out
    │   ├── ModelGarbled        the answer does not follow the protocol, or is empty twice
    │   │   └── ModelOnlyThought  there is reasoning, and no reply after it
    │   ├── StructuredFailed    replies came, but none of the requested form
    │   └── QuotaExceeded       no request was sent: a quota or a budget of money is used up
    ├── SandboxError            the sandbox itself, never the command that ran in it
    │   ├── SandboxUnavailable  no engine, no image: modules are off
    │   │   └── PackagesUnavailable  a module's own packages can't be fetched
    │   └── ModuleLost          the container or its server died or hung during a call
    │       └── ModuleWithdrawn it failed so often that it is no longer started
    ├── WorkspaceError          a version of a workspace, or a live directory's overlay, can't be kept or read
    ├── ModuleFault             a module broke the protocol (sizes, schema, no end)
    └── MemoryUnavailable       the Hippocampus can't answer or store now; turns continue without it

A denial by the gate is not an error but a value (`core.gate.Denial`).
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

ModelFault: TypeAlias = Literal["", "unreachable", "refused", "too_long", "overloaded", "garbled"]
"""What kind of failure of a model it was, as it is recorded. Empty: another kind."""


class IactError(Exception):
    """Base of all errors that this product raises on purpose. `str()` is one full sentence."""


class UsageError(IactError):
    """A person or program gave a wrong argument, setting or file."""


class Changed(UsageError):
    """A person agreed to something that is no longer what they were shown. Nothing was done."""

    def __init__(self) -> None:
        super().__init__("It has changed since you looked; look again.")


class JournalError(IactError):
    """Something is wrong with a journal on disk."""


class BlobLost(JournalError):
    """Content that is kept beside a journal is missing or damaged. `digest`: its SHA-256."""

    def __init__(self, message: str, digest: str) -> None:
        super().__init__(message)
        self.digest = digest


class JournalCorrupt(JournalError):
    """A record is invalid. `n`: the number of the first bad record; `offset`: its byte position, if known."""

    def __init__(self, message: str, *, n: int, offset: int | None) -> None:
        super().__init__(message)
        self.n = n
        self.offset = offset


class JournalLocked(JournalError):
    """Another process has this session open."""


class ForeignSession(JournalError):
    """Another installation made the session. `session`: its directory's name; `why`: what is wrong, in words."""

    def __init__(self, session: str, why: str, *, place: str = "") -> None:
        super().__init__(
            f"The session {session} is foreign: {why}. It can be shown, verified, replayed and exported; to go on with "
            f"it, make a session of your own from it: iact session adopt {place or session}"
        )
        self.session = session
        self.why = why


class JournalTooNew(JournalError):
    """The journal's major version is newer than this program."""


class JournalUnwritable(JournalError):
    """An append failed. Nothing that was acknowledged is lost."""


class Superseded(JournalUnwritable):
    """Another host has taken over the session, or deleted it for good (`deleted`).

    `segment`: the segment that this host wanted to write and that already exists.
    """

    def __init__(self, session: str, segment: int, *, deleted: bool = False) -> None:
        super().__init__(
            f"The session {session} was deleted for good by another host, so it has stopped here, and nothing more of it is "
            "stored."
            if deleted
            else (
                f"Another host has taken over the session {session} (it wrote segment {segment} of the "
                "journal), so the session has stopped here. Everything that was acknowledged is stored. "
                "Open the session on that host."
            )
        )
        self.session = session
        self.segment = segment
        self.deleted = deleted


class SessionDeleted(JournalError):
    """The session was deleted for good; its id is never used again."""

    def __init__(self, session: str) -> None:
        super().__init__(
            f"The session {session} was deleted for good. Nothing of it is left, and its id will not be used again."
        )
        self.session = session


class StoreUnavailable(JournalError):
    """The shared store did not answer. The request may have been carried out."""


class ReplayMismatch(IactError):
    """Verification computed something other than what was recorded, first at record `n`."""

    def __init__(self, message: str, *, n: int) -> None:
        super().__init__(message)
        self.n = n


class ModelError(IactError):
    """A model gave no reply."""

    fault: ClassVar[ModelFault] = ""


class ModelUnreachable(ModelError):
    """Nothing answers at the endpoint, or it answers too slowly."""

    fault: ClassVar[ModelFault] = "unreachable"


class ModelRefused(ModelError):
    """The endpoint refuses: wrong key, unknown model, malformed or too long request."""

    fault: ClassVar[ModelFault] = "refused"


class ModelOverloaded(ModelError):
    """HTTP 429 or 5xx until the retries ran out."""

    fault: ClassVar[ModelFault] = "overloaded"


class ModelGarbled(ModelError):
    """The endpoint's answer does not follow the protocol, or is empty."""

    fault: ClassVar[ModelFault] = "garbled"


class ModelOnlyThought(ModelGarbled):
    """The model reasoned, and replied nothing. The reasoning was streamed."""


class QuotaExceeded(ModelError):
    """No model was asked, because a limit is used up. `bound`: which of the session's bounds that is."""

    def __init__(self, message: str, *, bound: Literal["quota", "money"]) -> None:
        super().__init__(message)
        self.bound: Literal["quota", "money"] = bound


class StructuredFailed(ModelError):
    """No reply had the requested form. `reply`: the last one. The tokens are those of all requests."""

    def __init__(self, message: str, *, reply: str, prompt_tokens: int, completion_tokens: int) -> None:
        super().__init__(message)
        self.reply = reply
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens

    @property
    def tokens(self) -> int:
        """The total of all requests."""
        return self.prompt_tokens + self.completion_tokens


class SandboxError(IactError):
    """A failure of the sandbox, never of the code that ran in it."""


class SandboxUnavailable(SandboxError):
    """No engine or no image is available; the message says what to install or run."""


class PackagesUnavailable(SandboxUnavailable):
    """The packages that a module needs can't be fetched; the message says which and why."""


class ModuleLost(SandboxError):
    """A module's container or server died, or does not answer. `log`: the end of what it printed, untrusted."""

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class ModuleWithdrawn(ModuleLost):
    """A module failed so often in a row that this session no longer starts it."""


class WorkspaceError(IactError):
    """A workspace's version, or a live directory's overlay, can't be kept, read or restored; the message says why."""


class ModuleFault(IactError):
    """A module broke the protocol; the message says how."""


class MemoryUnavailable(IactError):
    """Memory can't answer or store now; the message says why and what helps."""


def lone(error: BaseException) -> BaseException:
    """Return the only error in a task group's exception group, or the group if it has several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
