"""The session's only database: records, the file they stand in, and who may append to it."""

from core.journal.file import Contents, Journal, read_blob, read_journal
from core.journal.parser import Parser
from core.journal.record import encode

__all__ = [
    "Contents",
    "Journal",
    "Parser",
    "encode",
    "read_blob",
    "read_journal",
]
