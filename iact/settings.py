"""The settings of a user: `iact.toml` in the working or the data directory, overridden by the environment."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.errors import UsageError
from core.ports import Medium
from core.records.parts import PlanBounds
from core.session.assembly import Clearance

_ENVIRONMENT: Mapping[str, str] = {
    "IACT_DATA": "data",
    "OPENAI_BASE_URL": "base_url",
    "OPENAI_API_KEY": "api_key",
    "IACT_MODEL": "model",
    "IACT_MODEL_SMART": "model_smart",
    "IACT_MODEL_FAST": "model_fast",
    "IACT_CONTEXT": "context",
    "IACT_TAKES": "takes",
    "IACT_DIALECT": "dialect",
    "IACT_SANDBOX": "sandbox",
    "IACT_RUNTIME": "runtime",
    "IACT_WARM": "warm",
    "IACT_POOL": "pool",
    "IACT_IDLE": "idle",
    "IACT_WORKSPACE_BYTES": "workspace_bytes",
    "IACT_PRICE_PROMPT": "price_prompt",
    "IACT_PRICE_CACHED": "price_cached",
    "IACT_PRICE_COMPLETION": "price_completion",
    "IACT_CLEARANCE_URL": "clearance_url",
    "IACT_CLEARANCE_BOTH": "clearance_both",
    "IACT_CLEARANCE_SECONDS": "clearance_seconds",
    "IACT_CLEARANCE_URL_SECONDS": "clearance_url_seconds",
    "IACT_MEMORY": "memory",
    "IACT_MEMORY_BUDGET": "memory_budget",
    "IACT_EMBEDDINGS": "embeddings",
    "IACT_EMBEDDINGS_URL": "embeddings_url",
    "IACT_EMBEDDINGS_KEY": "embeddings_key",
    "IACT_CHROMA_URL": "chroma_url",
    "IACT_LOG": "log",
}


class BoundSettings(BaseModel):
    """The bounds of new sessions; see `core.session.assembly.Options`."""

    model_config = ConfigDict(extra="forbid")

    depth: int = Field(default=8, ge=0, le=64)
    agents: int = Field(default=256, ge=1)
    turns: int = Field(default=40, ge=1)
    tokens: int = Field(default=2_000_000, ge=1)
    tool: float = Field(default=120.0, gt=0)
    reply_tokens: int = Field(default=4096, ge=16)


class ModelSettings(BaseModel):
    """The model of one role, `[models.NAME]`. What is left out is as for all models; `model`: the endpoint's only one."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    base_url: str | None = Field(default=None, description="its endpoint")
    key: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="the name of the environment variable, or of the stored secret (`iact secret`), that holds its key",
    )
    model: str | None = Field(default=None, description="its name there")
    context: int | None = Field(default=None, ge=512, description="its window in tokens")
    takes: tuple[Medium, ...] | None = Field(
        default=None, description="media that it understands beside text"
    )
    dialect: Literal["text", "tools"] | None = Field(
        default=None, description="tools: it insists on function calls"
    )
    price_prompt: float | None = Field(
        default=None, ge=0, description="of a million tokens that it reads anew"
    )
    price_cached: float | None = Field(default=None, ge=0, description="likewise, read before")
    price_completion: float | None = Field(default=None, ge=0, description="likewise, written")


_RoleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
_Share = Annotated[float, Field(ge=0, le=1)]
_Role = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$|^$")]
_PLANS = PlanBounds()


