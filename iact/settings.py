"""The user's settings: `iact.toml` in the working directory or the data directory, overridden by the environment."""

from __future__ import annotations

import inspect
import os
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_origin

import platformdirs
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    ValidationError,
    field_validator,
    model_validator,
)

from iact.accounts.people import AuthenticatorName
from iact.core.errors import UsageError
from iact.core.ports import Medium, Price
from iact.core.records.parts import Bounds, PlanBounds
from iact.core.session.clearance import Clearance

if TYPE_CHECKING:
    from iact.sandbox.kubernetes.namespace import NamespaceSettings

_BOUNDS = Bounds()


def _price(prompt: float | None, cached: float | None, completion: float | None) -> Price | None:
    if prompt is None and completion is None:
        return None
    read = prompt or 0.0
    return Price(read, read if cached is None else cached, completion or 0.0)


class BoundSettings(BaseModel):
    """The bounds of new sessions, `[bounds]`. When a bound is hit, it is reported."""

    model_config = ConfigDict(extra="forbid")

    depth: int = Field(default=_BOUNDS.depth, ge=0, le=64, description="levels of agents below the root")
    agents: int = Field(
        default=_BOUNDS.agents, ge=1, description="agents of a session, over its whole lifetime"
    )
    turns: int = Field(default=_BOUNDS.turns, ge=1, description="turns of an agent per task")
    tokens: int = Field(default=_BOUNDS.tokens, ge=1, description="tokens of a session, input and output")
    tool: float = Field(default=_BOUNDS.tool, gt=0, description="seconds that a tool call may take")
    reply_tokens: int | None = Field(
        default=_BOUNDS.reply_tokens,
        ge=16,
        description="tokens of one model reply; if unset, what the model's window leaves",
    )
    money: float | None = Field(
        default=None, gt=0, description="what a session's model calls may cost; needs prices"
    )


