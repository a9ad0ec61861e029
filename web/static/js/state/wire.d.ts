// Written by docs/reference/wire.py from web/wire/; run: python -m docs.reference.generated

import type { Said } from "./records.js";

type AnyKey<U> = U extends unknown ? keyof U : never;

/** A union on whose members every field of any member can be read; it is undefined where a member does not have it. */
type Each<U, K extends PropertyKey = AnyKey<U>> = U extends unknown ? U & { [P in Exclude<K, keyof U>]?: undefined } : never;

export interface Shown {
  n: number;
  at: string;
  agent: string;
  body: string;
  /** The full size of `body`, if it was shortened. */
  body_size?: number;
  digest?: string;
  /** In old records, missing until the page requests it. */
  html?: string;
  messages?: CallMessage[];
  /** The whole text of a person's message. The page adds it. */
  said?: string;
}

/** The content of a record, and what the server adds to show it. */
export type JournalRecord = Shown & Each<Said>;

export interface Account {
  name: string;
  admin: boolean;
  scopes: Array<string>;
  tokens: Array<TokenRow>;
  sign_ins: Array<SignInRow>;
}

/** What the model of an agent has been doing `since` a time: `asking`, `reasoning` or `writing`; or what delays it. A delay is `limited` (its endpoint limits requests), `retrying`, `stalled` (a reply has stopped arriving) or `slot` (others are served first). With an empty `state`, the model is no longer being asked. A model that waits says `until` when, which `attempt` comes next `of` how many, and `why`. Times are ISO 8601, UTC. */
export interface ActivityNews {
  type: "activity";
  agent: string;
  state: "" | "asking" | "reasoning" | "writing" | "limited" | "retrying" | "stalled" | "slot" | "loading";
  since: string;
  until?: string;
  attempt?: number;
  of?: number;
  why?: string;
}

export interface AddedEndpoint {
  name: string;
  model: string;
  url: string;
  in_use: boolean;
}

export interface AddedEndpoints {
  list: Array<AddedEndpoint>;
}

export interface Address {
  url: string;
}

export interface AppliedPath {
  path: string;
  outcome: string;
  why: string;
}

export interface ArchiveDownload {
  href: string;
  count: number;
  bytes: number;
  left_out: number;
}

export interface Audit {
  list: Array<AuditRow>;
}

export interface AuditRow {
  at: string;
  kind: string;
  who: string;
  address: string;
  about: Record<string, string>;
}

/** How far the model on board is that answers without an endpoint; `phase` empty: none is in use. `done` of `total` bytes of its file are here while it is `downloading`. `failed`: it can't come; `why` is a sentence. */
export interface BoardNews {
  type: "board";
  phase: "" | "waiting" | "downloading" | "checking" | "loading" | "ready" | "failed";
  done: number;
  total: number;
  why: string;
}

/** The session's tokens. `exhausted`: the root can't have another turn. `money`: the most that the session may cost, if there is a limit; `cost`: what it has cost so far. */
export interface Budget {
  tokens: number;
  used: number;
  exhausted: boolean;
  cost?: number;
  money?: number;
}

/** The message of a turn to a child. */
export interface CallMessage {
  action: number;
  to: string;
  html?: string;
}

export interface ChangeList {
  list: Array<ChangeRow>;
  earlier: number;
}

export interface ChangeRow {
  n: number;
  at: string;
  agent: string;
  function: string;
  paths: Array<PathStep>;
  more: number;
}

export interface Check {
  check: string;
  ok: boolean;
  detail: string;
  remedy: string;
}

export interface Context {
  agent: string;
  record: number;
  messages: Array<SeenMessage>;
}

export interface Count {
  count: number;
}

export interface DeletedSession {
  id: string;
  title: string;
  deleted: string;
  records: number;
}

export interface DeletedSessions {
  list: Array<DeletedSession>;
}

/** A piece of what a model writes. `thought`: it is part of the model's thinking before its reply; `restart`: what came before is void. */
export interface DeltaNews {
  type: "delta";
  agent: string;
  text: string;
  restart?: boolean;
  thought?: boolean;
}

