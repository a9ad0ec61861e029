"""Impact rules for arguments: HTTP methods, SQL statements, paths, hosts, shell scripts. Pure.

A rule can only raise what a function declares. Anything in an argument that the rule does not understand counts as the
worst.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Mapping
from typing import Final, assert_never
from urllib.parse import urlsplit

from iact.core.gate.policy import ImpactRule, Policy
from iact.core.ports import JSON

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING: Final = re.compile(r"'(?:[^'\\]|'')*'")
_READS: Final = re.compile(r"\s*(?:select|values|show|describe|desc|explain)\b", re.IGNORECASE)
_WRITES: Final = re.compile(r"\s*insert\s+into\b", re.IGNORECASE)
_CHANGES: Final = re.compile(
    r"\b(?:insert|update|delete|drop|truncate|alter|create|grant|revoke|merge|replace|copy|call|exec(?:ute)?|do|attach"
    r"|detach|vacuum|pragma|load|install|import|export|into|outfile|dumpfile|lock|set|reset|analyze|refresh|cluster"
    r"|comment|rename|handler|for\s+(?:update|share)|nextval|setval|lo_\w+|pg_(?!catalog)\w+|dblink\w*|xp_\w+|sp_\w+"
    r"|load_file|load_extension|sleep|benchmark|sys_exec|sys_eval|utl_\w+|dbms_\w+|read_csv\w*|read_parquet|edit"
    r"|writefile|readfile|fts3_tokenizer)\b",
    re.IGNORECASE,
)
_ANYTHING: Final = re.compile(r"[\"`$\\\[\]#]")


def sql_impact(statement: str) -> float:
    """Return 0 for plain reads, 1 for plain inserts, 2 for everything else.

    A conservative scan: a statement is a read if it begins like one and, without its plain string literals and
    comments, contains no word that changes anything. Quoting styles that differ between dialects (backslashes, dollar
    quotes, quoted identifiers) make it 2, so that no dialect can hide a word from the scan.
    """
    if _ANYTHING.search(statement) or "/*!" in statement:
        return 2

    # A comment mark next to strings could be read in two ways.
    without_strings = _STRING.sub("''", statement)
    if without_strings.count("'") % 2 or re.search(r"''[^']*--|''[^']*/\*", without_strings):
        return 2

    bare = _COMMENT.sub(" ", without_strings)
    statements = [part for part in bare.split(";") if part.strip()]
    return max((_one_statement(part) for part in statements), default=2)


def _one_statement(text: str) -> float:
    if _READS.match(text) and not _CHANGES.search(text):
        return 0

    insert = _WRITES.match(text)
    if insert is None:
        return 2

    rest = text[insert.end() :]
    overwrites = re.search(r"\bon\s+(?:conflict|duplicate)\b|\bor\b", rest, re.IGNORECASE)
    return 2 if overwrites or _CHANGES.search(rest) else 1


def method_impact(method: str) -> float:
    """Return 0 for methods that only read, 2 for all others (what was sent can't be taken back)."""
    return 0 if method.upper() in _SAFE_METHODS else 2


def inside(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path is below one of `roots`, judged by its text. A relative path is below `./`."""
    if "\0" in path or path.startswith("~"):
        return False

    normal = posixpath.normpath(path)
    if normal.startswith("//"):  # which is left as it is, but is the same place
        normal = normal[1:]
    if normal.startswith("../") or normal == "..":
        return False

    absolute = normal if normal.startswith("/") else f"./{normal}"
    folders = [root.rstrip("/") for root in roots]
    return any(absolute == folder or absolute.startswith(f"{folder}/") for folder in folders)


def host_of(value: str) -> str | None:
    """Return the host of a URL or a mail address, in lower case; None if it is not clear."""
    if any(character.isspace() or character in "\\\0" or ord(character) > 126 for character in value):
        return None
    if "://" in value:
        return _host_of_url(value)

    match = re.fullmatch(r"(?:[^@/]+@)?([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)\.?", value)
    return match[1].lower() if match else None


def _host_of_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        return None

    if not host or port == 0 or parts.scheme not in ("http", "https", "ws", "wss", "ftp", "ssh"):
        return None

    # What is before an `@` looks like a host to people.
    if "@" in parts.netloc:
        return None
    return host.rstrip(".").lower()


def host_allowed(value: str, hosts: tuple[str, ...]) -> bool:
    """Whether the host of `value` is one of `hosts`. `*.example.org` covers every host below it, but not itself."""
    host = host_of(value)
    if host is None:
        return False
    return any(host == rule or (rule.startswith("*.") and host.endswith(rule[1:])) for rule in hosts)


def texts_of(value: JSON) -> list[str]:
    """Every string in a value, at any depth, with numbers as strings."""
    texts: list[str] = []
    left: list[JSON] = [value]  # no recursion: a value may be nested as deeply as its writer likes
    while left:
        match left.pop():
            case str() as text:
                texts.append(text)
            case bool() | None:
                continue
            case int() | float() as number:
                texts.append(str(number))
            case list() as items:
                left.extend(items)
            case dict() as fields:
                left.extend(fields.keys())
                left.extend(fields.values())
    return texts


def call_impact(
    policy: Policy, function: str, declared: float, arguments: Mapping[str, JSON], *, live: bool = True
) -> float:
    """Return the impact of a call: what its function declares, raised by the policy's rules about its arguments.

    A call whose effects other people see has impact 1 at least, whatever its function declares.
    """
    impact = max(declared, 1) if policy.meets_others(function) else declared
    for rule in policy.impacts_of(function):
        if rule.parameter in arguments:
            impact = max(impact, _raised(rule, arguments[rule.parameter], live=live))
    return impact


def _raised(rule: ImpactRule, value: JSON, *, live: bool) -> float:
    texts = texts_of(value)
    match rule.kind:
        case "method":
            return max((min(rule.impact, method_impact(text)) for text in texts), default=0)

        case "sql":
            return max((min(rule.impact, sql_impact(text)) for text in texts), default=0)

        case "shell":
            from iact.core.gate.shell import judge_script  # the parser is loaded only if a policy uses it

            return max((judge_script(text).impact(live=live) for text in texts), default=0)

        case "path":
            return 0 if all(inside(text, rule.values) for text in texts) else rule.impact

        case "host":
            return 0 if all(host_allowed(text, rule.values) for text in texts) else rule.impact

        case "equals":
            hit = any(fnmatch.fnmatchcase(text, pattern) for text in texts for pattern in rule.values)
            return rule.impact if hit else 0

        case _:
            assert_never(rule.kind)
