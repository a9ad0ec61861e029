"""The settings of a user: `iact.toml` in the working or the data directory, overridden by the environment."""

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
    """The bounds of new sessions, `[bounds]`; one that is hit is told."""

    model_config = ConfigDict(extra="forbid")

    depth: int = Field(default=_BOUNDS.depth, ge=0, le=64, description="levels of agents below the root")
    agents: int = Field(default=_BOUNDS.agents, ge=1, description="agents of a session, over its whole life")
    turns: int = Field(default=_BOUNDS.turns, ge=1, description="turns of an agent for one task")
    tokens: int = Field(default=_BOUNDS.tokens, ge=1, description="tokens of a session, read and written")
    tool: float = Field(default=_BOUNDS.tool, gt=0, description="seconds that a call of a tool may take")
    reply_tokens: int = Field(
        default=_BOUNDS.reply_tokens, ge=16, description="tokens of one reply of a model"
    )
    money: float | None = Field(
        default=None, gt=0, description="what a session's calls of models may cost; needs prices"
    )


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

    @property
    def price(self) -> Price | None:
        """What tokens cost; None where nothing is set. What is reused costs what is read anew, if nothing else is said."""
        return _price(self.price_prompt, self.price_cached, self.price_completion)


_UNPRICED: Final = ModelSettings()
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


class AccountSettings(BaseModel):
    """Who may use a server, `[accounts]`: how people sign in, and what they may. The defaults are for one person."""

    model_config = ConfigDict(extra="forbid")

    authenticator: AuthenticatorName = Field(
        default="token",
        description="how people sign in. `token`: with the address that the server prints, one person; `password`: with a "
        "name and a password (`iact user add`); `header`: a proxy says who it is; `oidc`: an OpenID Connect provider does",
    )
    url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s/?#@]+/?$",
        description="the address under which people reach this server through a proxy: `https://iact.example.org`",
    )
    days: float = Field(default=14, gt=0, le=366, description="days after its last use that a sign-in ends")
    admins: tuple[str, ...] = Field(
        default=(), description="names of users who are admins; with `oidc` and `header` also names of groups"
    )
    create: bool = Field(
        default=True,
        description="with `header` and `oidc`: whoever signs in for the first time gets an account; false: only who was "
        "added (`iact user add`)",
    )
    header: str = Field(
        default="X-Forwarded-User",
        pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$",
        description="with `header`: the header in which the proxy says the name",
    )
    groups_header: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$",
        description="with `header`: that in which it says the groups, separated by commas",
    )
    proxies: tuple[IPvAnyNetwork, ...] = Field(
        default=(),
        description="the addresses from which the proxy comes (`10.0.0.5`, `fd00::/8`); what others say in its headers "
        "counts for nothing, and a server that other machines reach (`--host`) answers no others",
    )
    issuer: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="with `oidc`: the provider's address, its issuer"
    )
    client: str | None = Field(default=None, description="with `oidc`: this server's client id there")
    secret: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="with `oidc`: the name of the environment variable, or of the stored secret (`iact secret`), that holds "
        "the client's secret; none: the client has none, and PKCE alone protects it",
    )
    oidc_scopes: tuple[str, ...] = Field(
        default=("openid", "profile", "email"), description="with `oidc`: the scopes that are asked for"
    )
    name_claim: str = Field(
        default="preferred_username",
        description="with `oidc`: the claim that has the name; `sub` where it has none",
    )
    groups_claim: str = Field(default="groups", description="with `oidc`: the claim that has the groups")
    admins_see: bool = Field(
        default=False, description="true: admins may read the sessions of others; it is in the audit"
    )
    public_links: bool = Field(
        default=False, description="true: a link can be made that works without an account"
    )

    @model_validator(mode="after")
    def _complete(self) -> AccountSettings:
        if any(one.prefixlen == 0 for one in self.proxies):
            raise ValueError("accounts.proxies names every address there is; name those of the proxy")
        if self.authenticator == "header" and not self.proxies:
            raise ValueError(
                "accounts.authenticator is header, and accounts.proxies names no address; else everybody could say who they are"
            )
        if self.authenticator == "oidc" and not (self.issuer and self.client and self.url):
            raise ValueError(
                "accounts.authenticator is oidc, which needs accounts.issuer, accounts.client and accounts.url"
            )
        return self


class RateSettings(BaseModel):
    """How often steps of a plan may call a module or one of its functions, or a model's endpoint may be asked: `[rates.NAME]`.

    An endpoint is named by its host, with the port where its address has one: `[rates."api.example.com"]`."""

    model_config = ConfigDict(extra="forbid")

    per_second: float = Field(
        gt=0, le=10_000, description="calls per second (KAIJU: token bucket per endpoint)"
    )
    burst: int = Field(default=1, ge=1, le=10_000, description="calls that may come at once after a rest")