export interface Difference {
  added: number | null;
  removed: number | null;
  text: string;
  left_out: number;
}

export interface Distilled {
  count: number;
  left_out: Record<string, string>;
}

export interface DoneSessions {
  sessions: Array<string>;
  refused: Record<string, string>;
  note: string;
}

/** An address, `href`, that can be fetched once. */
export interface Download {
  href: string;
}

/** What is set for all users. `secrets`: names only; values are never sent. */
export interface Everybody {
  modules: Array<ModuleDescription>;
  secrets: Array<string>;
}

export interface Example {
  id: string;
  title: string;
  about: string;
}

export interface Examples {
  list: Array<Example>;
}

export interface FileContent {
  path: string;
  kind: "file" | "folder" | "link" | "other";
  size: number;
  n?: number;
  show: "text" | "table" | "image" | "audio" | "video" | "link" | "large" | "binary";
  look?: "html" | "pdf" | "markdown" | "table" | "sheet";
  text?: string;
  left_out?: number;
  rows?: Array<Array<string>>;
  more_rows?: number;
  media?: string;
  target?: string;
}

export interface FileList {
  list: Array<FileRow>;
  more: number;
  n: number;
  unkept: number;
  folder: string;
  why: string;
}

export interface FileRow {
  path: string;
  kind: "file" | "folder" | "link" | "other";
  size: number;
  n?: number;
}

export interface FirstMessage {
  name: string;
  text: string;
}

export interface FirstMessages {
  list: Array<FirstMessage>;
}

export interface Foreseen {
  mode: "dialogue" | "auto" | "static" | "reflect" | "nreflect" | "orchestrator" | "analyze" | "profile";
  why: string;
}

export interface Formatted {
  closed: number;
  html: string;
  open: string;
}

export interface FoundSessions {
  list: Array<SessionRow>;
  behind: number;
}

/** A function of a module. `approved`: a person trusts what the manifest says about it. */
export interface FunctionRow {
  name: string;
  impact: 0 | 1 | 2;
  approved: boolean;
}

export interface GrantRow {
  name: string;
  group: boolean;
  role: "owner" | "steerer" | "reader";
}

/** A host that a module may reach without a question, and who allowed it: a policy, or a person and for how long. */
export interface HostRow {
  module: string;
  host: string;
  by: "policy" | "always" | "session";
}

export interface Hosts {
  list: Array<HostRow>;
}

export interface Html {
  n: number;
  html: string;
  messages?: Array<CallMessage>;
}

export interface HtmlOfRecords {
  list: Array<Html>;
}

export interface ImportedSession {
  session: string;
  foreign: string;
  left_out: number;
}

export interface InSession {
  n: number;
  session: string;
}

/** A link. `created`, `ends`: times in UTC; `opened`: how often it was opened; `at`: the record that it is frozen at. */
export interface LinkRow {
  id: string;
  created: string;
  ends: string;
  opened: number;
  at: number | null;
  hides: Array<string>;
  variables: Array<string>;
  public: boolean;
}

/** A value that is too long for the record of its question. */
export interface LongValue {
  name: string;
  text: string;
  sha256: string;
}

export interface Memories {
  results: Array<MemoryRow>;
  on: boolean;
  session_on: boolean | null;
}

export interface Memory {
  memory: MemoryDetails | null;
}

/** Everything that is known about one statement. `source`: the session and the record from which it was made. `replaces`, `replaced_by`: statements that it replaced, and the one that replaced it, if any. `withdraws`: it says that something no longer holds. */
export interface MemoryDetails {
  id: string;
  text: string;
  subject: string;
  kind: "preference" | "decision" | "fact" | "lesson";
  scope: "person" | "project" | "session";
  since: string;
  source: string;
  session: string;
  agent: string;
  origin: "said" | "distilled" | "remembered";
  untrusted: Array<string>;
  replaces: Array<string>;
  replaced_by: string;
  withdraws: boolean;
  contradicts: Array<string>;
}

