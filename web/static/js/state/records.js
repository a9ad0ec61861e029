// What a journal's records say (docs/reference/journal.md).
// Written by docs/reference/journal.py from core/records/; run: python -m docs.reference.journal

/**
 * What a call brought forth beside its result: a file's name and type, and the blob with its content.
 * @typedef {object} Artifact
 * @property {string} name
 * @property {string} media
 * @property {string} sha256
 * @property {number} size
 *
 * A parameter that was passed by value. `sha256`: the blob with it, if it is too long to stand among the parameters.
 * @typedef {object} AttachedValue
 * @property {string} media
 * @property {number} size
 * @property {string} [sha256]
 *
 * Content that stands beside the journal under its SHA-256; `size` in bytes.
 * @typedef {object} Blob
 * @property {string} sha256
 * @property {number} size
 *
 * The bounds of a session (law 9). Each is a setting; a bound that is hit is a reported outcome. Depths and counts are inclusive; times in seconds; `shown`: characters of a result in a context. All of them are written, since what is the default today may be another one tomorrow.
 * @typedef {object} Bounds
 * @property {number} [depth]
 * @property {number} [agents]
 * @property {number} [turns]
 * @property {number} [tokens]
 * @property {number} [activation]
 * @property {number} [tool]
 * @property {number} [shown]
 * @property {number} [reply_tokens]
 * @property {PlanBounds} [plans]
 * @property {number|null} [money] What its calls of models may cost, where their prices are known; None: as much as they do.
 *
 * Which calls a person allows from now on: patterns of the function and of arguments.
 * @typedef {object} ClearanceRule
 * @property {string} function
 * @property {Record<string, string>|null} [arguments]
 *
 * Why a step of a plan failed, as a model sees it, and what is done about it: `replace`, `skip` or `give_up`. `failure`: what was observed. `confidence`: in the cause and the action, from 0 to 1.
 * @typedef {object} Diagnosis
 * @property {string} failure
 * @property {string} cause
 * @property {"replace"|"skip"|"give_up"} action
 * @property {number} confidence
 *
 * One field. `least`, `most`: of a number its value, of a text its length, of choices how many; None: as they are. `choices`: the values; `titles`: what is shown for them. `default`: what it has if nobody changes it; None: nothing.
 * @typedef {object} FormField
 * @property {string} name
 * @property {"text"|"number"|"integer"|"boolean"|"choice"|"choices"} kind
 * @property {string} [title]
 * @property {string} [description]
 * @property {boolean} [required]
 * @property {unknown} [default]
 * @property {""|"email"|"uri"|"date"|"date-time"} [format]
 * @property {number|null} [least]
 * @property {number|null} [most]
 * @property {(string)[]} [choices]
 * @property {(string)[]} [titles]
 *
 * A tool of the user's front end that an agent calls. What it gives back is filled in as the form's only field.
 * @typedef {object} FrontEndCall
 * @property {string} name
 * @property {Record<string, unknown>} arguments
 *
 * How much a session may do, for whom. `allow`: patterns of functions; one of each list must match. `caps`: the most impact, by pattern.
 * @typedef {object} GrantTerms
 * @property {string} scope
 * @property {((string)[])[]} allow
 * @property {Record<string, number>} caps
 * @property {number} intent
 * @property {string} user
 *
 * Where one recalled memory comes from and what found it. `id`: session and record. `untrusted`: labels of the outside sources of what it says. `contradicts`: ids of others that say otherwise.
 * @typedef {object} MemorySource
 * @property {string} id
 * @property {"goal"|"preference"|"fact"|"lesson"|"result"} kind
 * @property {number} score
 * @property {string} at
 * @property {string} session
 * @property {string} agent
 * @property {string} why
 * @property {(string)[]} [untrusted]
 * @property {(string)[]} [contradicts]
 *
 * To which of its states a module came. `offers`: functions that it offers now, if not those of its manifest.
 * @typedef {object} ModuleState
 * @property {string} name
 * @property {(string)[]} [offers]
 * @property {string} [note]
 *
 * The static prompt that a model brings along.
 * @typedef {object} OwnPrompt
 * @property {string} system
 * @property {(PromptExample)[]} examples
 *
 * One path that differs from a live directory: what was there, and what is in the overlay now. `conflict`: somebody changed it in the directory meanwhile.
 * @typedef {object} PathChange
 * @property {string} path
 * @property {"add"|"modify"|"delete"} kind
 * @property {PathState|null} [was]
 * @property {PathState|null} [now]
 * @property {boolean} [conflict]
 *
 * What became of one path, and why, for people.
 * @typedef {object} PathOutcome
 * @property {string} path
 * @property {"applied"|"conflict"|"failed"} outcome
 * @property {string} why
 *
 * What is at one path of a directory: a type, permission bits; of a file its size and the SHA-256 of its content. `target`: of a link, or which special file it is. A file of the user's is no blob, so its digest is not named as one.
 * @typedef {object} PathState
 * @property {"file"|"folder"|"link"|"other"} type
 * @property {number} mode
 * @property {number} [size]
 * @property {string} [content]
 * @property {string} [target]
 *
 * The bounds and thresholds of the plans of a session; each is a setting, `[plans]`, which says where it comes from. `calls`: of models about one plan. `seconds`: on the wall. `confidence`: from here on an analysis stands. `planner`, `judge`, `patcher`, `reporter`: roles of the models that do this, "" for the usual ones. `risk_weights`: of schema, planning, method, scale and history. `guarded_from`, `repair_from`, `trust_below`: of a profile's risk and trust. `trust_penalties`: of a step that failed, gave nothing, gave next to nothing, was branched, was recovered, and of a condition that was met. `report`: modes that judge end with a report in words. `rates`: by a module's or a function's name, of the calls that steps make.
 * @typedef {object} PlanBounds
 * @property {number} [concurrency]
 * @property {number} [nodes]
 * @property {number} [calls]
 * @property {number} [patches]
 * @property {number} [replans]
 * @property {number} [seconds]
 * @property {number} [confidence]
 * @property {string} [planner]
 * @property {string} [judge]
 * @property {string} [patcher]
 * @property {string} [reporter]
 * @property {(number)[]} [risk_weights]
 * @property {number} [guarded_from]
 * @property {number} [repair_from]
 * @property {number} [trust_below]
 * @property {(number)[]} [trust_penalties]
 * @property {boolean} [report]
 * @property {Record<string, RateTerms>|null} [rates]
 *
 * How a plan is run. `thinks`: models may be asked about it. `chosen`: why in this mode, if it was the core's choice. `first`: it is written, and then waits for a person.
 * @typedef {object} PlanTerms
 * @property {string} mode
 * @property {Record<string, string|number>} options
 * @property {boolean} [thinks]
 * @property {string} [chosen]
 * @property {boolean} [first]
 *
 * What a million tokens of a model cost: read anew, read from a cache, and written.
 * @typedef {object} PriceTerms
 * @property {number} prompt
 * @property {number} cached
 * @property {number} completion
 *
 * One message of a static prompt's examples.
 * @typedef {object} PromptExample
 * @property {"user"|"assistant"} role
 * @property {string} content
 *
 * How many calls per second, and how many may come at once after a rest.
 * @typedef {object} RateTerms
 * @property {number} per_second
 * @property {number} [burst]
 *
 * The model of one role: its name, its window in tokens, the digest of its static prompt, media that it takes. `static`: the prompt itself, if it is not the standard one. `price`: what its tokens cost, if that is known.
 * @typedef {object} RoleTerms
 * @property {string} model
 * @property {number} context
 * @property {string} prompt
 * @property {("image"|"audio")[]} [takes]
 * @property {OwnPrompt|null} [static]
 * @property {PriceTerms|null} [price]
 *
 * What an agent is shown of the world at one turn. `now`: to the minute, UTC. `running`: children at work. `tokens_left`: of the agent's budget, once that is short. `catalogue`: the record since which the functions are those that its context names, where it names any. `files`: where there is something to say of them.
 * @typedef {object} Seen
 * @property {string} now
 * @property {string} [directory]
 * @property {(string)[]} [running]
 * @property {number|null} [tokens_left]
 * @property {number|null} [catalogue]
 * @property {SeenFiles|null} [files]
 *
 * A file of the workspace. `path`: as a `FileChange` has it, below the workspace; `size`: in bytes.
 * @typedef {object} SeenFile
 * @property {string} path
 * @property {number} size
 *
 * What an agent is told of the workspace's files. `new`: new or changed since it was told last, the newest first. `more`: how many of these are not named. `gone`: paths that are no more; `more_gone`: how many of these are not named.
 * @typedef {object} SeenFiles
 * @property {(SeenFile)[]} [new]
 * @property {number} [more]
 * @property {(string)[]} [gone]
 * @property {number} [more_gone]
 *
 * One of its files. `differs`: from the skill of that name which is there, as a unified diff; of a changed one.
 * @typedef {object} SkillFile
 * @property {string} path
 * @property {string} text
 * @property {"new"|"changed"|"same"} [change]
 * @property {string} [differs]
 *
 * A skill as it was when it was offered. `module`: what it is called in the catalogue. `gone`: files of the one that it would replace, which it has not. `read`: what from outside its agent had read, and its files were touched by.
 * @typedef {object} SkillOffer
 * @property {string} name
 * @property {string} description
 * @property {string} module
 * @property {(SkillFile)[]} files
 * @property {boolean} [replaces]
 * @property {(string)[]} [gone]
 * @property {(string)[]} [read]
 *
 * What one answer of a model took. `estimated`: its endpoint reported nothing, so the characters were counted.
 * @typedef {object} Tokens
 * @property {number} prompt
 * @property {number} cached
 * @property {number} completion
 * @property {boolean} [estimated]
 *
 * A time in which an agent waited for its model's endpoint, in milliseconds, and why, for people.
 * @typedef {object} Wait
 * @property {"limited"|"retrying"|"stalled"|"slot"} state
 * @property {string} why
 * @property {number} ms
 *
 * The user says something to the root.
 * @typedef {object} SayRecord
 * @property {"say"} kind
 * @property {string} [who]
 * @property {"dialogue"|"auto"|"static"|"reflect"|"nreflect"|"orchestrator"|"analyze"|"profile"} [mode] How it is to be worked on; but for a dialogue it is the goal of a plan, whose report is the root's reply.
 * @property {boolean} [plan_first] The plan waits for a person before it begins.
 * @property {(string)[]|null} [kept] The names of the plans that people kept, if they are others than the session knows.
 * @property {(string)[]|null} [tools] The tools of the front end that it was said with, if they are others than the session knows.
 * @property {boolean} [waits] It is read when the answer that the root is at is finished.
 *
 * How a message is worked on that was said in the mode `auto`. The body is what a model says that it is like.
 * @typedef {object} ChooseRecord
 * @property {"choose"} kind
 * @property {number} of The record of the message.
 * @property {"dialogue"|"auto"|"static"|"reflect"|"nreflect"|"orchestrator"|"analyze"|"profile"} mode How it is worked on.
 * @property {string} why Why, for people.
 * @property {string} role The role of the model that was asked.
 * @property {string} model The model's name.
 * @property {string} digest The digest over the question.
 * @property {Tokens} usage The tokens that asking took, also while the message was still being written.
 * @property {string} [failed] Why no model could tell.
 *
 * The user hands over a file: an immutable variable of the root's. The body is what the root reads of it.
 * @typedef {object} UploadRecord
 * @property {"upload"} kind
 * @property {string} [who]
 * @property {string} file Its name.
 * @property {string} var The variable that holds it.
 * @property {string} media Its type.
 * @property {Blob} blob Its content.
 * @property {"user"} by Who handed it over.
 *
 * A model's text that holds actions, or that is no answer yet.
 * @typedef {object} TurnRecord
 * @property {"turn"} kind
 * @property {""|"children"} [held] Why a text without actions is no reply yet: children of the agent are still at work.
 * @property {string} model The model's name.
 * @property {string} role The role that it plays for the agent.
 * @property {string} context The digest over everything that it was sent.
 * @property {(number)[]} took Records of the messages that had arrived when the turn began.
 * @property {Seen} seen What the agent was shown of the world when the turn began.
 * @property {Tokens} usage The tokens that it took.
 * @property {number} ms Milliseconds until its last piece.
 * @property {number} first_ms Milliseconds until its first piece.
 * @property {"stop"|"length"|"cut"} finish How it ended: by itself, at the endpoint's limit, or where the core cut it off.
 * @property {Record<string, number>|(string)[]|null} [notes] Functions whose documentation came with the context, each with the message behind which it stood (0: feedback). In format 1.0 a list; all stood in front then.
 * @property {number} [full] How full its context is, in percent, if the agent was told so now.
 * @property {number} [cut] How many characters were cut off.
 * @property {string} [reasoning] What the model thought before it replied. It never enters a context, and nothing in it acts.
 * @property {(Wait)[]} [waits] What kept the model's endpoint from replying: failed attempts, a rate limit, silence.
 *
 * An agent's or a plan's message to its caller. With a generation if a model wrote it.
 * @typedef {object} ReplyRecord
 * @property {"reply"} kind
 * @property {string} to The caller's path; "user" for the root's.
 * @property {"ok"|"failed"|"cancelled"|"bound"} status Whether it is an answer; or its model or plan failed, it was cancelled, or a bound ended its work.
 * @property {""|"turns"|"tokens"|"time"|"context"|"loop"|"money"|"quota"} [bound] The bound that ended it.
 * @property {""|"turns"|"tokens"} [last] Why this was the agent's last turn, which it was told.
 * @property {string} [model] The model's name.
 * @property {string} [role] The role that it plays for the agent.
 * @property {string} [context] The digest over everything that it was sent.
 * @property {(number)[]} [took] Records of the messages that had arrived when the turn began.
 * @property {Seen} [seen] What the agent was shown of the world when the turn began.
 * @property {Tokens} [usage] The tokens that it took.
 * @property {number} [ms] Milliseconds until its last piece.
 * @property {number} [first_ms] Milliseconds until its first piece.
 * @property {"stop"|"length"|"cut"} [finish] How it ended: by itself, at the endpoint's limit, or where the core cut it off.
 * @property {Record<string, number>|(string)[]|null} [notes] Functions whose documentation came with the context, each with the message behind which it stood (0: feedback). In format 1.0 a list; all stood in front then.
 * @property {number} [full] How full its context is, in percent, if the agent was told so now.
 * @property {number} [cut] How many characters were cut off.
 * @property {string} [reasoning] What the model thought before it replied. It never enters a context, and nothing in it acts.
 * @property {(Wait)[]} [waits] What kept the model's endpoint from replying: failed attempts, a rate limit, silence.
 * @property {""|"concluded"|"partial"|"failed"} [plan] How a plan ended that ended by itself; of the root: the one whose report it passes on.
 * @property {unknown} [answer] The plan's answer where a model gave one; else its last steps speak for themselves.
 * @property {Record<string, string>|null} [missing] Steps of the plan that came to nothing, and why.
 * @property {string} [ended_by] The bound that ended the plan.
 * @property {string} [shortfall] Why the plan's goal counts as not reached, as whoever judged it said.
 * @property {number|null} [confidence] Of whoever judged whether the goal was reached, from 0 to 1.
 * @property {(string)[]} [warnings] What there is to know of the plan's end.
 *
 * A generation that was stopped. Where a person stopped it, its agent reads what it wrote, and nothing in it acts.
 * @typedef {object} DiscardRecord
 * @property {"discard"} kind
 * @property {"pause"|"interrupt"|"cancel"|"restart"|"changed"} reason Why it was stopped.
 * @property {Tokens} usage The tokens that it took.
 * @property {(number)[]} [read] Records of the messages that its model had read.
 * @property {number} [thought] Of an answer about a plan that is asked for again: the question.
 *
 * A child begins, whose path is the record's agent. The body is its role.
 * @typedef {object} SpawnRecord
 * @property {"spawn"} kind
 * @property {string} caller Whose child it is.
 * @property {string} [model] The role of the model that speaks for it; empty: its caller's.
 * @property {(string)[]|null} [allow] Patterns of the functions that it may use, of those that its caller may.
 * @property {number|null} [intent] The most impact that its calls may have, if that is less than its caller's.
 * @property {boolean} [fork] Whether it begins with its caller's history.
 * @property {PlanTerms|null} [plan] It is a plan, and not an agent.
 * @property {Record<string, number>|null} [history] Of a plan with a profile: how often calls failed in this user's sessions, by function and names of arguments.
 * @property {string} [template] What the kept plan held that it is made from.
 *
 * What memory brought for the agent's next turn. The body has one line for each memory, as the agent reads it.
 * @typedef {object} RecallRecord
 * @property {"recall"} kind
 * @property {(MemorySource)[]} rows Where each comes from, in the same order.
 * @property {Record<string, number>|null} [meant] Functions that the agent's input is about in meaning, each with the record of the message that is.
 * @property {number} ms Milliseconds that memory took.
 *
 * An agent takes more of the budget of those above it, before it asks its model.
 * @typedef {object} DrawRecord
 * @property {"draw"} kind
 * @property {number} tokens How many.
 * @property {Seen|null} [seen] Of an agent: what it would be shown of the world in the turn that begins.
 * @property {number} [thought] Of a plan: the question that is asked now.
 *
 * A model summarized an agent's history, which is cut to that. The body is the summary.
 * @typedef {object} CompressRecord
 * @property {"compress"} kind
 * @property {string} [who]
 * @property {string} role The role of the model that did it.
 * @property {string} model The model's name.
 * @property {Tokens} usage The tokens that it took.
 * @property {""|"user"} [by] Who wanted it; empty: the core did, for lack of room.
 *
 * An action is about to be dispatched: what was intended is on disk before it is done.
 * @typedef {object} CallRecord
 * @property {"call"} kind
 * @property {number} turn
 * @property {number} action
 * @property {string} function The function, or the action of the core.
 * @property {string} [to] The child or the plan that it calls.
 * @property {number|null} [impact] Its impact, as the gate rated it.
 * @property {string} args The digest over its arguments.
 * @property {number|null} [budget] Tokens that it reserves for whom it calls.
 *
 * The gate's decision about a call. It never enters a context.
 * @typedef {object} GateRecord
 * @property {"gate"} kind
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {boolean} allow Whether it may be made.
 * @property {""|"scope"|"impact"|"provenance"|"clearance"|"lockdown"|"rate"} [by] Who denied it, or which question was asked last.
 * @property {number} impact Its impact here.
 * @property {string} [reason] Why, for people.
 * @property {boolean} [endpoint] Whether an endpoint had its say.
 * @property {number} [ask] The question that it waited for.
 *
 * Somebody is asked about a call. It never enters a context.
 * @typedef {object} ClearanceAskRecord
 * @property {"clearance"} kind
 * @property {"ask"} op
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {"person"|"endpoint"} to Who is asked: a setting.
 * @property {"provenance"|"clearance"} rule Why it must be asked: for where its arguments come from, or because the policy wants it.
 * @property {number} impact Its impact here.
 * @property {string} why Why it has that impact.
 * @property {string} reason Why it is asked, for people.
 * @property {string} user On whose behalf it would be made.
 * @property {Record<string, unknown>} params The call in full.
 * @property {Record<string, (string)[]>} provenance Labels of what each argument was made of.
 * @property {(string)[]} read Labels of what the agent has read.
 * @property {Record<string, AttachedValue>|null} [attached] Arguments that were passed by value.
 * @property {number|null} [seconds] How long a person has: a setting. A person without: as long as it takes, for nobody was there to ask.
 *
 * What they said.
 * @typedef {object} ClearanceAnswerRecord
 * @property {"clearance"} kind
 * @property {"answer"} op
 * @property {string} [who]
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {number} ask The record of the question.
 * @property {boolean} allow Whether the call may be made.
 * @property {"user"|"endpoint"|"time"|"policy"} by Who said so; "time" if nobody did in time, "policy" what it says where nobody is there to ask.
 * @property {string} reason Why: an endpoint's words.
 * @property {""|"person"} [then] A person is to be asked as well.
 * @property {"call"|ClearanceRule|null} [remember] Of a yes: it holds for exactly this call from now on, or for all that a rule covers.
 *
 * An action has its outcome. The body is its output, unless that is a blob.
 * @typedef {object} ResultRecord
 * @property {"result"} kind
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {number} [call] The record of the call; 0 if it was not made.
 * @property {number|null} [ms] Milliseconds that it took.
 * @property {string} [version] The version of the workspace behind a call that may have written.
 * @property {(number)[]} [beside] The other calls that may have written since the version before: what they had done by then is in this one, too.
 * @property {boolean} [copied] It was made in a copy of the workspace, and `version` is of that.
 * @property {boolean} [unkept] It may have written, and no version could be kept.
 * @property {number} [unchanged] The last record before a look at the overlay that saw nothing new.
 * @property {"ok"|"error"|"incomplete"|"cancelled"|"skipped"|"interrupted"|"forked"} status How it ended.
 * @property {string} [kind_of] Of REMEMBER: what kind of memory it is.
 * @property {string} [supersedes] Of REMEMBER: the memory that it replaces.
 * @property {string|null} [media] The type of its output; none or empty: plain text.
 * @property {Record<string, unknown>|null} [data] What is not text for the agent: an exit status, the type of an error.
 * @property {Blob|null} [blob] Its output, if it is long or no text.
 * @property {(Artifact)[]} [artifacts] What it brought forth beside its output.
 * @property {Artifact|null} [cached] What later calls of its module are given that have the same key, which is its name here.
 * @property {ModuleState|null} [state] The state to which its module came for this agent.
 * @property {(MemorySource)[]} [rows] Of RECALL: where each memory comes from; the body as that of a `recall`.
 *
 * WAIT or QUERY ends, and takes replies that children have sent.
 * @typedef {object} SelectRecord
 * @property {"select"} kind
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {(number)[]} took Their records, in the order in which they came.
 * @property {boolean} [timed_out] Whether its time was over.
 *
 * A module came to another state for an agent by itself, outside of a call.
 * @typedef {object} StateRecord
 * @property {"state"} kind
 * @property {string} function The function by which the agent has to do with it.
 * @property {ModuleState} state
 * @property {string} [node] Of a plan: the step whose part of the module it is.
 *
 * Somebody looked at the overlay of a live directory, and something was new. It never enters a context.
 * @typedef {object} EffectsRecord
 * @property {"effects"} kind
 * @property {"call"|"person"|"open"} after What it was looked at after: a call, a person's wish to see, or opening the session.
 * @property {number} seen The last record before the look.
 * @property {(PathChange)[]|Blob} changes What differs from the directory in another way than before.
 * @property {(string)[]|Blob} [gone] What waited, and is now as in the directory.
 * @property {(number)[]} calls The calls that could write and that ran since the last look.
 * @property {number|null} [impact] The highest impact of what is new.
 * @property {string|null} [why] Why it has that impact.
 * @property {boolean|null} [apply] Whether it is applied at once; this is written ahead.
 * @property {""|"impact"|"provenance"|"conflict"|"pending"|"lockdown"|"unasked"|"failed"} [held] What keeps it from being applied.
 * @property {string} [reason] The same in words.
 *
 * What became of changes that were to be applied or dropped.
 * @typedef {object} SettleRecord
 * @property {"settle"} kind
 * @property {number} of The record that meant to.
 * @property {(PathOutcome)[]|Blob} [left] What was not done; all else was.
 * @property {(PathOutcome)[]|Blob} [notes] What there is to know of some that were applied.
 *
 * A module wants to reach a host that nobody allowed, and a person is asked. It never enters a context.
 * @typedef {object} HostAskRecord
 * @property {"host"} kind
 * @property {"ask"} op
 * @property {string} module
 * @property {string} host
 * @property {number} port
 * @property {(number)[]} [calls] The module's calls that were under way.
 * @property {number} seconds How long a person has: a setting.
 *
 * What they said. A no holds until somebody allows the host.
 * @typedef {object} HostAnswerRecord
 * @property {"host"} kind
 * @property {"answer"} op
 * @property {string} [who]
 * @property {number} ask The record of the question.
 * @property {boolean} allow
 * @property {"user"|"time"|"core"} by Who said so; "time" if nobody did in time; "core" if nothing waits for it any more.
 * @property {"once"|"session"|"always"} [lasts] For how long a yes holds.
 *
 * A module connects to a host, for the first time by this permission.
 * @typedef {object} HostReachRecord
 * @property {"host"} kind
 * @property {"reach"} op
 * @property {string} module
 * @property {string} host
 * @property {number} port
 * @property {"manifest"|"policy"|"always"|"session"|"once"} by Who allowed it.
 *
 * A call of a module, or an agent that offers a skill, asks a person something. It never enters a context, and no agent can answer it.
 * @typedef {object} FormAskRecord
 * @property {"form"} kind
 * @property {"ask"} op
 * @property {number} call The record of the call that asks.
 * @property {string} function
 * @property {string} message The module's words, with what nobody sees written out.
 * @property {(FormField)[]} [fields] What is to be filled in; empty: yes or no.
 * @property {string} [url] An address that the person is asked to open themselves.
 * @property {SkillOffer|null} [skill] A skill that the agent wrote and offers; only the action SKILL asks about one.
 * @property {FrontEndCall|null} [tool] A tool of the front end, which is to run it; only the action FRONTEND asks for one.
 * @property {number} seconds How long a person has: a setting.
 *
 * What they said. It stands here before it goes to the module, and goes nowhere else.
 * @typedef {object} FormAnswerRecord
 * @property {"form"} kind
 * @property {"answer"} op
 * @property {string} [who]
 * @property {number} ask The record of the question.
 * @property {"accept"|"decline"|"cancel"} decision "cancel": nobody decided.
 * @property {"user"|"time"|"core"} by Who said so; "time" if nobody did in time; "core" if its call waits for no answer any more.
 * @property {Record<string, unknown>|null} [values] What was filled in, by field.
 *
 * A version of a plan begins. The body tells its steps in words.
 * @typedef {object} PlanRecord
 * @property {"plan"} kind
 * @property {number} version Its number, from 1.
 * @property {number|null} parent The version that it follows on.
 * @property {string} reason Why it was made.
 * @property {(Record<string, unknown>)[]} add Steps that it adds: id, kind, call, task, params, refs, after, join, …; what has its default is left out.
 * @property {(string)[]} drop Steps that it drops.
 * @property {(Record<string, unknown>)[]} rewire Steps that now build on others.
 *
 * Steps join the present version, without a decision: more of a plan that is being written, or a thought about it. The body tells them in words.
 * @typedef {object} ExtendRecord
 * @property {"extend"} kind
 * @property {number} version The version that they join.
 * @property {string} reason What they are.
 * @property {(Record<string, unknown>)[]} add As those of `plan`.
 *
 * A step's state changed.
 * @typedef {object} NodeRecord
 * @property {"node"} kind
 * @property {string} node The step.
 * @property {number} version The version that governs it.
 * @property {string} cause What happened.
 * @property {string} from
 * @property {string} to Its state before, and now.
 * @property {number} attempt How often it was carried out.
 * @property {string} [detail] The error, or why.
 * @property {unknown} [output] What it gave, where no other record holds it.
 * @property {(string)[]} [labels] Where that comes from.
 * @property {string|null} [validation] What passed its result.
 * @property {number} t Seconds since the plan's start.
 * @property {number} [result] The record that holds what it gave.
 * @property {Diagnosis|null} [diagnosis] Of a step that stands for the replacement of another: why that failed.
 *
 * A profile of a plan is judged before it runs.
 * @typedef {object} ProfileRiskRecord
 * @property {"profile"} kind
 * @property {"risk"} op
 * @property {number} risk From 0 to 1.
 * @property {Record<string, number>} components What it is made of: schema, planning, method, scale, history.
 * @property {string} route How the plan runs: pure, guarded or repair_eligible.
 * @property {number} confidence Its author's.
 * @property {(string)[]} [assumptions] What it takes for granted.
 * @property {(string)[]} [fragile] Where it may break.
 * @property {(string)[]} [rules] What is to be done in which case.
 *
 * A rule of a profile changed a step, without a model's word.
 * @typedef {object} ProfileRuleRecord
 * @property {"profile"} kind
 * @property {"rule"} op
 * @property {string} node The step.
 * @property {"auto"|"branch"|"recovery"} what What kind of rule it is: it gave an argument, it branched, or the step failed and is tried once more.
 * @property {string} rule The rule.
 *
 * What a profile gave is judged, before it is reported.
 * @typedef {object} ProfileTrustRecord
 * @property {"profile"} kind
 * @property {"trust"} op
 * @property {number} trust From 0 to 1.
 * @property {Record<string, number>} penalties What it lost, by the kind of trouble.
 * @property {"sound"|"degraded"|"unsound"} verification Whether what is there supports a report.
 * @property {(string)[]} [issues] The trouble, in words.
 * @property {(string)[]} [flags] What the report must say of it.
 * @property {boolean} [repair] It is repaired once.
 * @property {string} [climbs] The mode that judges the plan from here on.
 *
 * A step is about to be carried out. The body: its arguments, if they are not what its refs resolve to.
 * @typedef {object} FireRecord
 * @property {"fire"} kind
 * @property {string} node The step.
 * @property {number} attempt How often it was carried out, this time included.
 * @property {number} turn The record that handed the plan over.
 * @property {number} action The firing; its gate, call and result name the same.
 * @property {string} function What it calls.
 * @property {string} [to] The child that it calls.
 * @property {string} [race] The step for which it races in a copy of the workspace; empty: it works in the workspace itself.
 *
 * A step that races has a copy of the workspace, or there can be none.
 * @typedef {object} MakeCopyRecord
 * @property {"copy"} kind
 * @property {"make"} op
 * @property {string} node The step.
 * @property {number} action The firing that works in it.
 * @property {string} [base] The version of the workspace that it is made of.
 * @property {string} [why] Why there is none: the steps of the race take turns in the workspace itself.
 *
 * What a step wrote in its copy of the workspace was taken over into the workspace, or could not be. It is all that differs between `base` and `copy`, or nothing.
 * @typedef {object} TakeOverRecord
 * @property {"copy"} kind
 * @property {"take"} op
 * @property {string} node The step, which has won the race by this.
 * @property {number} call The record of its call.
 * @property {string} base The version that its copy was made of.
 * @property {string} copy The version of its copy behind its call.
 * @property {string} [version] The version of the workspace behind this; empty: nothing was taken over.
 * @property {(number)[]} [beside] The calls that may have written in the workspace since the version before: what they had done is in this one, too.
 * @property {(string)[]} [conflicts] What somebody else changed in the workspace meanwhile, and what kept it from being taken over.
 * @property {string} [why] What else kept it from that.
 *
 * A model answered a question about a plan, or could not. The body is the answer.
 * @typedef {object} AskRecord
 * @property {"ask"} kind
 * @property {number} [thought] Which of the plan's questions it is, in the order in which they were asked.
 * @property {string} question Its kind.
 * @property {string} role The role of the model.
 * @property {string} model The model's name.
 * @property {string} digest The digest over the question.
 * @property {Tokens} usage The tokens that it took.
 * @property {string} [node] The step that it is about.
 * @property {string} [failed] Why there is no answer.
 * @property {(Wait)[]} [waits] What kept the model's endpoint from answering.
 *
 * A planner has written more of its plan, whose complete steps begin at once. The body is what it wrote since.
 * @typedef {object} DraftRecord
 * @property {"draft"} kind
 * @property {number} thought The question that it answers.
 *
 * Something of a plan was due by itself: a retry, the end of its time. Or the session goes on after it had stopped.
 * @typedef {object} WakeRecord
 * @property {"wake"} kind
 * @property {boolean} [reopened] The session goes on: the time in between does not count.
 *
 * The agent is paused: at it and below it no call to a model or a tool starts.
 * @typedef {object} PauseRecord
 * @property {"control"} kind
 * @property {"pause"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {string} [node] Of a plan: this step alone.
 *
 * The agent's pause ends.
 * @typedef {object} ResumeRecord
 * @property {"control"} kind
 * @property {"resume"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {string} [node] Of a plan: this step alone.
 *
 * A person writes into the agent's dialogue.
 * @typedef {object} InjectRecord
 * @property {"control"} kind
 * @property {"inject"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {"queue"|"deliver"|"interrupt"} mode
 * @property {string} [node] Of a plan: it is about this step alone.
 *
 * The work of the agent and of all below it ends. The body says why, where the core ends a plan.
 * @typedef {object} CancelRecord
 * @property {"control"} kind
 * @property {"cancel"} op
 * @property {string} [who]
 * @property {"user"|"core"} by
 * @property {string} [node] Of a plan: this step alone.
 *
 * How much the session may do from now on.
 * @typedef {object} SetIntentRecord
 * @property {"control"} kind
 * @property {"intent"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {number} value From 0 (observe) to 2 (override).
 *
 * Every call is denied from now on, or that ends.
 * @typedef {object} LockdownRecord
 * @property {"control"} kind
 * @property {"lockdown"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {boolean} value
 *
 * What a person wrote into the policy since holds from now on.
 * @typedef {object} SetPolicyRecord
 * @property {"control"} kind
 * @property {"policy"} op
 * @property {"user"} by
 * @property {Record<string, unknown>} policy
 *
 * Other models play the roles from here on, as a person chose. No model is writing; dialogues go on with the others.
 * @typedef {object} SetModelsRecord
 * @property {"control"} kind
 * @property {"models"} op
 * @property {"user"} by
 * @property {Record<string, RoleTerms>} models All of them, by role.
 *
 * A person vouches for a variable of the agent's, or for all that it has read.
 * @typedef {object} DeclassifyRecord
 * @property {"control"} kind
 * @property {"declassify"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {string} [variable]
 *
 * A person starts a plan; the record's agent is the plan, and the body is what they wrote.
 * @typedef {object} StartPlanRecord
 * @property {"control"} kind
 * @property {"plan"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {PlanTerms|null} [plan] How they want it run: as its `spawn` says, the record before.
 * @property {number} budget Tokens that are reserved for it.
 *
 * The files of the workspace are put back to what they were.
 * @typedef {object} RestoreRecord
 * @property {"control"} kind
 * @property {"restore"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {string} version
 *
 * A plan that waited to be looked at may begin.
 * @typedef {object} BeginPlanRecord
 * @property {"control"} kind
 * @property {"start"} op
 * @property {string} [who]
 * @property {"user"} by
 *
 * A person writes other steps for what has not started of a plan; the body is the whole plan as they want it.
 * @typedef {object} EditPlanRecord
 * @property {"control"} kind
 * @property {"edit"} op
 * @property {string} [who]
 * @property {"user"} by
 *
 * A person lets a step of a plan that came to nothing run once more, with what needed it.
 * @typedef {object} RetryStepRecord
 * @property {"control"} kind
 * @property {"retry"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {string} node The step.
 * @property {number} budget Tokens that are reserved for the plan, if it had ended; else 0.
 *
 * A message that waits is to be read as soon as the agent can read one.
 * @typedef {object} SendNowRecord
 * @property {"control"} kind
 * @property {"send"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {number} of The record of the message.
 *
 * A person says a message in other words that nobody has read yet.
 * @typedef {object} RewordRecord
 * @property {"control"} kind
 * @property {"reword"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {number} of The record of the message.
 *
 * A person takes a message back that nobody has read yet.
 * @typedef {object} WithdrawRecord
 * @property {"control"} kind
 * @property {"withdraw"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {number} of The record of the message.
 *
 * A person ends the calls that run for the agent and below it; the agents go on with what these have given.
 * @typedef {object} StopCallsRecord
 * @property {"control"} kind
 * @property {"stop"} op
 * @property {string} [who]
 * @property {"user"} by
 *
 * The session may use more tokens or more money from now on; what waited for them is answered.
 * @typedef {object} RaiseBudgetRecord
 * @property {"control"} kind
 * @property {"budget"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {number} tokens How many more.
 * @property {number} [money] And how much.
 *
 * A person lets changes become real that wait in the overlay of a live directory.
 * @typedef {object} ApplyChangesRecord
 * @property {"control"} kind
 * @property {"apply"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {(string)[]|Blob} paths
 * @property {boolean} [force] In spite of conflicts.
 *
 * A person drops changes that wait in the overlay of a live directory.
 * @typedef {object} DropChangesRecord
 * @property {"control"} kind
 * @property {"drop"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {(string)[]|Blob} paths
 *
 * From now on modules see the live directory through an overlay, or do not any more.
 * @typedef {object} UseOverlayRecord
 * @property {"control"} kind
 * @property {"overlay"} op
 * @property {"core"} by
 * @property {boolean} value
 *
 * What hosts a person allows modules to reach from now on, beside what the policy lists: all of it.
 * @typedef {object} AllowHostsRecord
 * @property {"control"} kind
 * @property {"hosts"} op
 * @property {string} [who]
 * @property {"user"} by
 * @property {Record<string, (string)[]>} always In every session, by module.
 * @property {Record<string, (string)[]>} session In this one, by module.
 *
 * A session begins, with its root.
 * @typedef {object} OpenRecord
 * @property {"open"} kind
 * @property {string} format The format whose rules the records follow.
 * @property {string} session The session's id.
 * @property {Record<string, RoleTerms>} models The models, by role.
 * @property {GrantTerms} grant How much it may do, for whom.
 * @property {Record<string, unknown>|null} [policy] What its user's policy says.
 * @property {Bounds} bounds How far it may go.
 * @property {"whole"|"changes"} [tail] How contexts end: each with the whole state of the agent, or with what changed of it.
 * @property {string} workspace The directory of the user's in which it works; "scratch": one of its own.
 *
 * A module is there in some version, or is not there any more. The body is its manifest as JSON, or why it is gone.
 * @typedef {object} ModuleRecord
 * @property {"module"} kind
 * @property {string} name Its name, as its manifest has it.
 * @property {string} [version] Its version, as its manifest has it.
 * @property {string} digest The SHA-256 over its files.
 * @property {"shipped"|"user"|"agent"} origin Who brought it.
 * @property {""|"live"|"scratch"} [stake] Whether its calls can do harm outside the session.
 * @property {(string)[]|null} [approved] The functions whose declaration is believed; None: all of them.
 * @property {""|"removed"|"withdrawn"} [state] Why it is gone: a person removed it, or it failed too often.
 *
 * Something for people. It never enters a context.
 * @typedef {object} NoticeRecord
 * @property {"notice"} kind
 * @property {"warning"|"error"} level
 * @property {string} code What it is about, for programs.
 *
 * What stands before was copied from a session of this installation; from here on it is a session of its own.
 * @typedef {object} ForkRecord
 * @property {"fork"} kind
 * @property {string} from The session that it comes from.
 * @property {number} after The last record that both share.
 * @property {string} session The id of this one.
 * @property {"version"|"current"|"live"|"none"} workspace Its files: as they were behind that record; as they were when it was forked; in a directory of the user's; none.
 * @property {number} [left_out] How many files did not come along.
 * @property {boolean} [drops] What was under way behind that record is not carried out here: the root rests until somebody speaks to it.
 *
 * What stands before was copied from a session that this installation did not make, and has no authority here. All that gives a session its say is set anew.
 * @typedef {object} AdoptRecord
 * @property {"adopt"} kind
 * @property {string} from The session that it comes from.
 * @property {number} after The last record that both share.
 * @property {string} session The id of this one.
 * @property {string} sha256 The SHA-256 over all bytes before this record.
 * @property {"user"} by
 * @property {"current"|"none"} workspace Its files: as they were when it was adopted, or none.
 * @property {string} format
 * @property {Record<string, RoleTerms>} models
 * @property {GrantTerms} grant
 * @property {Record<string, unknown>} policy
 * @property {Bounds} bounds As in an `open` record.
 * @property {Record<string, number>|null} [left_out] How many files, blobs and versions did not come along.
 *
 * From here on the rules and the prompts are those of another version of this program.
 * @typedef {object} MigrateRecord
 * @property {"migrate"} kind
 * @property {string} from The format until here.
 * @property {string} to The format from here on.
 * @property {Record<string, RoleTerms>} models The models, with the prompts of now.
 *
 * From here on another host writes the journal, or the same one after it was started again; the one before can't any more.
 * @typedef {object} EpochRecord
 * @property {"epoch"} kind
 * @property {number} epoch Its number; the first, which begins with the session, has no such record.
 * @property {string} host Who it is.
 *
 * The session was closed in order; it can be opened again, and then goes on behind this.
 * @typedef {object} CloseRecord
 * @property {"close"} kind
 *
 * @typedef {SayRecord|ChooseRecord|UploadRecord|TurnRecord|ReplyRecord|DiscardRecord|SpawnRecord|RecallRecord|DrawRecord|CompressRecord|CallRecord|GateRecord|ClearanceAskRecord|ClearanceAnswerRecord|ResultRecord|SelectRecord|StateRecord|EffectsRecord|SettleRecord|HostAskRecord|HostAnswerRecord|HostReachRecord|FormAskRecord|FormAnswerRecord|PlanRecord|ExtendRecord|NodeRecord|ProfileRiskRecord|ProfileRuleRecord|ProfileTrustRecord|FireRecord|MakeCopyRecord|TakeOverRecord|AskRecord|DraftRecord|WakeRecord|PauseRecord|ResumeRecord|InjectRecord|CancelRecord|SetIntentRecord|LockdownRecord|SetPolicyRecord|SetModelsRecord|DeclassifyRecord|StartPlanRecord|RestoreRecord|BeginPlanRecord|EditPlanRecord|RetryStepRecord|SendNowRecord|RewordRecord|WithdrawRecord|StopCallsRecord|RaiseBudgetRecord|ApplyChangesRecord|DropChangesRecord|UseOverlayRecord|AllowHostsRecord|OpenRecord|ModuleRecord|NoticeRecord|ForkRecord|AdoptRecord|MigrateRecord|EpochRecord|CloseRecord} Said
 */

export {};
