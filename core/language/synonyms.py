"""Other names that models use for parameters, read only where exactly one parameter can be meant."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from iact.core.language.actions import ActionSpec

_GROUPS: Final = (
    frozenset({"command", "cmd", "commands", "script", "bash", "code", "source", "program", "input"}),
    frozenset({"path", "file", "filename", "file_path", "filepath", "file_name", "target_file", "name"}),
    frozenset({"content", "contents", "text", "data", "body", "file_text", "value"}),
    frozenset({"message", "task", "prompt", "text", "question", "content", "instructions"}),
    frozenset({"name", "agent", "child", "agent_name"}),
    frozenset({"url", "uri", "link", "address", "href"}),
    frozenset({"query", "q", "search", "search_query", "pattern", "statement", "sql", "regex"}),
    frozenset({"timeout", "timeout_seconds", "seconds", "timeout_s"}),
    frozenset({"background", "is_background", "run_in_background"}),
    frozenset({"names", "agents", "children"}),
    frozenset(
        {"most", "limit", "n", "max", "count", "max_count", "max_results", "num_results", "head_limit"}
    ),
    frozenset({"form", "format", "output_format"}),
    frozenset({"pages", "page"}),
    frozenset({"number", "page", "page_number"}),
    frozenset({"start", "start_line", "line_start"}),
    frozenset({"end", "end_line", "line_end"}),
    frozenset({"glob", "include", "file_pattern"}),
    frozenset({"hidden", "show_hidden", "include_hidden"}),
    frozenset({"target", "selector", "ref", "element"}),
    frozenset({"of", "file"}),
    frozenset({"replaces", "supersedes", "replace"}),
)
"""Names that mean the same."""


def parameter_meant(spec: ActionSpec, key: str, given: Container[str]) -> str:
    """The parameter that another name means; empty if the name is a parameter, or could mean none or several.

    `given`: the names that are given.
    """
    if key in spec.properties:
        return ""

    plain = key.lower().replace("-", "_")
    if plain in spec.properties and plain not in given:
        return plain

    groups = [group for group in _GROUPS if plain in group]
    missing = {name for name in spec.properties if name not in given}
    meant = {name for name in missing if any(name in group for group in groups)}
    required = meant & spec.required
    if len(required) == 1:
        return next(iter(required))
    if len(meant) == 1:
        return next(iter(meant))
    return ""