/** A statement that a search found. `why`: how it was found. If it is not `current`, it has been replaced or withdrawn. */
export interface MemoryRow {
  id: string;
  text: string;
  subject: string;
  kind: "goal" | "preference" | "decision" | "fact" | "lesson" | "result";
  scope: "person" | "project" | "session";
  score: number;
  since: string;
  session: string;
  agent: string;
  why: string;
  untrusted: Array<string>;
  contradicts: Array<string>;
  current: boolean;
}

export interface MemoryState {
  on: boolean;
}

export interface ModelFile {
  name: string;
  title: string;
  size: number;
  present: boolean;
  in_use: boolean;
}

export interface ModelFiles {
  list: Array<ModelFile>;
}

export interface Module {
  module: ModuleRow;
}

/** Everything a person should know before approving a module: where it comes from, and the whole manifest. `shared`: an administrator added it for all users; only administrators can remove or approve it. */
export interface ModuleDescription {
  name: string;
  version: string | null;
  state: "ready" | "new";
  digest: string;
  functions: Array<FunctionRow>;
  origin: "shipped" | "user" | "agent";
  summary: string;
  shared: boolean;
  manifest: {protocol: 1; name: string; version: string; purpose: string; keywords: Array<string>; functions: Array<{name: string; alias: string; summary: string; documentation: string; schema_text: string; body: string; media_type: string; impact: 0 | 1 | 2; idempotent: boolean; exclusive: boolean; states: Array<string>; held: boolean; cache_key: string; timeout: number}>; states: Array<{name: string; summary: string}>; needs: {egress: Array<string>; secrets: Array<string>; workspace: "none" | "read" | "write"; memory_bytes: number; cpu: number; pids: number; own_instances: boolean; forgets: boolean}} | null;
}

/** A module in a list. A module is `new` if it has never run here, so that its functions are not known yet. */
export interface ModuleRow {
  name: string;
  version: string | null;
  state: "ready" | "new";
  digest: string;
  functions: Array<FunctionRow>;
}

export interface Modules {
  list: Array<ModuleDescription>;
}

export interface NamedFiles {
  at: number;
  shown: number | null;
  files: Record<string, string>;
}

export interface NamedFilesList {
  list: Array<NamedFiles>;
}

export interface NewLink {
  link: string;
  path: string;
}

export interface NewToken {
  token: string;
  secret: string;
}

/** An agent or a plan. Token counts are its own, without those of its children. `paused`: it is paused itself; in `state`, an agent below a paused one counts as paused, too. `ended`: how its last task ended, if it finished incompletely. An agent that waits for children names them in `awaited`; `awaited_of` is how many replies it waits for, including those that have arrived. An agent that works on a budget has `allowance`, `left` of it, and `lent`, the part that is set aside for children. `calls`: records of the function calls that run for it. `queued`: records of messages from a person that it has not begun to answer. */
export interface Node {
  path: string;
  name: string;
  caller: string;
  kind: "agent" | "plan";
  state: "idle" | "thinking" | "acting" | "waiting" | "paused" | "done" | "failed" | "cancelled";
  paused: boolean;
  doing: string;
  turns: number;
  model: string;
  prompt_tokens: number;
  cached_tokens: number;
  completion_tokens: number;
  record: number;
  ended?: string;
  awaited?: Array<string>;
  awaited_of?: number;
  allowance?: number;
  left?: number;
  lent?: number;
  calls?: Array<number>;
  queued?: Array<number>;
}

/** The request was carried out. */
export interface Nothing {
}

/** A sentence for the user. With `level` `error`: why the session has stopped. */
export interface NoticeNews {
  type: "notice";
  text: string;
  level?: "error";
}

/** The output of a running function. `call`: the record of its call. */
export interface OutputNews {
  type: "output";
  agent: string;
  call: number;
  text: string;
}

/** The names of a user's secrets; values are never sent. */
export interface OwnSecrets {
  list: Array<string>;
  lent: Array<string>;
}

export interface ParameterOffer {
  name: string;
  value: string;
}

export interface ParameterOffers {
  list: Array<ParameterOffer>;
}

export interface Patch {
  added: number | null;
  removed: number | null;
  text: string;
  digest: string;
}

export interface PathLines {
  added: number | null;
  removed: number | null;
  path: string;
}

export interface PathLinesList {
  list: Array<PathLines>;
}

