"""The session's only database: records, the file that contains them, and who may append to it."""

from iact.core.journal.file import Contents, Journal, read_blob, read_journal
from iact.core.journal.parser import Parser
from iact.core.journal.record import encode

__all__ = [
    "Contents",
    "Journal",
    "Parser",
    "encode",
    "read_blob",
    "read_journal",
]