class PlanSettings(BaseModel):
    """The bounds and thresholds of plans, `[plans]`; each with where it comes from."""

    model_config = ConfigDict(extra="forbid")

    concurrency: int = Field(
        default=_PLANS.concurrency, ge=1, le=256, description="steps that run at a time (KAIJU, section 5)"
    )
    nodes: int = Field(
        default=_PLANS.nodes, ge=1, le=20_000, description="steps over all versions (Graph Harness)"
    )
    calls: int = Field(
        default=_PLANS.calls,
        ge=1,
        le=10_000,
        description="calls of models about one plan (KAIJU, table 3: budgets)",
    )
    patches: int = Field(
        default=_PLANS.patches,
        ge=0,
        le=1000,
        description="failed steps that are replaced (Graph Harness, section 6)",
    )
    replans: int = Field(
        default=_PLANS.replans,
        ge=0,
        le=100,
        description="times that a plan is written anew (Graph Harness, section 6)",
    )
    seconds: float = Field(default=_PLANS.seconds, gt=0, description="on the wall, pauses left out (KAIJU)")
    confidence: _Share = Field(
        default=_PLANS.confidence, description="from here on an analysis stands (DAG mode: 0.8)"
    )
    planner: _Role = Field(default="", description="the role that writes plans; empty: smart")
    judge: _Role = Field(
        default="", description="the role that judges; empty: fast, and smart for a whole goal"
    )
    patcher: _Role = Field(
        default="", description="the role that replaces a failed step; empty: fast (KAIJU)"
    )
    reporter: _Role = Field(
        default="", description="the role that reports; empty: fast, and smart for a profile"
    )
    risk_weights: tuple[_Share, _Share, _Share, _Share, _Share] = Field(
        default=(0.25, 0.25, 0.2, 0.15, 0.15),
        description="of schema, planning, method, scale and history in a profile's risk; together 1 (PTR, formula 15)",
    )
    guarded_from: _Share = Field(
        default=_PLANS.guarded_from,
        description="from this risk on a profile's branches hold (PTR, formula 18)",
    )
    repair_from: _Share = Field(
        default=_PLANS.repair_from, description="from this risk on it is repair eligible (PTR, formula 18)"
    )
    trust_below: _Share = Field(
        default=_PLANS.trust_below, description="below this trust it is repaired (PTR, formula 34)"
    )

    trust_penalties: tuple[_Share, _Share, _Share, _Share, _Share, _Share] = Field(
        default=(0.3, 0.15, 0.05, 0.02, 0.05, 0.1),
        description="what a step takes off trust that failed, gave nothing or next to nothing, was branched or "
        "recovered, and a condition that was met (PTR, formula 33)",
    )
    report: bool = Field(
        default=_PLANS.report,
        description="modes that judge end with a report in words; PLAN's `report` overrides it",
    )

    @model_validator(mode="after")
    def _fits(self) -> PlanSettings:
        if abs(sum(self.risk_weights) - 1) > 1e-6:
            raise ValueError(f"risk_weights must be 1 together, and are {sum(self.risk_weights):g}")
        if self.guarded_from > self.repair_from:
            raise ValueError("guarded_from must not be above repair_from")
        return self


class SessionSettings(BaseModel):
    """How long sessions are kept, `[sessions]`. What is pinned or open always stays."""

    model_config = ConfigDict(extra="forbid")

    keep_days: float = Field(
        default=0, ge=0, description="days after its last change that a session is deleted; 0: never"
    )
    keep_bytes: int = Field(
        default=0,
        ge=0,
        description="bytes that all sessions together may take; the oldest are deleted beyond that; 0: any number",
    )
    trash_days: float = Field(default=7, ge=0, description="days that a deleted session can be restored")


class RateSettings(BaseModel):
    """How often steps of a plan may call a module or one of its functions, or a model's endpoint may be asked: `[rates.NAME]`.

    An endpoint is named by its host, with the port where its address has one: `[rates."api.example.com"]`."""

    model_config = ConfigDict(extra="forbid")

    per_second: float = Field(
        gt=0, le=10_000, description="calls per second (KAIJU: token bucket per endpoint)"
    )
    burst: int = Field(default=1, ge=1, le=10_000, description="calls that may come at once after a rest")


