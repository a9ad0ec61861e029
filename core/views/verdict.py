"""What the gate would decide about a call by a person's own agent, without making it: for administrators.

No module is started, and no one is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from iact.core.errors import UsageError
from iact.core.gate.gate import CallRequest, Denial, Question, Ticket, arguments_digest, consider
from iact.core.gate.grant import Grant
from iact.core.gate.impact import SCRIPTS
from iact.core.gate.judge import judge_call
from iact.core.gate.layer import in_layer, runs_in_layer
from iact.core.gate.level import level
from iact.core.gate.policy_file import Policies
from iact.core.gate.provenance import USER, Provenance
from iact.core.ports import JSON
from iact.core.views.known_modules import KnownModule


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """A decision. `by`: the rule behind it; `impact`: of the call; `reason`: why, in a sentence or two."""

    allow: bool
    by: str
    impact: float
    reason: str


def verdict_on(
    function: str,
    arguments: Mapping[str, JSON],
    *,
    body: str | None,
    module: KnownModule | None,
    live: Literal["", "mounted", "overlaid"],
    layers: bool,
    policies: Policies,
    scope: str,
    intent: float | str,
) -> CallVerdict:
    """Decide a call. `body`: the lines of its block.

    `live`: the session works in a directory of the user's, which modules see as it is ("mounted") or through an overlay
    in which changes wait. `layers`: agents of intent 0 have a layer over the files that is thrown away. `module`: what the catalogue knows about the function's module; None without a sandbox.

    Raises:
        UsageError: there is no such scope or intent.
    """
    about = _about(function, module)
    given = {**arguments, **({about.body or "body": body} if body is not None else {})}
    policy = policies.chosen(scope)
    grant = Grant(policy.scope(), level(intent, dict(policy.levels)))
    at_stake = live == "mounted"
    impact = judge_call(
        function, about.declared, given, live=at_stake, believed=about.believed, policy=policy
    )

    layer = impact.level > 0 and layers and not at_stake
    layer = layer and runs_in_layer(function, given, grant, policy, believed=about.believed)
    if layer:
        impact = in_layer(impact)

    decision = consider(
        CallRequest("/", function, arguments_digest(given, {})),
        impact.level,
        grant,
        policy,
        arguments=given,
        provenance=Provenance(dict.fromkeys(given, frozenset({USER}))),
        layer=layer,
    )
    match decision:
        case Ticket():
            waits = live == "overlaid" and impact.level > 0
            why = f"{impact.why} {_WAITS}" if waits else impact.why
            return CallVerdict(True, "impact", impact.level, why)
        case Denial():
            return CallVerdict(False, decision.by, impact.level, f"{decision.reason} {impact.why}")
        case Question():
            reason = f"A person would be asked. {decision.reason} {impact.why}"
            return CallVerdict(False, decision.by, impact.level, reason)


_WAITS: Final = (
    "It runs in an overlay of the directory: what it changes there is rated afterwards, file by file, and what has more "
    "impact than the intent waits for you."
)
"""What is true of every call that can write where a directory is seen through an overlay."""


@dataclass(frozen=True, slots=True)
class _About:
    """What is known of a function. `body`: the parameter that a block's lines bind to."""

    declared: int
    body: str
    believed: bool


def _about(function: str, module: KnownModule | None) -> _About:
    """What is known of a function. Without a sandbox, or before its module has run once, only the shell is known."""
    name = function.partition(".")[2]
    found = module.manifest.function(name) if module is not None and module.manifest is not None else None
    if module is not None and found is not None:
        return _About(found.impact, found.body, name in module.approved)
    if function in SCRIPTS:
        return _About(1, SCRIPTS[function][0], believed=True)
    return _About(2, "", believed=False)


def module_of(function: str) -> str:
    """The name of a function's module.

    Raises:
        UsageError: it is not a function's name.
    """
    module, dot, name = function.partition(".")
    if not dot or not name:
        raise UsageError(f"{function!r} is not the name of a function; write it as module.function.")
    return module


def effects_of(function: str, params: Mapping[str, JSON]) -> list[tuple[str, str]]:
    """Everything the script of a call can do, the worst first, as pairs of effect and responsible piece. Empty for
    other calls."""
    if function not in SCRIPTS:
        return []
    script_name, language_name = SCRIPTS[function]
    script, language = params.get(script_name), params.get(language_name, "bash")
    if not isinstance(script, str) or not isinstance(language, str):
        return []
    from iact.core.gate.shell import judge_script  # as in `core.gate.judge`

    found = judge_script(script, language=language).findings
    ranked = sorted(found, key=lambda one: _WORST.index(one.effect))
    return list(dict.fromkeys((one.effect, one.what) for one in ranked))


_WORST: Final = ("authority", "send", "destroy", "unknown", "modify", "observe")