class Settings(BaseModel):
    """Everything that a user can set. No endpoint and no key: the embedded model is used."""

    model_config = ConfigDict(extra="forbid")

    data: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("iact", appauthor=False)),
        description="the data directory: sessions, memory, secrets, policy",
    )
    base_url: str | None = Field(
        default=None, description="an endpoint that speaks the OpenAI protocol; none: the embedded model"
    )
    api_key: str | None = Field(default=None, repr=False, description="the endpoint's key, if it wants one")
    model: str | None = Field(
        default=None, description="the model's name there; not needed if it serves only one"
    )
    model_smart: str | None = Field(default=None, description="another for the role `smart`")
    model_fast: str | None = Field(default=None, description="another for the role `fast`")
    context: int = Field(default=32_768, ge=512, description="the models' window in tokens")
    takes: tuple[Medium, ...] = Field(
        default=(),
        description="media that the models understand beside text: `image`, `audio`; in the variable separated by commas",
    )
    dialect: Literal["text", "tools"] = Field(
        default="text", description="`tools`: for models that insist on function calls"
    )
    price_prompt: float | None = Field(
        default=None,
        ge=0,
        description="what a million tokens cost that a model reads anew, in whatever money you count; "
        "without prices the page shows no cost",
    )
    price_cached: float | None = Field(
        default=None, ge=0, description="likewise, of tokens that it had read before; none: as the others"
    )
    price_completion: float | None = Field(
        default=None, ge=0, description="likewise, of those that it writes"
    )
    sandbox: Literal["docker", "bubblewrap", "kubernetes", "off", "auto"] = Field(
        default="auto",
        description="what modules run in; `auto`: Docker if its engine answers, else bubblewrap",
    )
    runtime: str = Field(
        default="auto",
        description="the Docker engine's runtime for modules, by its name there; "
        "`auto`: gVisor if the engine is set up for it. On Kubernetes the runtime class; `auto`: `gvisor`, `none`: "
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
        description="on Kubernetes, where nodes find the sandbox's images: `registry.example/iact`; `iact image push` puts "
        "them there",
    )
    kubernetes_volume: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9.-]*(/[A-Za-z0-9._-]+)*$",
        description="on Kubernetes, the claim of the volume that holds the data directory, and its folder there: "
        "`CLAIM/FOLDER`",
    )
    kubernetes_node: str | None = Field(
        default=None,
        description="on Kubernetes, the node that modules must run on, where the volume can be mounted on one alone",
    )
    warm: tuple[str, ...] = Field(
        default=(),
        description="modules that are started with a session, so that their first call need not wait for a container; "
        "in the variable separated by commas",
    )
    pool: int = Field(
        default=1,
        ge=0,
        le=16,
        description="for how many new sessions `iact serve` keeps a shell and a files module running",
    )
    idle: float = Field(
        default=900.0,
        ge=0,
        description="seconds without a call after which a session's modules are stopped, until its next call; 0: never",
    )
    session_idle: float = Field(
        default=1800.0,
        ge=0,
        description="seconds at rest, with nobody watching, after which one of several hosts closes a session, until "
        "somebody asks for it; 0: never",
    )
    workspace_bytes: int = Field(
        default=2 << 30,
        ge=0,
        description="bytes on disk that a session's own workspace may take, or what waits to be applied; 0: any number",
    )
    search: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s?#@]+$",
        description="your SearXNG server, whose JSON form `web.search` asks; its host is then allowed for `web`",
    )
    inside: dict[str, str] = Field(
        default_factory=dict,
        description="hosts that lead to a machine of yours, which modules could not reach otherwise: "
        '`"search.lan:80" = "192.168.1.5:8888"`; each must be allowed for a module, as any other',
    )
    store: str | None = Field(
        default=None,
        description="where journals are that several hosts share: `s3://BUCKET/PREFIX`, `gs://…`, `az://…` or "
        "`file:///DIRECTORY`; none: the data directory alone (`pip install 'iact[cluster]'`)",
    )
    host: str = Field(
        default_factory=socket.gethostname,
        description="what this host is called in journals that several hosts share",
    )
    cluster: str | None = Field(
        default=None,
        description="how hosts that share a store find each other: `static`, by the store alone; `iact serve` is then the "
        "way in to them",
    )
    cluster_ca: Path | None = Field(
        default=None,
        description="the authority whose certificates hosts and gateways accept from each other, a PEM file; with it, and the "
        "next two, they speak TLS 1.3 and nothing else",
    )
    cluster_cert: Path | None = Field(
        default=None,
        description="this member's certificate, a PEM file; it names the address at which others reach a host",
    )
    cluster_key: Path | None = Field(default=None, description="the key of that certificate, a PEM file")
    faces: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="the port on which `iact serve` also serves other people's programs (OpenAI's Responses and chat "
        "completions, A2A, AG-UI, MCP), as `--faces`; `0`: a free one; none: they are not served (`pip install 'iact[http]'`)",
    )
    accounts_url: str | None = Field(
        default=None,
        repr=False,
        description="a PostgreSQL database for the accounts, which hosts that share a store share, too: "
        "`postgresql://USER@HOST/NAME`; none: the file `accounts.db` in the data directory",
    )
    clearance_url: str | None = Field(
        default=None,
        pattern=r"^https?://\S+$",
        description="an HTTP endpoint that is asked about every call, in place of a person",
    )
    clearance_both: Literal["on", "off"] = Field(
        default="off",
        description="`on`: what that endpoint allows, and a rule of the policy or of provenance asks about, is put to a person, too",
    )
    clearance_person: Literal["on", "off"] = Field(
        default="on",
        description="`off`: nobody is there to answer questions, so that the policy's rules for that hold; `iact run` and `iact plan run` without a terminal behave so by themselves",
    )
    clearance_url_seconds: float = Field(
        default=Clearance().endpoint_seconds,
        gt=0,
        le=3600,
        description="how long that endpoint may take to answer",
    )
    clearance_seconds: float = Field(
        default=Clearance().person_seconds,
        gt=0,
        le=86_400,
        description="how long a person may take; then the call is denied",
    )
    memory: Literal["on", "off"] = Field(
        default="on", description="`off`: nothing is remembered across sessions"
    )
    memory_budget: float = Field(
        default=0.150, gt=0, le=60, description="seconds that a turn waits for what memory recalls"
    )
    embeddings: str | None = Field(
        default=None,
        description="the model for memory's embeddings, at `embeddings_url` or else `base_url`; none: the one that comes along",
    )
    embeddings_url: str | None = Field(default=None, description="its endpoint")
    embeddings_key: str | None = Field(default=None, repr=False, description="that endpoint's key")
    chroma_url: str | None = Field(
        default=None, description="a Chroma server that holds memory, in place of the data directory"
    )
    log: Literal["debug", "info", "warning", "error"] = Field(
        default="warning",
        description="what is written to stderr; `info`: also sign-ins, refusals, sessions that open and close, calls of "
        "modules that fail",
    )
    log_format: Literal["text", "json"] = Field(
        default="text",
        description="`json`: one JSON object per line, for whoever collects logs, with no content, token or secret in it",
    )
    bounds: BoundSettings = Field(default_factory=BoundSettings)
    models: dict[_RoleName, ModelSettings] = Field(default_factory=dict)
    """Models of their own for roles, by name: `smart`, `fast`, or others that CALL, plans and `--model` name."""
    plans: PlanSettings = Field(default_factory=PlanSettings)
    rates: dict[str, RateSettings] = Field(default_factory=dict)
    sessions: SessionSettings = Field(default_factory=SessionSettings)
    accounts: AccountSettings = Field(default_factory=AccountSettings)

    @property
    def price(self) -> Price | None:
        """What tokens cost; None where nothing is set. What is reused costs what is read anew, if nothing else is said."""
        return _price(self.price_prompt, self.price_cached, self.price_completion)

    @property
    def embedded(self) -> bool:
        """Whether no endpoint is configured."""
        return not self.base_url and not self.api_key and "smart" not in self.models

    @property
    def kubernetes(self) -> NamespaceSettings:
        """Where in a cluster modules run, if they do."""
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
            from iact.sandbox.egress import inside  # most commands have no use for it

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
        free = self.bounds.money is None or self.embedded or self.price is not None
        if not free and any(
            self.models.get(name, _UNPRICED).price is None for name in {"smart", *self.models}
        ):
            raise ValueError("bounds.money needs prices: set price_prompt and price_completion")
        return self


FILE: Final = "iact.toml"
"""In a data directory, or where a command is run."""

_OPENAI: Final = {"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY"}
"""Named as everybody names them."""


def variable_of(field: str) -> str | None:
    """The environment variable of a setting at the top of the file; the tables below have none."""
    annotation = Settings.model_fields[field].annotation if field in Settings.model_fields else BaseModel
    if get_origin(annotation) is dict or (inspect.isclass(annotation) and issubclass(annotation, BaseModel)):
        return None
    return _OPENAI.get(field, f"IACT_{field.upper()}")


def load(*, data: str | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. `data`: the command line's `--data`, which comes before everything else.

    Raises:
        UsageError: a file or a variable holds something that can't be; the sentence names it.
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
        return f"The settings can't be: {first['msg'].removeprefix('Value error, ')}."
    return f"The setting {where} can't be {first.get('input')!r}: {first['msg']}."