class ModelSettings(BaseModel):
    """The model of one role, `[models.NAME]`. Missing values are as for all models; `model`: the endpoint's only one."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    base_url: str | None = Field(default=None, description="the model's endpoint")
    key: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="the name of the environment variable or stored secret (`iact secret`) that contains the endpoint's key",
    )
    model: str | None = Field(default=None, description="the model's name at the endpoint")
    context: int | None = Field(default=None, ge=512, description="the model's context window in tokens")
    takes: tuple[Medium, ...] | None = Field(
        default=None, description="media that the model accepts besides text"
    )
    dialect: Literal["text", "tools"] | None = Field(
        default=None, description="`tools`: for a model that insists on function calls"
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="how freely it chooses its words; without it, as the endpoint has it (PTR's experiments: 0)",
    )
    price_prompt: float | None = Field(default=None, ge=0, description="price of a million input tokens")
    price_cached: float | None = Field(
        default=None, ge=0, description="price of a million cached input tokens"
    )
    price_completion: float | None = Field(default=None, ge=0, description="price of a million output tokens")

    @property
    def price(self) -> Price | None:
        """What tokens cost, or None if no price is set. Without their own price, cached tokens cost as much as others."""
        return _price(self.price_prompt, self.price_cached, self.price_completion)


_UNPRICED: Final = ModelSettings()
_RoleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
_Share = Annotated[float, Field(ge=0, le=1)]
_Role = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$|^$")]
_PLANS = PlanBounds()


class PlanSettings(BaseModel):
    """The bounds and thresholds of plans, `[plans]`, each with its source."""

    model_config = ConfigDict(extra="forbid")

    concurrency: int = Field(
        default=_PLANS.concurrency,
        ge=1,
        le=256,
        description="steps that run at the same time (KAIJU, section 5)",
    )
    nodes: int = Field(
        default=_PLANS.nodes, ge=1, le=20_000, description="steps over all versions (Graph Harness)"
    )
    calls: int = Field(
        default=_PLANS.calls,
        ge=1,
        le=10_000,
        description="model calls about one plan (KAIJU, table 3: budgets)",
    )
    patches: int = Field(
        default=_PLANS.patches,
        ge=0,
        le=1000,
        description="how many failed steps may be replaced (Graph Harness, section 6)",
    )
    replans: int = Field(
        default=_PLANS.replans,
        ge=0,
        le=100,
        description="how many times a plan may be rewritten (Graph Harness, section 6)",
    )
    seconds: float = Field(
        default=_PLANS.seconds, gt=0, description="seconds of elapsed time, not counting pauses (KAIJU)"
    )
    confidence: _Share = Field(
        default=_PLANS.confidence,
        description="the confidence from which an analysis is accepted (DAG mode: 0.8)",
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
        description="weights of schema, planning, method, scale and history in a profile's risk; they add up to 1 (PTR, formula 15)",
    )
    guarded_from: _Share = Field(
        default=_PLANS.guarded_from,
        description="from this risk on, a profile's branches apply (PTR, formula 18)",
    )
    repair_from: _Share = Field(
        default=_PLANS.repair_from,
        description="from this risk on, a profile is eligible for repair (PTR, formula 18)",
    )
    trust_below: _Share = Field(
        default=_PLANS.trust_below, description="below this trust, a profile is repaired (PTR, formula 34)"
    )

    trust_penalties: tuple[_Share, _Share, _Share, _Share, _Share, _Share] = Field(
        default=(0.3, 0.15, 0.05, 0.02, 0.05, 0.1),
        description="how much trust is lost for a step that failed, returned nothing, returned almost nothing, was branched "
        "or recovered, and for a condition that was met (PTR, formula 33)",
    )
    recoveries: int = Field(
        default=_PLANS.recoveries,
        ge=0,
        le=10,
        description="how often one step may be tried again by the recovery rules of a profile (PTR, algorithm 1: N_rec)",
    )
    agent_seconds: float = Field(
        default=_PLANS.agent_seconds,
        gt=0,
        description="seconds for a step that an agent carries out, if the step states none (DAG mode: 600)",
    )
    rounds: int = Field(
        default=_PLANS.rounds,
        ge=1,
        le=100,
        description="analyze: the most times that a plan is judged; `rounds` of PLAN and `--rounds` override it (DAG mode: 3)",
    )
    report: bool = Field(
        default=_PLANS.report,
        description="modes in which a model judges end with a written report; PLAN's `report` overrides it",
    )

    @model_validator(mode="after")
    def _fits(self) -> PlanSettings:
        if abs(sum(self.risk_weights) - 1) > 1e-6:
            raise ValueError(f"risk_weights must add up to 1, but add up to {sum(self.risk_weights):g}")
        if self.guarded_from > self.repair_from:
            raise ValueError("guarded_from must not be above repair_from")
        return self


class SessionSettings(BaseModel):
    """How long sessions are kept, `[sessions]`. Pinned and open sessions are always kept."""

    model_config = ConfigDict(extra="forbid")

    keep_days: float = Field(
        default=0, ge=0, description="days after its last change until a session is deleted; 0: never"
    )
    keep_bytes: int = Field(
        default=0,
        ge=0,
        description="bytes that all sessions together may take; above that, the oldest are deleted; 0: unlimited",
    )
    trash_days: float = Field(default=7, ge=0, description="days for which a deleted session can be restored")


class AccountSettings(BaseModel):
    """Who may use a server, `[accounts]`: how people sign in, and what they may. The defaults are for one person."""

    model_config = ConfigDict(extra="forbid")

    authenticator: AuthenticatorName = Field(
        default="token",
        description="how people sign in. `token`: one person, with the address that the server prints; `password`: with a "
        "name and a password (`iact user add`); `header`: a proxy names the user; `oidc`: an OpenID Connect provider does",
    )
    url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s/?#@]+/?$",
        description="the address at which people reach this server through a proxy: `https://iact.example.org`",
    )
    days: float = Field(default=14, gt=0, le=366, description="days after its last use until a sign-in ends")
    admins: tuple[str, ...] = Field(
        default=(),
        description="users who are admins, by name; with `oidc` and `header` also groups, as `group:NAME`",
    )
    create: bool = Field(
        default=True,
        description="with `header` and `oidc`: a user who signs in for the first time gets an account; false: only users who "
        "were added (`iact user add`) can sign in",
    )
    header: str = Field(
        default="X-Forwarded-User",
        pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$",
        description="with `header`: the header in which the proxy sends the user's name",
    )
    groups_header: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$",
        description="with `header`: the header in which it sends the user's groups, separated by commas",
    )
    proxies: tuple[IPvAnyNetwork, ...] = Field(
        default=(),
        description="the proxy's addresses (`10.0.0.5`, `fd00::/8`); these headers are ignored from any other address, and a "
        "server that other machines can reach (`--host`) answers no other address",
    )
    issuer: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="with `oidc`: the provider's address, its issuer"
    )
    client: str | None = Field(
        default=None, description="with `oidc`: this server's client id at the provider"
    )
    secret: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="with `oidc`: the name of the environment variable or stored secret (`iact secret`) that contains the "
        "client's secret; none: the client has no secret, and only PKCE protects it",
    )
    oidc_scopes: tuple[str, ...] = Field(
        default=("openid", "profile", "email"), description="with `oidc`: the requested scopes"
    )
    name_claim: str = Field(
        default="preferred_username",
        description="with `oidc`: the claim with the user's name; `sub` is used if it is missing",
    )
    groups_claim: str = Field(default="groups", description="with `oidc`: the claim with the user's groups")
    admins_see: bool = Field(
        default=False,
        description="true: admins may read other users' sessions; this is recorded in the audit",
    )
    public_links: bool = Field(
        default=False, description="true: people can create links that work without an account"
    )

    @model_validator(mode="after")
    def _complete(self) -> AccountSettings:
        if any(one.prefixlen == 0 for one in self.proxies):
            raise ValueError(
                "accounts.proxies contains every possible address; give only the addresses of the proxy"
            )
        if self.authenticator == "header" and not self.proxies:
            raise ValueError(
                "accounts.authenticator is header, but accounts.proxies is empty; anyone could then claim to be any user"
            )
        if self.authenticator == "oidc" and not (self.issuer and self.client and self.url):
            raise ValueError(
                "accounts.authenticator is oidc, which needs accounts.issuer, accounts.client and accounts.url"
            )
        return self


class RateSettings(BaseModel):
    """How often steps of a plan may call a module or one of its functions, or a model endpoint may be called: `[rates.NAME]`.

    An endpoint is named by its host, with the port if its address has one: `[rates."api.example.com"]`."""

    model_config = ConfigDict(extra="forbid")

    per_second: float = Field(
        gt=0, le=10_000, description="calls per second (KAIJU: token bucket per endpoint)"
    )
    burst: int = Field(
        default=1, ge=1, le=10_000, description="calls that may come at the same time after a pause"
    )


class Settings(BaseModel):
    """Everything that a user can set. Without an endpoint and a key, the model on board is used."""

    model_config = ConfigDict(extra="forbid")

    data: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("iact", appauthor=False)),
        description="the data directory: sessions, memory, secrets, policy",
    )
    base_url: str | None = Field(
        default=None, description="a model endpoint that speaks the OpenAI protocol; none: the model on board"
    )
    api_key: str | None = Field(default=None, repr=False, description="the endpoint's key, if it needs one")
    embedded: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$",
        description="the model on board that is used without an endpoint: `1.5b`, `0.5b`, the name of a file that was added "
        "(`iact model list`), or `off` for none; unset: the largest that fits this machine",
    )
    model: str | None = Field(
        default=None, description="the model's name at the endpoint; not needed if it serves only one"
    )
    model_smart: str | None = Field(default=None, description="another model for the role `smart`")
    model_fast: str | None = Field(default=None, description="another model for the role `fast`")
    context: int = Field(default=32_768, ge=512, description="the models' context window in tokens")
    takes: tuple[Medium, ...] = Field(
        default=(),
        description="media that the models accept besides text: `image`, `audio`; in the variable, separated by commas",
    )
    dialect: Literal["text", "tools"] = Field(
        default="text", description="`tools`: for models that insist on function calls"
    )
    price_prompt: float | None = Field(
        default=None,
        ge=0,
        description="the price of a million input tokens, in any currency; without prices, the page shows no cost",
    )
    price_cached: float | None = Field(
        default=None,
        ge=0,
        description="the price of a million cached input tokens; none: the same as other input tokens",
    )
    price_completion: float | None = Field(
        default=None, ge=0, description="the price of a million output tokens"
    )
    sandbox: Literal["docker", "bubblewrap", "kubernetes", "off", "auto"] = Field(
        default="auto",
        description="what modules run in; `auto`: Docker if its engine answers, else bubblewrap",
    )
    runtime: str = Field(
        default="auto",
        description="the name of the Docker engine's runtime for modules; "
        "`auto`: gVisor if the engine is set up for it. On Kubernetes, the runtime class; `auto`: `gvisor`; `none`: "
        "plain containers",
    )
    kubernetes_namespace: str = Field(
        default="iact",
        pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
        description="on Kubernetes, the namespace that modules run in (`pip install 'iact[kubernetes]'`)",
    )
    kubernetes_images: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9._:/-]*$",
        description="on Kubernetes, where nodes find the sandbox's images: `registry.example/iact`; `iact image push` "
        "pushes them there",
    )
    kubernetes_volume: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9.-]*(/[A-Za-z0-9._-]+)*$",
        description="on Kubernetes, the claim of the volume that contains the data directory, and its folder on the volume: "
        "`CLAIM/FOLDER`",
    )
    kubernetes_node: str | None = Field(
        default=None,
        description="on Kubernetes, the node that modules must run on, if the volume can only be mounted on one node",
    )
    warm: tuple[str, ...] = Field(
        default=(),
        description="modules that are started together with a session, so that their first call need not wait for a "
        "container; in the variable, separated by commas",
    )
    pool: int = Field(
        default=1,
        ge=0,
        le=16,
        description="for how many new sessions `iact serve` keeps a shell and a files module ready",
    )
    idle: float = Field(
        default=900.0,
        ge=0,
        description="seconds without a call until a session's modules are stopped; its next call starts them again; 0: never",
    )
    session_idle: float = Field(
        default=1800.0,
        ge=0,
        description="seconds until a server closes a session that is at rest and that no one is watching, so that it takes "
        "no memory and no container; it is opened again on request; 0: never",
    )
    workspace_bytes: int = Field(
        default=2 << 30,
        ge=0,
        description="bytes on disk that a session's own workspace, or its waiting changes, may take; 0: unlimited",
    )
    search: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s?#@]+$",
        description="your SearXNG server, which `web.search` asks for JSON; the module `web` may then reach its host",
    )
    inside: dict[str, str] = Field(
        default_factory=dict,
        description="host names for machines of yours that modules could not reach otherwise: "
        '`"search.lan:80" = "192.168.1.5:8888"`; like any other host, each must be allowed for a module',
    )
    store: str | None = Field(
        default=None,
        description="the store of journals that several hosts share: `s3://BUCKET/PREFIX`, `gs://…`, `az://…` or "
        "`file:///DIRECTORY`; none: only the data directory (`pip install 'iact[cluster]'`)",
    )
    host: str = Field(
        default_factory=socket.gethostname,
        description="this host's name in journals that several hosts share",
    )
    cluster: str | None = Field(
        default=None,
        description="how hosts that share a store find each other: `static` means through the store only; `iact serve` is "
        "then their gateway",
    )
    cluster_ca: Path | None = Field(
        default=None,
        description="a PEM file with the authority whose certificates hosts and gateways accept from each other; with this "
        "and the next two settings, they use only TLS 1.3",
    )
    cluster_cert: Path | None = Field(
        default=None,
        description="a PEM file with this member's certificate; it names the address at which others reach a host",
    )
    cluster_key: Path | None = Field(default=None, description="a PEM file with the key of that certificate")
    faces: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="the port on which `iact serve` also serves other programs (OpenAI Responses and chat completions, A2A, "
        "AG-UI, MCP), like `--faces`; `0`: a free port; none: they are not served (`pip install 'iact[http]'`)",
    )
    accounts_url: str | None = Field(
        default=None,
        repr=False,
        description="a PostgreSQL database for the accounts; hosts that share a store must share it as well: "
        "`postgresql://USER@HOST/NAME`; none: the file `accounts.db` in the data directory",
    )
    clearance_url: str | None = Field(
        default=None,
        pattern=r"^https?://\S+$",
        description="an HTTP endpoint that is asked about every call, instead of a person",
    )
    clearance_both: Literal["on", "off"] = Field(
        default="off",
        description="`on`: a person is asked as well about calls that the endpoint allows but that a rule of the policy or of provenance asks about",
    )
    clearance_person: Literal["on", "off"] = Field(
        default="on",
        description="`off`: no one can answer questions, so the policy's rules for that case apply; this is automatic for `iact run` and `iact plan run` without a terminal",
    )
    clearance_url_seconds: float = Field(
        default=Clearance().endpoint_seconds,
        gt=0,
        le=3600,
        description="seconds that the endpoint may take to answer",
    )
    clearance_seconds: float = Field(
        default=Clearance().person_seconds,
        gt=0,
        le=86_400,
        description="seconds that a person may take to answer; then the call is denied",
    )
    memory: Literal["on", "off"] = Field(
        default="on", description="`off`: nothing is remembered across sessions"
    )
    memory_budget: float = Field(
        default=0.150,
        gt=0,
        le=60,
        description="seconds that a turn waits for memory's recall; the first one, which may have to open it, waits up to 30 s",
    )
    embeddings: str | None = Field(
        default=None,
        description="the model for memory's embeddings, at `embeddings_url` or else at `base_url`; none: the included one",
    )
    embeddings_url: str | None = Field(default=None, description="the endpoint of the model for embeddings")
    embeddings_key: str | None = Field(default=None, repr=False, description="the key of that endpoint")
    chroma_url: str | None = Field(
        default=None, description="a Chroma server that stores memory, instead of the data directory"
    )
    log: Literal["debug", "info", "warning", "error"] = Field(
        default="warning",
        description="what is logged to stderr; `info`: also sign-ins, refusals, opened and closed sessions, and failed module "
        "calls",
    )
    log_format: Literal["text", "json"] = Field(
        default="text",
        description="`json`: one JSON object per line, for log collectors, without any content, token or secret",
    )
    bounds: BoundSettings = Field(default_factory=BoundSettings)
    models: dict[_RoleName, ModelSettings] = Field(default_factory=dict)
    """Models for roles, by the role's name: `smart`, `fast`, or others that CALL, plans and `--model` use."""
    plans: PlanSettings = Field(default_factory=PlanSettings)
    rates: dict[str, RateSettings] = Field(default_factory=dict)
    sessions: SessionSettings = Field(default_factory=SessionSettings)
    accounts: AccountSettings = Field(default_factory=AccountSettings)

    @property
    def price(self) -> Price | None:
        """What tokens cost, or None if no price is set. Without their own price, cached tokens cost as much as others."""
        return _price(self.price_prompt, self.price_cached, self.price_completion)

    @property
    def without_endpoint(self) -> bool:
        """Whether no endpoint is configured."""
        return not self.base_url and not self.api_key and "smart" not in self.models

    @property
    def kubernetes(self) -> NamespaceSettings:
        """Where modules run on Kubernetes, if they do."""
        from iact.sandbox.kubernetes.namespace import NamespaceSettings

        return NamespaceSettings(
            self.kubernetes_namespace,
            self.kubernetes_images,
            self.kubernetes_volume,
            self.kubernetes_node,
            self.host,
        )

    @field_validator("inside")
    @classmethod
    def _targets(cls, given: dict[str, str]) -> dict[str, str]:
        if given:
            from iact.sandbox.egress import inside  # most commands don't need it

            inside(given)
        return given

    @model_validator(mode="after")
    def _roles_exist(self) -> Settings:
        there = {"smart", "fast", *self.models}
        for part in ("planner", "judge", "patcher", "reporter"):
            role = getattr(self.plans, part)
            if role and role not in there:
                raise ValueError(f"plans.{part} names the role {role!r}, which has no [models.{role}]")
        return self

    @model_validator(mode="after")
    def _money_is_counted(self) -> Settings:
        free = self.bounds.money is None or self.without_endpoint or self.price is not None
        if not free and any(
            self.models.get(name, _UNPRICED).price is None for name in {"smart", *self.models}
        ):
            raise ValueError("bounds.money needs prices: set price_prompt and price_completion")
        return self