export interface PathStep {
  path: string;
  kind: "add" | "modify" | "delete";
}

export interface Pending {
  total: number;
  at: number;
  digest: string;
  list: Array<PendingRow>;
}

/** A pending change, as people and programs are shown it: what `was` in the directory, and what would be `now`. `digest`: of all of this, which a yes to it sends back (`core.views.consent`). `conflict`: the path was also changed in the directory in the meantime. `impact`, `why`: how much the change does. `held`, `reason`: what it waits for. `n`: the record that reported its present form. `calls`, `agents`, `labels`: where it comes from. `from`, `to`: the other path of a file that seems to have been moved. `noise`: what tools keep beside the work, which is shown folded (`core.views.review_noise`). */
export interface PendingRow {
  from?: string;
  to?: string;
  path: string;
  kind: "add" | "modify" | "delete";
  digest: string;
  was?: StateRow;
  now?: StateRow;
  conflict?: boolean;
  impact: number;
  why: string;
  held: "" | "impact" | "provenance" | "conflict" | "pending" | "lockdown" | "unasked" | "failed";
  reason: string;
  n: number;
  calls: Array<number>;
  agents: Array<string>;
  labels: Array<string>;
  noise?: "ignored" | "git" | "cache";
}

/** Where a text was found: the record, the line, and the number of occurrences. */
export interface Place {
  n: number;
  agent: string;
  kind: string;
  before: string;
  match: string;
  after: string;
  count: number;
}

export interface Places {
  count: number;
  list: Array<Place>;
}

export interface PlanBegun {
  n: number;
  session: string;
  path: string;
}

export interface PlanFile {
  file: string;
}

export interface Preset {
  name: string;
  title: string;
  url: string;
  needs_key: boolean;
  keys: string;
  about: string;
}

export interface Presets {
  list: Array<Preset>;
}

/** The price of a million tokens. `models`: models with other prices, by name. */
export interface Prices {
  prompt: number;
  cached: number;
  completion: number;
  models?: Record<string, Prices>;
}

export interface Question {
  text: string;
  digest: string;
  values: Array<LongValue>;
}

export interface Reading {
  labels: Array<string>;
  digest: string;
}

/** The request was carried out and recorded as record `n`. */
export interface Recorded {
  n: number;
}

/** Several records in order. `apart`: older records that something still depends on. */
export interface RecordsNews {
  type: "records";
  list: Array<JournalRecord>;
  apart?: Array<JournalRecord>;
}

/** The session whose end is already shown can't be opened. */
export interface RefusedNews {
  type: "refused";
  code: string;
  message: string;
}

/** Records whose HTML has changed, now that more is known. */
export interface RenderedNews {
  type: "rendered";
  list: Array<Html>;
}

export interface Role {
  role: string;
  url: string;
  model: string;
  context: number;
  key: boolean;
  own: boolean;
  dialect: "text" | "tools" | null;
  takes: Array<"image" | "audio"> | null;
  price_prompt: number | null;
  price_cached: number | null;
  price_completion: number | null;
}

export interface Roles {
  list: Array<Role>;
}

export interface SeenMessage {
  role: string;
  text: string;
  size: number;
  reused: boolean;
  left_out?: number;
}

export interface SessionName {
  session: string;
}

/** Which session is watched from now on, or how it changed; `id` null: none yet. `since`: the last record that the client has. `now`: the server's clock, so that a client whose clock differs can compute durations. `levels`: the intent levels of its policy, by name. `last`: its newest record. `readonly`: it can only be viewed. `example`: it comes with the product. `foreign`: why this installation does not accept it as its own. `opening`: only its end has been read so far. `role`, `owner`: for another user's session, the client's role in it and the owner's name. `small`: names of its models, now or earlier, that are small and often wrong; without a session, those that would answer. */
export interface SessionNews {
  type: "session";
  id: string | null;
  since: number;
  model?: string;
  now?: string;
  intent?: number;
  levels?: Record<string, number>;
  journal?: string;
  last?: number;
  readonly?: boolean;
  opening?: boolean;
  example?: boolean;
  foreign?: string;
  role?: "owner" | "steerer" | "reader";
  owner?: string;
  prices?: Prices;
  small?: Array<string>;
}

