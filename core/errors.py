"""Every error of the core, in one tree; the class says who can act on it.

    IactError
    ├── UsageError              the caller gave something wrong (exit status 2)
    ├── JournalError            the journal on disk
    │   ├── JournalCorrupt      a record does not fit its digest, number or form
    │   ├── JournalLocked       another process holds the session
    │   ├── ForeignSession      this installation did not make it; it can be looked at, or adopted
    │   ├── SessionDeleted      it was deleted for good; nobody opens it, or makes one with its id
    │   ├── JournalTooNew       written by a newer major version
    │   ├── JournalUnwritable   the disk is full or refuses writes; the session stops
    │   │   └── Superseded      another host goes on with the session; this one stops for good
    │   └── StoreUnavailable    the store that several machines share gave no answer
    ├── ReplayMismatch          the core, run over a journal, came to something else
    ├── ModelError              no reply could be had from the model
    │   ├── ModelUnreachable    nothing answers, or it answers too slowly (retried)
    │   ├── ModelRefused        wrong key, unknown model, bad request (not retried)
    │   ├── ModelOverloaded     HTTP 429 or 5xx until the retries ran out
    │   ├── ModelGarbled        what came back is not the protocol, or is empty twice
    │   ├── StructuredFailed    replies came, but none of the form that was asked for
    │   └── QuotaExceeded       it was not asked: a quota or a budget of money is used up
    ├── SandboxError            the sandbox itself, never the command that ran in it
    │   ├── SandboxUnavailable  no engine, no image: modules are off
    │   │   └── PackagesUnavailable  a module's own packages can't be had
    │   └── ModuleLost          the container or its server died or hung during a call
    │       └── ModuleWithdrawn it failed so often that it is not started any more
    ├── WorkspaceError          a version of a workspace, or a live directory's overlay, can't be kept or read
    ├── ModuleFault             a module broke the protocol (sizes, schema, no end)
    └── MemoryUnavailable       the Hippocampus can't answer or store now; turns go on without it

A denial by the gate is not an error but a value (`core.gate.Denial`).
"""

from __future__ import annotations

from typing import Literal


class IactError(Exception):
    """Base of all errors that this product raises on purpose; `str()` is one full sentence."""


class UsageError(IactError):
    """A person or program gave a wrong argument, setting or file."""


class JournalError(IactError):
    """Something is wrong with a journal on disk."""


class JournalCorrupt(JournalError):
    """A record does not fit. `n` is the number of the first bad record, `offset` its byte position, if it is known."""

    def __init__(self, message: str, *, n: int, offset: int | None) -> None:
        super().__init__(message)
        self.n = n
        self.offset = offset


class JournalLocked(JournalError):
    """Another process has this session open."""


class ForeignSession(JournalError):
    """This installation did not make the session. `session`: its directory's name; `why`: what is wrong, in words."""

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
    """An append failed; nothing that was acknowledged is lost."""


class Superseded(JournalUnwritable):
    """Another host has taken the session over, or deleted it for good (`deleted`). `segment`: what is where this one wanted
    to write."""

    def __init__(self, session: str, segment: int, *, deleted: bool = False) -> None:
        super().__init__(
            f"The session {session} was deleted for good by another host, so it has stopped here, and nothing more of it is "
            "stored."
            if deleted
            else f"Another host has gone on with the session {session} (segment {segment} of its journal is not ours), so it "
            "has stopped here. Everything that was acknowledged is stored; open the session there."
        )
        self.session = session
        self.segment = segment
        self.deleted = deleted


class SessionDeleted(JournalError):
    """The session was deleted for good; its id is never used again."""

    def __init__(self, session: str) -> None:
        super().__init__(
            f"The session {session} was deleted for good. Nothing of it is left, and its id is not used again."
        )
        self.session = session


class StoreUnavailable(JournalError):
    """The shared store gave no answer; what was asked of it may have been carried out."""


class ReplayMismatch(IactError):
    """Verification came to something else than what was recorded, first at record `n`."""

    def __init__(self, message: str, *, n: int) -> None:
        super().__init__(message)
        self.n = n


class ModelError(IactError):
    """No reply could be had from a model."""


class ModelUnreachable(ModelError):
    """Nothing answers at the endpoint, or too slowly."""


class ModelRefused(ModelError):
    """The endpoint refuses: wrong key, unknown model, malformed or too long request."""


class ModelOverloaded(ModelError):
    """HTTP 429 or 5xx until the retries ran out."""


class ModelGarbled(ModelError):
    """The endpoint's answer is not the protocol, or empty."""


class QuotaExceeded(ModelError):
    """A model was not asked, since somebody may not use more. `bound`: what of the session that ends."""

    def __init__(self, message: str, *, bound: Literal["quota", "money"]) -> None:
        super().__init__(message)
        self.bound: Literal["quota", "money"] = bound


class StructuredFailed(ModelError):
    """No reply had the form that was asked for. `reply`: the last one. The tokens are those of all requests that it took."""

    def __init__(self, message: str, *, reply: str, prompt_tokens: int, completion_tokens: int) -> None:
        super().__init__(message)
        self.reply = reply
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens

    @property
    def tokens(self) -> int:
        """What all of it cost."""
        return self.prompt_tokens + self.completion_tokens


class SandboxError(IactError):
    """A failure of the sandbox, never of what ran in it."""


class SandboxUnavailable(SandboxError):
    """There is no engine or no image; the message says what to install or run."""


class PackagesUnavailable(SandboxUnavailable):
    """The packages that a module asks for can't be fetched; the message says which and why."""


class ModuleLost(SandboxError):
    """A module's container or server died, or does not answer. `log`: the end of what it printed, untrusted."""

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class ModuleWithdrawn(ModuleLost):
    """A module failed so often in a row that this session does not start it any more."""


class WorkspaceError(IactError):
    """A version of a workspace, or the overlay of a live directory, can't be kept, read or restored; the message says why."""


class ModuleFault(IactError):
    """A module broke the protocol; the message says how."""


class MemoryUnavailable(IactError):
    """Memory can't answer or store now; the message says why and what helps."""


def lone(error: BaseException) -> BaseException:
    """The one error in a task group's group of errors, or the group if they are several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
