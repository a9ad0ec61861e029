// The records of a journal (docs/reference/journal.md).
// Written by docs/reference/journal.py from core/records/; run: python -m docs.reference.journal

/**
 * What a call produced in addition to its result.
 * @typedef {object} Artifact
 * @property {string} name The name of its file.
 * @property {string} media Its media type.
 * @property {string} sha256 The blob with its content.
 * @property {number} size In bytes.
 *
 * A parameter that was passed by value.
 * @typedef {object} AttachedValue
 * @property {string} media Its media type.
 * @property {number} size In bytes.
 * @property {string} [sha256] Its blob, if it is too long to be among the parameters.
 *
 * Content that is stored next to the journal.
 * @typedef {object} Blob
 * @property {string} sha256 Under which it is stored.
 * @property {number} size In bytes.
 *
 * The bounds of a session. Each is a setting; a bound that is hit is a reported outcome. Depths and counts are inclusive. All of them are written, because today's defaults may change.
 * @typedef {object} Bounds
 * @property {number} [depth] How deep the tree is.
 * @property {number} [agents] The agents of the tree.
 * @property {number} [turns] The turns of an agent between two answers.
 * @property {number} [tokens] The tokens of all its model calls.
 * @property {number} [activation] How long an agent works on one message, in seconds.
 * @property {number} [tool] How long a call runs that states no time of its own, in seconds.
 * @property {number} [shown] The characters of a result in a context.
 * @property {number|null} [reply_tokens] The tokens of one reply; None: as many as the model writes.
 * @property {PlanBounds} [plans]
 * @property {number|null} [money] What its model calls may cost, where prices are known. None: no limit.
 *
 * Which calls a person allows from now on: patterns of the function and of arguments.
 * @typedef {object} ClearanceRule
 * @property {string} function
 * @property {Record<string, string>|null} [arguments] Patterns by the name of an argument; None: any arguments.
 *
 * Why a step of a plan failed, in a model's judgement, and what is done about it.
 * @typedef {object} Diagnosis
 * @property {string} failure The observed failure.
 * @property {string} cause Its cause.
 * @property {"replace"|"skip"|"give_up"} action
 * @property {number} confidence In the cause and the action, from 0 to 1.
 *
 * One field of a form.
 * @typedef {object} FormField
 * @property {string} name Under which its value is returned to the module.
 * @property {"text"|"number"|"integer"|"boolean"|"choice"|"choices"} kind
 * @property {string} [title] What a person reads in place of the name, if there is one.
 * @property {string} [description]
 * @property {boolean} [required]
 * @property {unknown} [default] The value if nobody changes it; None: no value.
 * @property {""|"email"|"uri"|"date"|"date-time"} [format] What a text must be.
 * @property {number|null} [least] The least value of a number, length of a text, or number of choices; None: no bound.
 * @property {number|null} [most] The greatest; None: no bound.
 * @property {(string)[]} [choices] The values that can be chosen.
 * @property {(string)[]} [titles] The texts shown for them; empty: the values themselves.
 *
 * A tool of the user's front end that an agent calls. Its result is entered as the form's only field.
 * @typedef {object} FrontEndCall
 * @property {string} name
 * @property {Record<string, unknown>} arguments
 *
 * How much a session may do, and for which user.
 * @typedef {object} GrantTerms
 * @property {string} scope Patterns of the functions that it has.
 * @property {((string)[])[]} allow Lists of patterns; a function must match at least one pattern of each list.
 * @property {Record<string, number>} caps The highest impact, by pattern.
 * @property {number} intent The highest impact of all.
 * @property {string} user
 *
 * Where one recalled memory comes from and how it was found.
 * @typedef {object} MemorySource
 * @property {string} id Its session and record.
 * @property {"goal"|"preference"|"decision"|"fact"|"lesson"|"result"} kind
 * @property {number} score How well it fits what was asked; comparable within one answer.
 * @property {string} at When it was said.
 * @property {string} session
 * @property {string} agent The agent that said it.
 * @property {string} why How it was found, for people.
 * @property {(string)[]} [untrusted] The labels of the outside sources of its text.
 * @property {(string)[]} [contradicts] The ids of memories that contradict it.
 *
 * The state that a module entered.
 * @typedef {object} ModuleState
 * @property {string} name
 * @property {(string)[]} [offers] The functions that it offers now, if they differ from its manifest's.
 * @property {string} [note] A sentence of the module about it.
 *
 * The static prompt that comes with a model.
 * @typedef {object} OwnPrompt
 * @property {string} system
 * @property {(PromptExample)[]} examples
 *
 * One path that differs from a live directory.
 * @typedef {object} PathChange
 * @property {string} path
 * @property {"add"|"modify"|"delete"} kind
 * @property {PathState|null} [was] What was there.
 * @property {PathState|null} [now] What is in the overlay now.
 * @property {boolean} [conflict] Whether somebody changed it in the directory in the meantime.
 *
 * What came of the change of one path.
 * @typedef {object} PathOutcome
 * @property {string} path
 * @property {"applied"|"conflict"|"failed"} outcome
 * @property {string} why The reason, for people.
 *
 * What is at one path of a directory.
 * @typedef {object} PathState
 * @property {"file"|"folder"|"link"|"other"} type
 * @property {number} mode Its permission bits.
 * @property {number} [size] Of a file, in bytes.
 * @property {string} [content] The SHA-256 of a file's content. A user's file is not a blob, so the field is not called `sha256`.
 * @property {string} [target] Of a link, or which special file it is.
 *
 * The bounds and thresholds of the plans of a session. Each is a setting in `[plans]`, which explains its origin.
 * @typedef {object} PlanBounds
 * @property {number} [concurrency] Steps that run at the same time.
 * @property {number} [nodes] Steps over all versions of a plan.
 * @property {number} [calls] The calls to models about one plan.
 * @property {number} [patches] How many failed steps may be replaced.
 * @property {number} [replans] How often a plan may be rewritten.
 * @property {number} [seconds] How long a plan runs, without pauses.
 * @property {number} [confidence] The least confidence at which an analysis is accepted.
 * @property {string} [planner] The role of the model that writes plans; as of the next three, empty: the usual one.
 * @property {string} [judge] The role of the model that judges what came of a plan.
 * @property {string} [patcher] The role of the model that changes plans.
 * @property {string} [reporter] The role of the model that reports on plans.
 * @property {(number)[]} [risk_weights] Of schema, planning, method, scale and history, in a profile's risk.
 * @property {number} [guarded_from] From this risk on, a profile's branches apply.
 * @property {number} [repair_from] From this risk on, a profile is eligible for repair.
 * @property {number} [trust_below] Below this trust, a profile is repaired.
 * @property {(number)[]} [trust_penalties] For a step that failed, returned nothing, returned next to nothing, was branched, was recovered, and for a condition that was met.
 * @property {boolean} [report] Whether modes that judge end with a report in words.
 * @property {Record<string, RateTerms>|null} [rates] Of the calls that steps make, by the name of a module or function.
 * @property {number} [recoveries] How often one step may be tried again by the recovery rules of a profile.
 * @property {number} [agent_seconds] The time of an agent step that states none.
 * @property {number} [rounds] The most analyses of a plan in the mode `analyze`, if its author says no number.
 *
 * How a plan is run.
 * @typedef {object} PlanTerms
 * @property {string} mode
 * @property {Record<string, string|number>} options The options of the mode.
 * @property {boolean} [thinks] Whether models may be asked about it.
 * @property {string} [chosen] Why this mode was chosen, if the core chose it.
 * @property {boolean} [first] Whether the plan is written and then waits for a person.
 *
 * What a million tokens of a model cost.
 * @typedef {object} PriceTerms
 * @property {number} prompt If they are newly read.
 * @property {number} cached If they are read from a cache.
 * @property {number} completion If they are written.
 *
 * One message of the examples in a static prompt.
 * @typedef {object} PromptExample
 * @property {"user"|"assistant"} role
 * @property {string} content
 *
 * How many calls are allowed in a time.
 * @typedef {object} RateTerms
 * @property {number} per_second
 * @property {number} [burst] How many at once, after a period without calls.
 *
 * The model of one role.
 * @typedef {object} RoleTerms
 * @property {string} model Its name.
 * @property {number} context Its window, in tokens.
 * @property {string} prompt The digest of its static prompt.
 * @property {("image"|"audio")[]} [takes] The media that it reads.
 * @property {OwnPrompt|null} [static] The prompt itself, if it is not the standard one.
 * @property {PriceTerms|null} [price] The price of its tokens, if it is known.
 *
 * The facts about the world that an agent is shown in one turn.
 * @typedef {object} Seen
 * @property {string} now The time to the minute, in UTC.
 * @property {string} [directory] Where its commands run, if that is not the workspace.
 * @property {(string)[]} [running] The children at work.
 * @property {number|null} [tokens_left] Of the agent's budget, once few are left.
 * @property {number|null} [catalogue] The record that last changed the functions that its context names, if it names any.
 * @property {SeenFiles|null} [files] None: there is nothing to report about files.
 *
 * A file of the workspace.
 * @typedef {object} SeenFile
 * @property {string} path Relative to the workspace, as in a `FileChange`.
 * @property {number} size In bytes.
 *
 * What an agent is told about the workspace's files.
 * @typedef {object} SeenFiles
 * @property {(SeenFile)[]} [new] Files that are new or changed since it was last told, newest first.
 * @property {number} [more] How many of these are not named.
 * @property {(string)[]} [gone] Paths that no longer exist.
 * @property {number} [more_gone] How many of these are not named.
 *
 * A file of the skill.
 * @typedef {object} SkillFile
 * @property {string} path
 * @property {string} text
 * @property {"new"|"changed"|"same"} [change]
 * @property {string} [differs] For a changed file, a unified diff from the existing skill of that name.
 *
 * A skill as it was when it was offered.
 * @typedef {object} SkillOffer
 * @property {string} name
 * @property {string} description
 * @property {string} module Its name in the catalogue.
 * @property {(SkillFile)[]} files
 * @property {boolean} [replaces] Whether there is a skill of that name.
 * @property {(string)[]} [gone] Files of the skill that it would replace and that it does not have.
 * @property {(string)[]} [read] The outside sources that its agent had read and that its files were made from.
 *
 * Tokens that one answer of a model took.
 * @typedef {object} Tokens
 * @property {number} prompt The tokens that were read, with those from a cache.
 * @property {number} cached Those of them that came from a cache.
 * @property {number} completion The tokens that were written.
 * @property {boolean} [estimated] Whether the endpoint reported none, so that characters were counted.
 *
 * How the work on a goal ended.
 * @typedef {object} Verdict
 * @property {"yes"|"partly"|"no"|"unknown"} reached
 * @property {string} [because] The reason, in a sentence.
 * @property {Record<string, string>|null} [missing] What is lacking, by step, and why.
 * @property {Record<string, (string)[]>|null} [replaced] Steps that others were carried out in place of, and which.
 * @property {(string)[]} [unchecked] Steps that changed something and whose results nothing but the absence of an error speaks for.
 * @property {"judge"|"person"|"steps"|"check"|"bound"|"nobody"} [by]
 *
 * A period in which an agent waited for its model's endpoint.
 * @typedef {object} Wait
 * @property {"limited"|"retrying"|"stalled"|"slot"} state
 * @property {string} why The reason, for people.
 * @property {number} ms How long, in milliseconds.
 *
 * The user says something to the root.
 * @typedef {object} SayRecord
 * @property {"say"} kind
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {string} [once] What the program that sent it calls it. If the line loses the answer, it is sent again under this name, and is not said a second time. Empty if it has no name.
 * @property {"dialogue"|"auto"|"static"|"reflect"|"nreflect"|"orchestrator"|"analyze"|"profile"} [mode] How to work on the message. In every mode but `dialogue`, it is the goal of a plan, whose report is the root's reply.
 * @property {boolean} [plan_first] Whether the plan waits for a person before it begins.
 * @property {(string)[]|null} [kept] The plans that people kept, if they differ from those that the session knows: the name of each, and behind it the parameters for which it needs values.
 * @property {(string)[]|null} [tools] The tools of the front end that sent the message, if they differ from those that the session knows.
 * @property {boolean} [waits] Whether the message is read only after the root finishes its current answer.
 * @property {number} [client] How many characters at its beginning are not the user's: they tell of an earlier chat that only the client knows, and that this program did not record. All of them, if the client passes on what others write.
 * @property {string} [traceparent] The trace of the program that sent it, which the work on it continues, in the form of W3C's `traceparent`.
 *
 * How to work on a message that was sent in the mode `auto`. The body is the model's assessment of it.
 * @typedef {object} ChooseRecord
 * @property {"choose"} kind
 * @property {number} of The record of the message.
 * @property {"dialogue"|"auto"|"static"|"reflect"|"nreflect"|"orchestrator"|"analyze"|"profile"} mode How to work on the message.
 * @property {string} why The reason, for people.
 * @property {string} role The role of the model that was asked.
 * @property {string} model The model's name.
 * @property {string} digest The digest of the question.
 * @property {Tokens} usage The tokens that asking took, including those spent while the message was still being written.
 * @property {string} [failed] Why no model could assess the message.
 * @property {Record<string, number>|null} [failures] In what share of the user's earlier sessions the way of a row of the table did not reach the goal, by row.
 *
 * The user uploads a file: an immutable variable of the root. The body is what the root reads of it.
 * @typedef {object} UploadRecord
 * @property {"upload"} kind
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {string} file The file's name.
 * @property {string} var The variable that holds it.
 * @property {string} media The file's media type.
 * @property {Blob} blob The file's content.
 * @property {"user"} by Who uploaded it.
 * @property {string} [path] The file of the workspace that it becomes. Empty if it becomes none.
 *
 * A model's text that contains actions, or that is not an answer yet.
 * @typedef {object} TurnRecord
 * @property {"turn"} kind
 * @property {""|"children"|"unread"|"thoughts"} [held] Why a text that could be a reply is none yet.
 * @property {string} model The model's name.
 * @property {string} role The role that the model plays for the agent.
 * @property {string} context The digest of everything that the model was sent.
 * @property {(number)[]} took Records of the messages that had arrived when the turn began.
 * @property {Seen} seen The facts about the world that the agent was shown when the turn began.
 * @property {Tokens} usage The tokens that it took.
 * @property {number} ms Milliseconds until the last piece.
 * @property {number} first_ms Milliseconds until the first piece.
 * @property {"stop"|"length"|"cut"} finish How it ended: on its own, at the endpoint's limit, or because the core cut it off.
 * @property {Record<string, number>|(string)[]|null} [notes] Functions whose documentation came with the context, each with the message that it followed (0: feedback). In format 1.0 this is a list, and the documentation was always at the front.
 * @property {number} [full] How full the agent's context is, in percent, if the agent was told so in this turn.
 * @property {number} [cut] How many characters were cut off.
 * @property {string} [reasoning] The model's reasoning before it replied. It never enters a context, and no action in it is carried out.
 * @property {(Wait)[]} [waits] What delayed the reply of the model's endpoint: failed attempts, a rate limit, silence.
 *
 * An agent's or a plan's message to its caller. It has a generation if a model wrote it.
 * @typedef {object} ReplyRecord
 * @property {"reply"} kind
 * @property {string} to The caller's path; "user" for the root's.
 * @property {"ok"|"failed"|"cancelled"|"bound"} status Whether it is an answer; or else the model or plan failed, it was cancelled, or a bound ended its work.
 * @property {""|"turns"|"tokens"|"time"|"context"|"loop"|"money"|"quota"} [bound] The bound that ended it.
 * @property {""|"unreachable"|"refused"|"too_long"|"overloaded"|"garbled"} [fault] The kind of failure, if its model failed.
 * @property {""|"turns"|"tokens"} [last] Why this was the agent's last turn. The agent was told so.
 * @property {string} [model] The model's name.
 * @property {string} [role] The role that the model plays for the agent.
 * @property {string} [context] The digest of everything that the model was sent.
 * @property {(number)[]} [took] Records of the messages that had arrived when the turn began.
 * @property {Seen} [seen] The facts about the world that the agent was shown when the turn began.
 * @property {Tokens} [usage] The tokens that it took.
 * @property {number} [ms] Milliseconds until the last piece.
 * @property {number} [first_ms] Milliseconds until the first piece.
 * @property {"stop"|"length"|"cut"} [finish] How it ended: on its own, at the endpoint's limit, or because the core cut it off.
 * @property {Record<string, number>|(string)[]|null} [notes] Functions whose documentation came with the context, each with the message that it followed (0: feedback). In format 1.0 this is a list, and the documentation was always at the front.
 * @property {number} [full] How full the agent's context is, in percent, if the agent was told so in this turn.
 * @property {number} [cut] How many characters were cut off.
 * @property {string} [reasoning] The model's reasoning before it replied. It never enters a context, and no action in it is carried out.
 * @property {(Wait)[]} [waits] What delayed the reply of the model's endpoint: failed attempts, a rate limit, silence.
 * @property {boolean} [asks] Whether a child asks its caller something, instead of an answer.
 * @property {number} [of] The turn in which the text was written, if it was a turn first: actions were done beside it, or its agent was asked whether it is its answer.
 * @property {""|"concluded"|"partial"|"failed"|"stopped"} [plan] How a plan ended that was not cancelled; for the root, the plan whose report it passes on.
 * @property {Verdict|null} [verdict] Whether the plan's goal was reached, and why; for the root, as with `plan`.
 * @property {unknown} [answer] The plan's answer, if a model gave one. Otherwise the results of its last steps are the answer.
 * @property {Record<string, string>|null} [missing] Steps of the plan that produced nothing, and why.
 * @property {string} [ended_by] The bound that ended the plan.
 * @property {string} [shortfall] Why the judge considers the plan's goal not reached.
 * @property {number|null} [confidence] The judge's confidence in whether the goal was reached, from 0 to 1.
 * @property {(string)[]} [warnings] Warnings about how the plan ended.
 *
 * A generation that was stopped. If that ended its agent's work, or a person stopped it, its agent reads the text. No action in it is done.
 * @typedef {object} DiscardRecord
 * @property {"discard"} kind
 * @property {"pause"|"interrupt"|"cancel"|"restart"|"changed"|"summary"} reason Why it was stopped.
 * @property {Tokens} usage The tokens that it took.
 * @property {(number)[]} [read] Records of the messages that the model had read.
 * @property {number} [thought] For an answer about a plan that is requested again: the question.
 *
 * A child begins; the record's agent is its path. The body is its role.
 * @typedef {object} SpawnRecord
 * @property {"spawn"} kind
 * @property {string} caller The child's caller.
 * @property {string} [model] The role of the model that the child uses. Empty: its caller's.
 * @property {(string)[]|null} [allow] Patterns of the functions that it may use, among those that its caller may use.
 * @property {number|null} [intent] The most impact that its calls may have, if that is less than its caller's intent.
 * @property {boolean} [fork] Whether it begins with its caller's history.
 * @property {PlanTerms|null} [plan] Set if the child is a plan and not an agent.
 * @property {Record<string, number>|null} [history] For a plan with a profile: how often calls failed in this user's sessions, by function and argument names.
 * @property {string} [template] The content of the kept plan from which it is made.
 * @property {SeenFiles|null} [files] For a plan: the files of the workspace, for its planner.
 *
 * Statements from memory for the agent's next turn. The body has one line for each, as the agent reads it.
 * @typedef {object} RecallRecord
 * @property {"recall"} kind
 * @property {(MemorySource)[]} rows The source of each memory, in the same order.
 * @property {Record<string, number>|null} [meant] Functions that are related in meaning to the agent's input, each with the record of the message it matches. Up to format 1.2, these were documented.
 * @property {number} ms How many milliseconds the memory took to answer.
 * @property {boolean} [standing] Whether every agent of the session is told them in its first message. They are chosen once, before the first turn; the record is then the root's.
 *
 * An agent takes more of the budget of the agents above it, before it asks its model.
 * @typedef {object} DrawRecord
 * @property {"draw"} kind
 * @property {number} tokens How many tokens.
 * @property {Seen|null} [seen] For an agent: the facts about the world that it would be shown in the turn that begins.
 * @property {number} [thought] For a plan: the question that is asked now.
 *
 * An agent's history is cut. The body is a model's summary of it; it is empty if no summary was fit.
 * @typedef {object} CompressRecord
 * @property {"compress"} kind
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {string} role The role of the model that summarized it.
 * @property {string} model The model's name.
 * @property {Tokens} usage The tokens that it took.
 * @property {""|"user"} [by] Who asked for it. Empty: the core did, for lack of room.
 *
 * A model was asked what of the root's messages from people is worth remembering. The body is its answer.
 * @typedef {object} DistillRecord
 * @property {"distill"} kind
 * @property {number} since How many of these messages had been distilled before.
 * @property {number} until How many have been with it.
 * @property {string} role The role of the model.
 * @property {string} model The model's name.
 * @property {Tokens} usage The tokens that it took.
 *
 * An action is about to be dispatched. The record is on disk before the action begins.
 * @typedef {object} CallRecord
 * @property {"call"} kind
 * @property {number} turn
 * @property {number} action
 * @property {string} function The function, or the action of the core.
 * @property {string} [to] The child or the plan that it calls.
 * @property {number|null} [impact] Its impact, as the gate rated it.
 * @property {string} args The digest of its arguments.
 * @property {number|null} [budget] Tokens that it reserves for the agent or plan that it calls.
 *
 * The gate's decision about a call. It never enters a context.
 * @typedef {object} GateRecord
 * @property {"gate"} kind
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {boolean} allow Whether the call may be made.
 * @property {""|"scope"|"impact"|"provenance"|"clearance"|"lockdown"|"rate"} [by] The authority that denied the call, or the question that was asked last.
 * @property {number} impact The impact of the call here.
 * @property {string} [reason] The reason, for people.
 * @property {boolean} [endpoint] Whether a clearance endpoint was asked.
 * @property {number} [ask] The record of the question that the call waited for.
 *
 * A person or an endpoint is asked about a call. The question never enters a context.
 * @typedef {object} ClearanceAskRecord
 * @property {"clearance"} kind
 * @property {"ask"} op
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {"person"|"endpoint"} to Who is asked: a setting.
 * @property {"provenance"|"clearance"} rule Why clearance is needed: because of where the arguments come from, or because the policy requires it.
 * @property {number} impact The impact of the call here.
 * @property {string} why Why the call has that impact.
 * @property {string} reason Why the question is asked, for people.
 * @property {string} user The user on whose behalf the call would be made.
 * @property {Record<string, unknown>} params The call in full.
 * @property {Record<string, (string)[]>} provenance The labels of each argument's sources.
 * @property {(string)[]} read The labels of what the agent has read.
 * @property {Record<string, AttachedValue>|null} [attached] The arguments that were passed by value.
 * @property {number|null} [seconds] How long a person has: a setting. If a person is asked and this is missing, there is no limit, because no person was available.
 *
 * The answer to a clearance question.
 * @typedef {object} ClearanceAnswerRecord
 * @property {"clearance"} kind
 * @property {"answer"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {number} ask The record of the question.
 * @property {boolean} allow Whether the call may be made.
 * @property {"user"|"endpoint"|"time"|"policy"} by Who answered: "time" if nobody answered in time, "policy" if the policy decides when no person is available.
 * @property {string} reason The reason that an endpoint gave.
 * @property {""|"person"} [then] Whether a person must be asked as well.
 * @property {"call"|ClearanceRule|null} [remember] What a yes also covers from now on: exactly this call, or every call that matches a rule.
 *
 * An action has ended. The body is its output, unless the output is a blob.
 * @typedef {object} ResultRecord
 * @property {"result"} kind
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {number} [call] The record of the call; 0 if the call was not made.
 * @property {number|null} [ms] How many milliseconds it took.
 * @property {string} [version] The version of the workspace after a call that may have written.
 * @property {(number)[]} [beside] Other calls that may have written since the previous version. What they had written by then is in this version, too.
 * @property {boolean} [copied] Whether the call ran in a copy of the workspace; `version` is then a version of that copy.
 * @property {boolean} [unkept] Whether the call may have written but no version could be kept.
 * @property {number} [unchanged] The last record before a check of the overlay that found nothing new.
 * @property {boolean} [fresh] Whether another instance of its module had served its agent before, and this one was started since. What that one held is gone.
 * @property {(string)[]} [aside] For an agent that may only read: paths that the call changed in the agent's throw-away layer. More than are named to the agent are not kept.
 * @property {(string)[]} [changed] Where several agents share the files: the first 200 paths by which `version` differs from the version before, without what tools keep beside the work.
 * @property {"ok"|"error"|"incomplete"|"cancelled"|"skipped"|"interrupted"|"forked"} status How it ended.
 * @property {string} [kind_of] For REMEMBER: the kind of memory.
 * @property {string} [supersedes] For REMEMBER: the memory that it replaces.
 * @property {""|"person"|"project"|"session"} [scope] For REMEMBER: where it holds, as its agent said. Empty: it did not say.
 * @property {string|null} [media] The media type of the output. Missing or empty: plain text.
 * @property {Record<string, unknown>|null} [data] Data that is not text for the agent: an exit status, the type of an error.
 * @property {Blob|null} [blob] The output, if it is long or not text.
 * @property {(Artifact)[]} [artifacts] Files that the call produced in addition to its output.
 * @property {Artifact|null} [cached] What later calls of the module with the same key receive. The artifact's name is that key.
 * @property {ModuleState|null} [state] The state that the module entered for this agent.
 * @property {(MemorySource)[]} [rows] For RECALL: where each memory comes from. The body is like that of a `recall`.
 *
 * WAIT or QUERY ends and takes replies that children have sent.
 * @typedef {object} SelectRecord
 * @property {"select"} kind
 * @property {number} turn
 * @property {number} action
 * @property {string} function
 * @property {(number)[]} took The records of the replies, in the order in which they arrived.
 * @property {boolean} [timed_out] Whether it timed out.
 *
 * A module changed its state for an agent on its own, outside of a call.
 * @typedef {object} StateRecord
 * @property {"state"} kind
 * @property {string} function The function by which the agent uses the module.
 * @property {ModuleState} state
 * @property {string} [node] For a plan: the step whose part of the module changed.
 *
 * The overlay of a live directory was checked, and something was new. The record never enters a context.
 * @typedef {object} EffectsRecord
 * @property {"effects"} kind
 * @property {"call"|"person"|"open"} after What prompted the check: a call, a person's request, or opening the session.
 * @property {number} seen The last record before the check.
 * @property {(PathChange)[]|Blob} changes Paths whose difference from the directory is new or has changed.
 * @property {(string)[]|Blob} [gone] Paths that waited and no longer differ from the directory.
 * @property {(number)[]} calls The calls that could write and that ran since the previous check.
 * @property {number|null} [impact] The highest impact of the new changes.
 * @property {string|null} [why] Why they have that impact.
 * @property {boolean|null} [apply] Whether they are applied at once. This record is written before that happens.
 * @property {""|"impact"|"provenance"|"conflict"|"pending"|"lockdown"|"unasked"|"failed"} [held] Why they are not applied.
 * @property {string} [reason] The same reason in words.
 *
 * The results of applying or dropping changes.
 * @typedef {object} SettleRecord
 * @property {"settle"} kind
 * @property {number} of The record that ordered it.
 * @property {(PathOutcome)[]|Blob} [left] Paths for which it was not done. It was done for all others.
 * @property {(PathOutcome)[]|Blob} [notes] Notes about some of the paths that were applied.
 *
 * A module wants to reach a host that is not allowed yet, or could carry out what isn't public, and a person is asked. It never enters a context.
 * @typedef {object} HostAskRecord
 * @property {"host"} kind
 * @property {"ask"} op
 * @property {string} module
 * @property {string} host
 * @property {number} port
 * @property {(number)[]} [calls] The calls that it may be for: those of the agent whose instance connects, or that name the host, or all that were running.
 * @property {string} [owner] The agent that the connecting instance serves alone; empty: it serves all.
 * @property {(string)[]} [agents] The agents of these calls.
 * @property {(string)[]} [addresses] The addresses at the host that the calls name.
 * @property {(string)[]} [origins] Where the calls have the host from: "user" alone if the user wrote it; empty: no call names it.
 * @property {(string)[]} [strange] If it can carry something out: the labels of strangers' texts that its program may follow.
 * @property {(string)[]} [private] What isn't public and its program can send: labels, and "files" for the user's directory. Empty: nothing.
 * @property {(string)[]} [programs] What these calls run, if it can carry something out.
 * @property {boolean} [allowed] Whether the host itself was allowed already.
 * @property {number} seconds How long a person has: a setting.
 *
 * The answer to a question about a host. A no holds until somebody allows the host.
 * @typedef {object} HostAnswerRecord
 * @property {"host"} kind
 * @property {"answer"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {number} ask The record of the question.
 * @property {boolean} allow
 * @property {"user"|"time"|"core"|"policy"} by Who answered: "time" if nobody answered in time; "core" if nothing waits for the answer any more; "policy" if no person was available.
 * @property {"once"|"session"|"always"} [lasts] How long a yes lasts.
 *
 * A module connects to a host: for the first time under this permission, or while something runs that had reached nothing yet. The connection is made after the record is on disk.
 * @typedef {object} HostReachRecord
 * @property {"host"} kind
 * @property {"reach"} op
 * @property {string} module
 * @property {string} host
 * @property {number} port
 * @property {"manifest"|"policy"|"always"|"session"|"once"} by Who allowed it.
 * @property {string} [owner] The agent that the connecting instance serves alone; empty: it serves all.
 *
 * A module's call, or an agent that offers a skill, asks a person. Never enters a context; no agent can answer.
 * @typedef {object} FormAskRecord
 * @property {"form"} kind
 * @property {"ask"} op
 * @property {number} call The record of the call that asks.
 * @property {string} function
 * @property {string} message The module's text, with invisible characters escaped.
 * @property {(FormField)[]} [fields] The fields to fill in. Empty: the question is answered by yes or no.
 * @property {string} [url] An address that the person is asked to open.
 * @property {SkillOffer|null} [skill] A skill that the agent wrote and offers. Only the action SKILL asks about one.
 * @property {FrontEndCall|null} [tool] A tool that the front end is to run. Only the action FRONTEND asks for one.
 * @property {number} seconds How long a person has: a setting. 0: as long as they want, because a step of a plan is theirs.
 *
 * The answer to a form. It is recorded before it goes to the module, and it goes nowhere else.
 * @typedef {object} FormAnswerRecord
 * @property {"form"} kind
 * @property {"answer"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {number} ask The record of the question.
 * @property {"accept"|"decline"|"cancel"} decision "cancel" means that nobody decided.
 * @property {"user"|"time"|"core"|"policy"} by Who answered: "time" if nobody answered in time; "core" if the call no longer waits for an answer; "policy" if no person was available.
 * @property {Record<string, unknown>|null} [values] The entered values, by field.
 *
 * A version of a plan begins. The body describes its steps in words.
 * @typedef {object} PlanRecord
 * @property {"plan"} kind
 * @property {number} version Its number, from 1.
 * @property {number|null} parent The version that it replaces.
 * @property {string} reason Why it was made.
 * @property {(Record<string, unknown>)[]} add Steps that it adds: id, kind, call, task, params, refs, after, join, …; fields with their default are omitted.
 * @property {(string)[]} drop Steps that it drops.
 * @property {(Record<string, unknown>)[]} rewire Steps that now build on other steps.
 *
 * Steps join the present version without a decision: more of a plan that is being written, or a thought about it. The body describes them in words.
 * @typedef {object} ExtendRecord
 * @property {"extend"} kind
 * @property {number} version The version that they join.
 * @property {string} reason Why they are added.
 * @property {(Record<string, unknown>)[]} add Steps, as in `plan`.
 *
 * A step's state changed.
 * @typedef {object} NodeRecord
 * @property {"node"} kind
 * @property {string} node The step.
 * @property {number} version The plan version that applies to it.
 * @property {string} cause What happened.
 * @property {string} from
 * @property {string} to Its new state; `from` is the previous one.
 * @property {number} attempt How often it has been carried out.
 * @property {string} [detail] The error, or the reason.
 * @property {unknown} [output] Its result, if no other record holds it.
 * @property {(string)[]} [labels] The sources of the result.
 * @property {string|null} [validation] What accepted its result.
 * @property {number} t Seconds since the plan's start.
 * @property {number} [result] The record that holds its result.
 * @property {Diagnosis|null} [diagnosis] For a step that replaces another: why that one failed.
 *
 * A profile of a plan is judged before it runs.
 * @typedef {object} ProfileRiskRecord
 * @property {"profile"} kind
 * @property {"risk"} op
 * @property {number} risk From 0 to 1.
 * @property {Record<string, number>} components The parts of the risk: schema, planning, method, scale, history.
 * @property {string} route How the plan runs: pure, guarded or repair_eligible.
 * @property {number} confidence Its author's confidence.
 * @property {(string)[]} [assumptions] Its assumptions.
 * @property {(string)[]} [fragile] Where it may break.
 * @property {(string)[]} [rules] What to do in which case.
 *
 * A rule of a profile changed a step, without asking a model.
 * @typedef {object} ProfileRuleRecord
 * @property {"profile"} kind
 * @property {"rule"} op
 * @property {string} node The step.
 * @property {"auto"|"branch"|"recovery"} what The kind of rule: it set an argument, it branched, or it retries a step that failed.
 * @property {string} rule The rule.
 *
 * The result of a profile is judged before it is reported.
 * @typedef {object} ProfileTrustRecord
 * @property {"profile"} kind
 * @property {"trust"} op
 * @property {number} trust From 0 to 1.
 * @property {Record<string, number>} penalties What was deducted, by the kind of problem.
 * @property {"sound"|"degraded"|"unsound"} verification Whether the results support a report.
 * @property {(string)[]} [issues] The problems, in words.
 * @property {(string)[]} [flags] What the report must mention.
 * @property {boolean} [repair] Whether the plan is repaired, once.
 * @property {string} [climbs] The mode that judges the plan from now on.
 *
 * A step is about to be carried out. The body is its arguments, if they are not what its references resolve to.
 * @typedef {object} FireRecord
 * @property {"fire"} kind
 * @property {string} node The step.
 * @property {number} attempt How often it has been carried out, including this time.
 * @property {number} turn The record that handed over the plan.
 * @property {number} action The number of the firing. Its gate, call and result records have the same number.
 * @property {string} function The function that it calls.
 * @property {string} [to] The child that it calls.
 * @property {string} [race] The step for which it races in a copy of the workspace. Empty: it works in the workspace itself.
 *
 * A step that races receives a copy of the workspace, or no copy can be made.
 * @typedef {object} MakeCopyRecord
 * @property {"copy"} kind
 * @property {"make"} op
 * @property {string} node The step.
 * @property {number} action The firing that works in the copy.
 * @property {string} [base] The version of the workspace that was copied.
 * @property {string} [why] Why there is no copy. The steps of the race then take turns in the workspace itself.
 *
 * What a step wrote in its copy of the workspace is moved to the workspace, or could not be moved. It is either everything that differs between `base` and `copy`, or nothing.
 * @typedef {object} TakeOverRecord
 * @property {"copy"} kind
 * @property {"take"} op
 * @property {string} node The step, which wins the race with this.
 * @property {number} call The record of the step's call.
 * @property {string} base The version from which the copy was made.
 * @property {string} copy The version of the copy after the call.
 * @property {string} [version] The version of the workspace after this. Empty: nothing was taken over.
 * @property {(number)[]} [beside] Calls that may have written in the workspace since its previous version. What they had written is in this one, too.
 * @property {(string)[]} [conflicts] Paths that somebody else changed in the workspace in the meantime, which prevented the takeover.
 * @property {string} [why] What else prevented the takeover.
 *
 * A model answered a question about a plan, or could not. The body is the answer.
 * @typedef {object} AskRecord
 * @property {"ask"} kind
 * @property {number} [thought] The number of the question among the plan's questions, in the order in which they were asked.
 * @property {string} question The kind of question.
 * @property {string} role The role of the model.
 * @property {string} model The model's name.
 * @property {string} digest The digest of the question.
 * @property {Tokens} usage The tokens that it took.
 * @property {string} [node] The step that the question is about.
 * @property {string} [failed] Why there is no answer.
 * @property {(Wait)[]} [waits] What delayed the answer of the model's endpoint.
 * @property {boolean} [too_long] Whether there is no answer because the question was too long for the endpoint. It is asked once more, smaller.
 *
 * A planner has written more of its plan; complete steps begin at once. The body is the text since the last one.
 * @typedef {object} DraftRecord
 * @property {"draft"} kind
 * @property {number} thought The question that it answers.
 *
 * A timer of a plan expired (a retry, the end of its time), or the session continues after it had stopped.
 * @typedef {object} WakeRecord
 * @property {"wake"} kind
 * @property {boolean} [reopened] Whether the session continues. The time in between does not count.
 *
 * The agent is paused: neither it nor any agent below it starts a call to a model or a tool.
 * @typedef {object} PauseRecord
 * @property {"control"} kind
 * @property {"pause"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {string} [node] For a plan: only this step is paused.
 *
 * The agent's pause ends.
 * @typedef {object} ResumeRecord
 * @property {"control"} kind
 * @property {"resume"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {string} [node] For a plan: only this step resumes.
 *
 * A person writes into the agent's dialogue.
 * @typedef {object} InjectRecord
 * @property {"control"} kind
 * @property {"inject"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {string} [once] What the program that sent it calls it. If the line loses the answer, it is sent again under this name, and is not said a second time. Empty if it has no name.
 * @property {"user"} by
 * @property {"queue"|"deliver"|"interrupt"} mode
 * @property {string} [node] For a plan: the message is only about this step.
 *
 * The work of the agent and of all agents below it ends. The body is the reason, where the core ends a plan.
 * @typedef {object} CancelRecord
 * @property {"control"} kind
 * @property {"cancel"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"|"core"} by
 * @property {string} [node] For a plan: only this step ends.
 *
 * Sets how much the session may do from now on.
 * @typedef {object} SetIntentRecord
 * @property {"control"} kind
 * @property {"intent"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {number} value From 0 (observe) to 2 (override).
 *
 * Lockdown begins or ends. While it lasts, every call is denied.
 * @typedef {object} LockdownRecord
 * @property {"control"} kind
 * @property {"lockdown"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {boolean} value
 *
 * A person edited the policy. The new version applies from now on.
 * @typedef {object} SetPolicyRecord
 * @property {"control"} kind
 * @property {"policy"} op
 * @property {"user"} by
 * @property {Record<string, unknown>} policy
 *
 * Other models, or models with other windows, play the roles; dialogues continue with them. A person chooses models while none is writing. The core lowers a window when its endpoint says that it is smaller.
 * @typedef {object} SetModelsRecord
 * @property {"control"} kind
 * @property {"models"} op
 * @property {"user"|"core"} by
 * @property {Record<string, RoleTerms>} models All models, by role.
 *
 * A person vouches for a variable of the agent, or for everything that it has read.
 * @typedef {object} DeclassifyRecord
 * @property {"control"} kind
 * @property {"declassify"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {string} [variable]
 *
 * A person starts a plan. The record's agent is the plan, and the body is the text that the person wrote.
 * @typedef {object} StartPlanRecord
 * @property {"control"} kind
 * @property {"plan"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {PlanTerms|null} [plan] How the person wants it run, as in the `spawn` record before this one.
 * @property {number} budget Tokens that are reserved for the plan.
 *
 * The workspace's files, or one of them, are restored to an earlier version.
 * @typedef {object} RestoreRecord
 * @property {"control"} kind
 * @property {"restore"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {string} version The version of all files that results.
 * @property {string} [path] The only file that was restored; empty: all files.
 *
 * A plan that waited for review may begin.
 * @typedef {object} BeginPlanRecord
 * @property {"control"} kind
 * @property {"start"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 *
 * A person rewrites the steps of a plan that have not started. The body is the whole plan as it should be.
 * @typedef {object} EditPlanRecord
 * @property {"control"} kind
 * @property {"edit"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 *
 * A person has a step of a plan that produced nothing run again, with the steps that needed it.
 * @typedef {object} RetryStepRecord
 * @property {"control"} kind
 * @property {"retry"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {string} node The step.
 * @property {number} budget Tokens that are reserved for the plan, if it had ended; otherwise 0.
 *
 * A waiting message is to be read as soon as the agent can read one.
 * @typedef {object} SendNowRecord
 * @property {"control"} kind
 * @property {"send"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {number} of The record of the message.
 *
 * A person replaces the text of a message that has not been read yet.
 * @typedef {object} RewordRecord
 * @property {"control"} kind
 * @property {"reword"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {number} of The record of the message.
 *
 * A person withdraws a message that has not been read yet.
 * @typedef {object} WithdrawRecord
 * @property {"control"} kind
 * @property {"withdraw"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {number} of The record of the message.
 *
 * A person ends the running calls of the agent and of those below it. Agents continue with the results so far.
 * @typedef {object} StopCallsRecord
 * @property {"control"} kind
 * @property {"stop"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 *
 * The session may use more tokens or more money from now on. Requests that waited for them are answered.
 * @typedef {object} RaiseBudgetRecord
 * @property {"control"} kind
 * @property {"budget"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {number} tokens How many more tokens.
 * @property {number} [money] How much more money.
 *
 * A person applies changes that wait in the overlay of a live directory.
 * @typedef {object} ApplyChangesRecord
 * @property {"control"} kind
 * @property {"apply"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {(string)[]|Blob} paths
 * @property {boolean} [force] Whether to apply them despite conflicts.
 *
 * A person drops changes that wait in the overlay of a live directory.
 * @typedef {object} DropChangesRecord
 * @property {"control"} kind
 * @property {"drop"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {(string)[]|Blob} paths
 *
 * From now on, modules see the live directory through an overlay, or no longer do.
 * @typedef {object} UseOverlayRecord
 * @property {"control"} kind
 * @property {"overlay"} op
 * @property {"core"} by
 * @property {boolean} value
 *
 * Hosts that a person allows modules to reach from now on, in addition to the policy's. The lists are complete.
 * @typedef {object} AllowHostsRecord
 * @property {"control"} kind
 * @property {"hosts"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {Record<string, (string)[]>} always Hosts allowed in every session, by module.
 * @property {Record<string, (string)[]>} session Hosts allowed in this session, by module.
 *
 * Memory is switched off or on. While it is off, the session brings no statements and is told none.
 * @typedef {object} SwitchMemoryRecord
 * @property {"control"} kind
 * @property {"memory"} op
 * @property {string} [who] The person's user name. Empty in an installation with a single user.
 * @property {"user"} by
 * @property {"person"|"session"} of Whose switch it is. Memory is on where both are on.
 * @property {boolean} value Whether it is on.
 *
 * A session begins, with its root.
 * @typedef {object} OpenRecord
 * @property {"open"} kind
 * @property {string} format The format whose rules the records follow.
 * @property {string} session The session's id.
 * @property {Record<string, RoleTerms>} models The models, by role.
 * @property {GrantTerms} grant How much it may do, and for which user.
 * @property {Record<string, unknown>|null} [policy] The user's policy.
 * @property {Bounds} bounds The session's bounds.
 * @property {"whole"|"changes"} [tail] How contexts end: each with the agent's whole state, or with what has changed of it.
 * @property {string} workspace The user's directory in which the session works; "scratch" for a directory of its own.
 * @property {boolean} [layers] Whether agents of intent 0 can run code in a layer over the files that is thrown away.
 * @property {boolean} [memory] Whether the session reads and writes the user's memory. A program that speaks for many must not.
 *
 * A version of a module is available, or the module is gone. The body is its manifest as JSON, or the reason.
 * @typedef {object} ModuleRecord
 * @property {"module"} kind
 * @property {string} name Its name, as its manifest has it.
 * @property {string} [version] Its version, as its manifest has it.
 * @property {string} digest The SHA-256 of its files.
 * @property {"shipped"|"user"|"agent"} origin Where it comes from.
 * @property {""|"live"|"scratch"} [stake] Whether its calls can do harm outside the session.
 * @property {(string)[]|null} [approved] The functions whose declarations are trusted; None: all of them.
 * @property {""|"removed"|"withdrawn"} [state] Why it is gone: a person removed it, or it failed too often.
 *
 * A message for people. It never enters a context.
 * @typedef {object} NoticeRecord
 * @property {"notice"} kind
 * @property {"warning"|"error"} level
 * @property {string} code The subject, for programs.
 *
 * The records before this one were copied from a session of this installation. From here on, it is separate.
 * @typedef {object} ForkRecord
 * @property {"fork"} kind
 * @property {string} from The session from which it was copied.
 * @property {number} after The last record that both sessions share.
 * @property {string} session The id of this session.
 * @property {"version"|"current"|"live"|"none"} workspace Its files: as they were after that record, as they were at the fork, in a directory of the user, or none.
 * @property {number} [left_out] How many files were not copied.
 * @property {boolean} [drops] Whether pending actions after that record are dropped here: the root waits until somebody sends a message.
 *
 * The records before this one were copied from another installation's session. They have no authority here.
 * @typedef {object} AdoptRecord
 * @property {"adopt"} kind
 * @property {string} from The session from which it was copied.
 * @property {number} after The last record that both sessions share.
 * @property {string} session The id of this session.
 * @property {string} sha256 The SHA-256 of all bytes before this record.
 * @property {"user"} by
 * @property {"current"|"none"} workspace Its files: as they were when it was adopted, or none.
 * @property {string} format
 * @property {Record<string, RoleTerms>} models
 * @property {GrantTerms} grant
 * @property {Record<string, unknown>} policy
 * @property {Bounds} bounds As in an `open` record.
 * @property {Record<string, number>|null} [left_out] How many files, blobs and versions were not copied.
 * @property {(string)[]} [lost] The contents of values that are not there, by their SHA-256.
 *
 * From here on, the rules and prompts are those of another version of this program, or other values are lost.
 * @typedef {object} MigrateRecord
 * @property {"migrate"} kind
 * @property {string} from The format up to here.
 * @property {string} to The format from here on.
 * @property {Record<string, RoleTerms>} models The models, with their current prompts.
 * @property {(string)[]} [lost] The contents of values that are missing or damaged on disk, by their SHA-256.
 *
 * From here on, another host writes the journal, or the same one after a restart. The previous one can't.
 * @typedef {object} EpochRecord
 * @property {"epoch"} kind
 * @property {number} epoch Its number. The first epoch begins with the session and has no such record.
 * @property {string} host The host.
 *
 * The session was closed properly. If it is opened again, it continues after this record.
 * @typedef {object} CloseRecord
 * @property {"close"} kind
 * @property {boolean} [late] Whether the process that ran the session ended without closing it, which the next one records if modules held something for agents. What they held is gone in any case.
 *
 * @typedef {SayRecord|ChooseRecord|UploadRecord|TurnRecord|ReplyRecord|DiscardRecord|SpawnRecord|RecallRecord|DrawRecord|CompressRecord|DistillRecord|CallRecord|GateRecord|ClearanceAskRecord|ClearanceAnswerRecord|ResultRecord|SelectRecord|StateRecord|EffectsRecord|SettleRecord|HostAskRecord|HostAnswerRecord|HostReachRecord|FormAskRecord|FormAnswerRecord|PlanRecord|ExtendRecord|NodeRecord|ProfileRiskRecord|ProfileRuleRecord|ProfileTrustRecord|FireRecord|MakeCopyRecord|TakeOverRecord|AskRecord|DraftRecord|WakeRecord|PauseRecord|ResumeRecord|InjectRecord|CancelRecord|SetIntentRecord|LockdownRecord|SetPolicyRecord|SetModelsRecord|DeclassifyRecord|StartPlanRecord|RestoreRecord|BeginPlanRecord|EditPlanRecord|RetryStepRecord|SendNowRecord|RewordRecord|WithdrawRecord|StopCallsRecord|RaiseBudgetRecord|ApplyChangesRecord|DropChangesRecord|UseOverlayRecord|AllowHostsRecord|SwitchMemoryRecord|OpenRecord|ModuleRecord|NoticeRecord|ForkRecord|AdoptRecord|MigrateRecord|EpochRecord|CloseRecord} Said
 */

export {};