/** A session in a list. `since`: when it entered its `state`; `what`: what it waits for; `named`: a person gave it its title; `source` and `at`: of a fork, the original session and the record; `hit`: where a search found the words. */
export interface SessionRow {
  id: string;
  title: string;
  created: string;
  changed: string;
  records: number;
  open: boolean;
  foreign: boolean;
  state: "idle" | "working" | "waits" | "paused" | "failed" | "unfinished" | "unreadable";
  since: string;
  what: string;
  pinned: boolean;
  named: boolean;
  source: string;
  at: number;
  hit?: Place;
}

/** The list that was requested with `sessions`. */
export interface SessionsNews {
  type: "sessions";
  total: number;
  deleted: number;
  list: Array<SessionRow>;
}

export interface Settled {
  n: number;
  done: number;
  left: Array<AppliedPath>;
  notes: Array<AppliedPath>;
}

export interface Setup {
  settings: Array<[string, string]>;
  checks: Array<Check>;
}

export interface SharedRow {
  id: string;
  title: string;
  owner: string;
  role: "owner" | "steerer" | "reader";
}

export interface SharedSessions {
  list: Array<SharedRow>;
}

export interface Sharing {
  grants: Array<GrantRow>;
  links: Array<LinkRow>;
  public: boolean;
}

export interface ShownPlan {
  text: string;
  digest: string;
}

export interface SignInRow {
  id: string;
  created: string;
  seen: string;
  address: string;
  agent: string;
  here: boolean;
}

export interface Sought {
  at: number | null;
}

export interface Source {
  text: string;
  more?: number;
}

/** A session changed. Without a `state`, the client should request the list again. */
export interface StandingNews {
  type: "standing";
  session: string;
  state?: "idle" | "working" | "waits" | "paused" | "failed" | "unfinished" | "unreadable";
  since?: string;
  what?: string;
}

/** The state of a path: a type and permission bits, for a file its size and SHA-256, for a link its `target`. */
export interface StateRow {
  type: "file" | "folder" | "link" | "other";
  mode: number;
  size?: number;
  content?: string;
  target?: string;
}

/** What a template leaves open. `was`: its value when the template was saved; "" if it is unknown. */
export interface TemplateParameter {
  name: string;
  kind: "text" | "number" | "yes or no";
  was: string;
  default: string | null;
  about: string;
}

export interface TemplateRow {
  name: string;
  goal: string;
  parameters: Array<TemplateParameter>;
}

/** The names of all templates, and what those that can be used are for and leave open. */
export interface Templates {
  list: Array<string>;
  templates: Array<TemplateRow>;
}

export interface Text {
  text: string;
}

export interface Timeline {
  started: string;
  ms: number;
  agents: Array<string>;
  spans: Array<[number, string, number, number | null, number, string, boolean]>;
  critical: number;
  more: number;
}

export interface Title {
  title: string;
}

export interface TokenRow {
  id: string;
  name: string;
  scopes: Array<string>;
  created: string;
  ends: string;
  used: string;
  words: "all" | "newest" | "none";
}

/** Every agent and plan; with `at`, as they were after that record. `modules`: how many modules run. */
export interface TreeNews {
  type: "tree";
  nodes: Array<Node>;
  at?: number | null;
  modules?: number;
  lockdown?: boolean;
  budget?: Budget;
}

export interface TriedModel {
  names: Array<string>;
  model: string;
  answer: string;
  ms: number;
  fault: string;
}

export interface Uploaded {
  n: number;
  name: string;
}

/** How much of the announced file is here: `arrived` bytes, of which `taken` no longer wait behind other messages. The client keeps few bytes on their way beyond those that are `taken`. */
export interface UploadingNews {
  type: "uploading";
  arrived: number;
  taken: number;
}

export interface Usage {
  list: Array<UsageRow>;
}

export interface UsageRow {
  user: string;
  period: string;
  resource: string;
  used: number;
  most: number | null;
}

export interface UserRow {
  name: string;
  admin: boolean;
  groups: Array<string>;
  disabled: boolean;
  seen: string;
}

