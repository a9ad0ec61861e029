"""The impact of one call: what its function declares, whether that is trusted, its arguments, and the stake.

The shipped shell's rule is the shell classifier. It replaces what `shell.run` declares, so that a command that only
reads has impact 0. For other functions, a policy's rules can only raise the impact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from iact.core.gate.impact import RUNS_ON, SCRIPTS, impact_of
from iact.core.gate.policy import OPEN, Policy
from iact.core.gate.rules import call_impact
from iact.core.ports import JSON

if TYPE_CHECKING:
    from iact.core.gate.shell import Judgement

_REMEMBERED: Final = 64
"""How many scripts' judgements are cached: a call is judged when it is decided, and when the decision is applied."""
_SHORT: Final = 4096
"""The most characters of a script whose judgement is cached."""


@dataclass(frozen=True, slots=True)
class Impact:
    """The impact of a call, and the reason, in a sentence for people."""

    level: float
    why: str


def judge_call(
    function: str,
    declared: int,
    arguments: Mapping[str, JSON],
    *,
    live: bool,
    believed: bool = True,
    policy: Policy = OPEN,
) -> Impact:
    """Return the impact of a call.

    `live`: something of the user's, egress or a secret is within reach. `believed`: the function's manifest ships with
    the product, or a person approved it. Functions that are not believed are not understood, whatever they declare.
    """
    if not believed:
        return Impact(2 if live else 1, f"Nobody approved the manifest of {function}.")
    if function in SCRIPTS:
        return _script(function, arguments, live=live, policy=policy)

    base = impact_of(declared, live=live)
    level = call_impact(policy, function, base, arguments, live=live)
    raised = f", raised to {level:g} by a rule of the policy" if level > base else ""
    return Impact(level, f"{function} declares impact {declared}; here that is {base}{raised}.")


def _script(function: str, arguments: Mapping[str, JSON], *, live: bool, policy: Policy) -> Impact:
    script_name, language_name = SCRIPTS[function]
    script = arguments.get(script_name)
    language = arguments.get(language_name, "bash")
    if not isinstance(script, str) or not isinstance(language, str):
        return Impact(2 if live else 1, "The command is no text.")

    judge = _remembered if len(script) + len(language) <= _SHORT else _judged
    judgement = judge(script, language)
    impact = judgement.impact(live=live)

    # A script that goes on running is more than a look. A value that is no bool counts as yes.
    runs_on = arguments.get(RUNS_ON.get(function, ""), False) is not False
    if runs_on:
        impact = max(impact, 1)

    level = call_impact(policy, function, impact, arguments, live=live)
    return Impact(level, f"{judgement.effect}: {judgement.worst.what}.")


def _judged(script: str, language: str) -> Judgement:
    """What a script can do. It follows from the script's text alone."""
    from iact.core.gate.shell import judge_script  # loads a parser that sessions without a shell don't need

    return judge_script(script, language=language)


_remembered = lru_cache(maxsize=_REMEMBERED)(_judged)
