"""The session's only database: records, the file they stand in, and who may append to it."""

from core.journal.file import Contents, Journal, read_blob, read_journal
from core.journal.parser import Parser
from core.journal.record import FORMAT, KINDS, Kind, Record, encode

__all__ = [
    "FORMAT",
    "KINDS",
    "Contents",
    "Journal",
    "Kind",
    "Parser",
    "Record",
    "encode",
    "read_blob",
    "read_journal",
]