export interface Users {
  list: Array<UserRow>;
}

export interface Variable {
  name: string;
  media: string;
  size: number;
  origin: string;
  labels: Array<string>;
  sha256: string;
}

export interface VariableContent {
  name: string;
  media: string;
  size: number;
  origin: string;
  labels: Array<string>;
  sha256: string;
  text: string | null;
  left_out: number;
  digest: string;
  look: "html" | "pdf" | "markdown" | "table" | "sheet" | null;
}

export interface Variables {
  list: Array<Variable>;
}

/** Who the client is, on a server with accounts. `guest`: the holder of a link, who sees one session. */
export interface YouNews {
  type: "you";
  name: string;
  admin: boolean;
  guest: boolean;
}

/** The messages that the server sends on its own. */
export type News = ({type: "record"} & JournalRecord) | SessionNews | TreeNews | RecordsNews | RenderedNews | DeltaNews | ActivityNews | OutputNews | NoticeNews | SessionsNews | StandingNews | RefusedNews | YouNews | BoardNews | UploadingNews;

/** The requests, by type: the fields of each, and the fields of its `ok`. */
export interface Requests {
  "hello": { fields: {session?: string | null; since?: number; first?: number; path?: string; lazy?: boolean}; answer: Nothing };
  "ping": { fields: {}; answer: Nothing };
  "say": { fields: {text?: string; uploaded?: boolean; once?: string; mode?: "dialogue" | "auto" | "static" | "reflect" | "nreflect" | "orchestrator" | "analyze" | "profile"; plan_first?: boolean}; answer: InSession };
  "foresee": { fields: {text: string}; answer: Foreseen };
  "inject": { fields: {path: string; text: string; mode?: "queue" | "deliver" | "interrupt"; step?: string | null; calls?: boolean; once?: string}; answer: Recorded };
  "queue.send": { fields: {path?: string; n: number}; answer: Recorded };
  "queue.edit": { fields: {path?: string; n: number; text: string}; answer: Recorded };
  "queue.remove": { fields: {path?: string; n: number}; answer: Recorded };
  "calls.stop": { fields: {path: string}; answer: Recorded };
  "pause": { fields: {path: string; step?: string | null}; answer: Recorded };
  "resume": { fields: {path: string; step?: string | null}; answer: Recorded };
  "cancel": { fields: {path: string; step?: string | null}; answer: Recorded };
  "budget": { fields: {tokens?: number; money?: number}; answer: Recorded };
  "compress": { fields: {}; answer: Recorded };
  "summary": { fields: {}; answer: Text };
  "plan.start": { fields: {path: string; digest: string}; answer: Recorded };
  "plan.edit": { fields: {path: string; text: string}; answer: Recorded };
  "plan.retry": { fields: {path: string; step: string}; answer: Recorded };
  "plan.text": { fields: {path: string}; answer: ShownPlan };
  "plan.save": { fields: {path: string; name: string; parameters?: Record<string, string>}; answer: PlanFile };
  "plan.offers": { fields: {path: string}; answer: ParameterOffers };
  "plan.run": { fields: {name: string; values?: Record<string, string>; mode?: "static" | "reflect" | "nreflect" | "orchestrator" | "analyze" | "profile" | "auto"; plan_first?: boolean}; answer: PlanBegun };
  "plans": { fields: {}; answer: Templates };
  "clear": { fields: {call: number; allow: boolean; also?: Array<number>; remember?: "call" | {function: string; arguments?: Record<string, string>} | null; why?: string | null; for?: "once" | "session" | "always" | null; digest?: string | null; also_digests?: Array<string>}; answer: Recorded };
  "question": { fields: {n: number}; answer: Question };
  "form.answer": { fields: {ask: number; accept: boolean; digest?: string | null; values?: Record<string, string | boolean | number | Array<string>>}; answer: Recorded };
  "intent": { fields: {value: number}; answer: Recorded };
  "declassify": { fields: {path: string; name?: string | null; digest: string}; answer: Recorded };
  "reading": { fields: {path: string}; answer: Reading };
  "lockdown": { fields: {value: boolean}; answer: Recorded };
  "restore": { fields: {version: string; path?: string}; answer: Recorded };
  "timeline": { fields: {}; answer: Timeline };
  "files": { fields: {at?: number | null}; answer: FileList };
  "files.changes": { fields: {at?: number | null}; answer: ChangeList };
  "files.find": { fields: {texts: Array<{at: number; words: Array<string>}>}; answer: NamedFilesList };
  "files.download": { fields: {at?: number | null}; answer: ArchiveDownload };
  "file": { fields: {path: string; at?: number | null}; answer: FileContent };
  "file.diff": { fields: {path: string; since?: number; at?: number | null}; answer: Difference };
  "file.view": { fields: {path: string; at?: number | null}; answer: Download };
  "file.download": { fields: {path: string; at?: number | null}; answer: Download };
  "pending": { fields: {start?: number; count?: number}; answer: Pending };
  "patch": { fields: {path: string}; answer: Patch };
  "counts": { fields: {paths: Array<string>}; answer: PathLinesList };
  "apply": { fields: {paths?: Array<string> | null; force?: boolean; at?: number | null; digest?: string | null; digests?: Record<string, string> | null}; answer: Settled };
  "drop": { fields: {paths?: Array<string> | null; at?: number | null; digest?: string | null; digests?: Record<string, string> | null}; answer: Settled };
  "sessions": { fields: {limit?: number | null}; answer: Nothing };
  "sessions.search": { fields: {query: string; limit?: number}; answer: FoundSessions };
  "session.rename": { fields: {session: string; title: string}; answer: Title };
  "session.pin": { fields: {session: string; pinned: boolean}; answer: Nothing };
  "session.delete": { fields: {sessions: Array<string>}; answer: DoneSessions };
  "session.restore": { fields: {sessions: Array<string>}; answer: DoneSessions };
  "session.purge": { fields: {sessions: Array<string>}; answer: DoneSessions };
  "session.deleted": { fields: {}; answer: DeletedSessions };
  "session.archive": { fields: {session: string}; answer: Download };
  "session.import": { fields: {}; answer: ImportedSession };
  "find": { fields: {text: string; agent?: string | null; whose?: "" | "user" | "agents" | "tools"; at?: number | null}; answer: Places };
  "open": { fields: {journal: string; since?: number; first?: number; path?: string; lazy?: boolean}; answer: Nothing };
  "seek": { fields: {at?: number | null}; answer: Sought };
  "render": { fields: {numbers: Array<number>}; answer: HtmlOfRecords };
  "format": { fields: {agent: string; text: string}; answer: Formatted };
  "source": { fields: {n: number; plain?: boolean}; answer: Source };
  "fork": { fields: {at: number; text: string; run?: boolean}; answer: InSession };
  "adopt": { fields: {at?: number | null}; answer: SessionName };
  "upload": { fields: {name: string; media?: string; size: number; archive?: boolean}; answer: Nothing };
  "upload.end": { fields: {}; answer: Uploaded };
  "download": { fields: {path: string; name: string; at?: number | null}; answer: Download };
  "variable.view": { fields: {path: string; name: string; at?: number | null}; answer: Download };
  "export": { fields: {at?: number | null}; answer: Download };
  "about": { fields: {}; answer: Setup };
  "address": { fields: {}; answer: Address };
  "models": { fields: {}; answer: Roles };
  "model.try": { fields: {role: string; url: string; model?: string; context?: number | null; key?: string | null; dialect?: "text" | "tools" | null; takes?: Array<"image" | "audio"> | null; price_prompt?: number | null; price_cached?: number | null; price_completion?: number | null}; answer: TriedModel };
  "model.choose": { fields: {role: string; url: string; model?: string; context?: number | null; key?: string | null; dialect?: "text" | "tools" | null; takes?: Array<"image" | "audio"> | null; price_prompt?: number | null; price_cached?: number | null; price_completion?: number | null}; answer: Nothing };
  "model.forget": { fields: {role: string}; answer: Nothing };
  "model.presets": { fields: {}; answer: Presets };
  "model.files": { fields: {}; answer: ModelFiles };
  "model.board": { fields: {name: string}; answer: Nothing };
  "model.endpoints": { fields: {}; answer: AddedEndpoints };
  "model.endpoint": { fields: {name: string}; answer: Nothing };
  "first": { fields: {}; answer: FirstMessages };
  "first.keep": { fields: {name: string; text: string}; answer: Nothing };
  "first.forget": { fields: {name: string}; answer: Nothing };
  "examples": { fields: {}; answer: Examples };
  "example.timeline": { fields: {example: string}; answer: Timeline };
  "context": { fields: {path: string; at?: number | null}; answer: Context };
  "variables": { fields: {path: string; at?: number | null}; answer: Variables };
  "variable": { fields: {path: string; name: string; at?: number | null}; answer: VariableContent };
  "modules": { fields: {}; answer: Modules };
  "module.add": { fields: {source: string; name?: string | null}; answer: Module };
  "module.remove": { fields: {name: string}; answer: Nothing };
  "module.hosts": { fields: {}; answer: Hosts };
  "module.allow": { fields: {name: string; hosts: Array<string>; for?: "session" | "always"; remove?: boolean}; answer: Hosts };
  "module.approve": { fields: {name: string; functions?: Array<string>; digest: string}; answer: Module };
  "secrets": { fields: {}; answer: OwnSecrets };
  "secret.set": { fields: {name: string; value: string; lent?: boolean}; answer: Nothing };
  "secret.remove": { fields: {name: string; lent?: boolean}; answer: Nothing };
  "memory": { fields: {query?: string; limit?: number}; answer: Memories };
  "memory.show": { fields: {memory: string}; answer: Memory };
  "memory.forget": { fields: {memories: Array<string>}; answer: Count };
  "memory.edit": { fields: {memory: string; text: string}; answer: Memory };
  "memory.clear": { fields: {}; answer: Count };
  "memory.switch": { fields: {value: boolean}; answer: MemoryState };
  "memory.distil": { fields: {sessions: Array<string>}; answer: Distilled };
  "memory.session": { fields: {value: boolean}; answer: MemoryState };
  "memory.rebuild": { fields: {}; answer: Count };
  "sharing": { fields: {}; answer: Sharing };
  "share": { fields: {name: string; group?: boolean; role?: "reader" | "steerer"}; answer: Nothing };
  "unshare": { fields: {name: string; group?: boolean}; answer: Nothing };
  "link.create": { fields: {days?: number; at?: number | null; hides?: Array<"files" | "gate">; variables?: Array<string>; public?: boolean}; answer: NewLink };
  "link.revoke": { fields: {link: string}; answer: Nothing };
  "shared": { fields: {}; answer: SharedSessions };
  "account": { fields: {}; answer: Account };
  "token.create": { fields: {name: string; scopes: Array<"sessions:read" | "sessions:write" | "clear" | "admin">; days?: number; words?: "all" | "newest" | "none"}; answer: NewToken };
  "token.revoke": { fields: {token: string}; answer: Nothing };
  "sign-out": { fields: {sign_in?: string | null}; answer: Nothing };
  "usage": { fields: {everybody?: boolean}; answer: Usage };
  "users": { fields: {}; answer: Users };
  "user.add": { fields: {name: string; password?: string | null; admin?: boolean}; answer: Nothing };
  "user.change": { fields: {name: string; password?: string | null; admin?: boolean | null; disabled?: boolean | null; groups?: Array<string> | null}; answer: Nothing };
  "audit": { fields: {most?: number}; answer: Audit };
  "audit.download": { fields: {since?: string | null; who?: string | null; what?: string | null}; answer: Download };
  "everybody": { fields: {}; answer: Everybody };
  "everybody.module.add": { fields: {source: string; name?: string | null}; answer: Module };
  "everybody.module.remove": { fields: {name: string}; answer: Nothing };
  "everybody.module.approve": { fields: {name: string; functions?: Array<string>; digest: string}; answer: Module };
  "everybody.secret.set": { fields: {name: string; value: string}; answer: Nothing };
  "everybody.secret.remove": { fields: {name: string}; answer: Nothing };
  "policy": { fields: {}; answer: Text };
  "policy.change": { fields: {text: string; was: string}; answer: Nothing };
}