FILE: Final = "iact.toml"
"""The file's name in a data directory, or in the working directory of a command."""

_OPENAI: Final = {"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY"}
"""Settings whose variables have their usual names."""


def variable_of(field: str) -> str | None:
    """The environment variable of a top-level setting. Settings in tables have none."""
    annotation = Settings.model_fields[field].annotation if field in Settings.model_fields else BaseModel
    if get_origin(annotation) is dict or (inspect.isclass(annotation) and issubclass(annotation, BaseModel)):
        return None
    return _OPENAI.get(field, f"IACT_{field.upper()}")


def load(*, data: str | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. `data`: the command line's `--data`, which takes precedence over everything else.

    Raises:
        UsageError: a file or a variable contains an invalid value; the message names it.
    """
    environment = os.environ if environment is None else environment
    given: dict[str, Any] = {}
    for field in Settings.model_fields:
        if (name := variable_of(field)) and environment.get(name):
            given[field] = environment[name]
    for several in ("takes", "warm"):
        if isinstance(given.get(several), str):
            given[several] = [one.strip() for one in given[several].split(",") if one.strip()]
    if data:
        given["data"] = data
    for word in ("log", "log_format"):
        if isinstance(given.get(word), str):
            given[word] = given[word].lower()
    folder = Path(str(given["data"])) if "data" in given else Settings().data
    merged = {**_file(folder / FILE), **_file(Path(FILE)), **given}
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
    variable = variable_of(field)
    where = f"{field} (or {variable})" if variable else field
    if not field or first["type"] == "value_error":
        return f"The settings are invalid: {first['msg'].removeprefix('Value error, ')}."
    return f"The setting {where} can't be {first.get('input')!r}: {first['msg']}."


def make_data_directory(settings: Settings) -> None:
    """Create the data directory if it does not exist.

    Raises:
        UsageError: it can't be created.
    """
    try:
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"The data directory {settings.data} can't be created: {error.strerror}.") from error