class Settings(BaseModel):
    """Everything that a user can set. No endpoint and no key: the embedded model is used.

    `takes`: media that the endpoint's models understand beside text, in the environment separated by commas.
    `warm`: likewise.
    `dialect`: "tools" for models that insist on function calls.

    `clearance_url`: asked about every call, in place of a person; `clearance_both`: what that allows and a rule of the
    policy or of provenance asks about is put to a person, too; `clearance_url_seconds` and `clearance_seconds`:
    how long that, or a person, may take to answer.
    """

    model_config = ConfigDict(extra="forbid")

    data: Path = Field(default_factory=lambda: Path(platformdirs.user_data_dir("iact", appauthor=False)))
    base_url: str | None = None
    api_key: str | None = Field(default=None, repr=False)
    model: str | None = None
    model_smart: str | None = None
    model_fast: str | None = None
    context: int = Field(default=32_768, ge=512)
    takes: tuple[Medium, ...] = ()
    dialect: Literal["text", "tools"] = "text"
    price_prompt: float | None = Field(default=None, ge=0)
    """What a million tokens cost that the model reads anew, in whatever money you count."""
    price_cached: float | None = Field(default=None, ge=0)
    """Likewise, of those that it had read before; None: as much as the others."""
    price_completion: float | None = Field(default=None, ge=0)
    """Likewise, of those that it writes. Without prices the page shows no cost."""
    sandbox: Literal["docker", "bubblewrap", "off", "auto"] = "auto"
    runtime: str = "auto"
    """The Docker engine's runtime for modules, by its name there; "auto" takes gVisor if the engine is set up for it."""
    warm: tuple[str, ...] = ()
    """Modules that are started with a session, so that their first call need not wait for a container."""
    pool: int = Field(default=1, ge=0, le=16)
    """For how many new sessions `iact serve` keeps a shell and a files module running, so that they need not wait."""
    idle: float = Field(default=900.0, ge=0)
    """Seconds without a call after which a session's modules are stopped, until its next call; 0: never."""
    workspace_bytes: int = Field(default=2 << 30, ge=0)
    """Bytes on disk that a session's own workspace may take, or what waits to be applied; 0: as many as there are."""
    clearance_url: str | None = Field(default=None, pattern=r"^https?://\S+$")
    clearance_both: Literal["on", "off"] = "off"
    clearance_url_seconds: float = Field(default=Clearance().endpoint_seconds, gt=0, le=3600)
    clearance_seconds: float = Field(default=Clearance().person_seconds, gt=0, le=86_400)
    memory: Literal["on", "off"] = "on"
    memory_budget: float = Field(default=0.150, gt=0, le=60)
    """Seconds that a turn waits for what memory recalls."""
    embeddings: str | None = None
    """The model for memory's embeddings, at `embeddings_url` or else `base_url`; None: the one that comes along."""
    embeddings_url: str | None = None
    embeddings_key: str | None = Field(default=None, repr=False)
    chroma_url: str | None = None
    """A Chroma server that holds memory, in place of the data directory."""
    log: Literal["debug", "info", "warning", "error"] = "warning"
    bounds: BoundSettings = Field(default_factory=BoundSettings)
    models: dict[_RoleName, ModelSettings] = Field(default_factory=dict)
    """Models of their own for roles, by name: `smart`, `fast`, or others that CALL, plans and `--model` name."""
    plans: PlanSettings = Field(default_factory=PlanSettings)
    rates: dict[str, RateSettings] = Field(default_factory=dict)
    sessions: SessionSettings = Field(default_factory=SessionSettings)

    @property
    def embedded(self) -> bool:
        """Whether no endpoint is configured."""
        return not self.base_url and not self.api_key and "smart" not in self.models

    @model_validator(mode="after")
    def _roles_exist(self) -> Settings:
        there = {"smart", "fast", *self.models}
        for part in ("planner", "judge", "patcher", "reporter"):
            role = getattr(self.plans, part)
            if role and role not in there:
                raise ValueError(f"plans.{part} names the role {role!r}, which has no [models.{role}]")
        return self


def load(*, data: str | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. `data`: the command line's `--data`, which comes before everything else.

    Raises:
        UsageError: a file or a variable holds something that can't be; the sentence names it.
    """
    environment = os.environ if environment is None else environment
    given: dict[str, Any] = {}
    for name, field in _ENVIRONMENT.items():
        if environment.get(name):
            given[field] = environment[name]
    for several in ("takes", "warm"):
        if isinstance(given.get(several), str):
            given[several] = [one.strip() for one in given[several].split(",") if one.strip()]
    if data:
        given["data"] = data
    if isinstance(given.get("log"), str):
        given["log"] = given["log"].lower()
    folder = Path(str(given["data"])) if "data" in given else Settings().data
    merged = {**_file(folder / "iact.toml"), **_file(Path("iact.toml")), **given}
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        raise UsageError(_sentence(error)) from error
    return settings.model_copy(update={"data": settings.data.expanduser().absolute()})


def _file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"The settings file {path} can't be read: {error}.") from error


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    variable = next((name for name, target in _ENVIRONMENT.items() if target == field), None)
    where = f"{field} (or {variable})" if variable else field
    if not field or first["type"] == "value_error":
        return f"The settings can't be: {first['msg'].removeprefix('Value error, ')}."
    return f"The setting {where} can't be {first.get('input')!r}: {first['msg']}."
