// The shapes that come over the websocket (see web/connection.py and web/records.py).

/**
 * @template U
 * @typedef {U extends unknown ? keyof U : never} AnyKey
 */

/**
 * A union whose members can be asked for what others of them have; it is undefined there.
 * @template U
 * @template {PropertyKey} [K=AnyKey<U>]
 * @typedef {U extends unknown ? U & {[P in Exclude<K, keyof U>]?: undefined} : never} Each
 */

/**
 * @typedef {"opening"|"idle"|"thinking"|"acting"|"waiting"|"paused"|"done"|"failed"|"cancelled"} State
 *
 * @typedef {object} TreeNode
 * @property {string} path
 * @property {string} name
 * @property {string} caller
 * @property {"agent"|"plan"} kind
 * @property {State} state
 * @property {boolean} paused
 * @property {string} doing
 * @property {number} turns
 * @property {string} model
 * @property {number} prompt_tokens
 * @property {number} cached_tokens
 * @property {number} completion_tokens
 * @property {number} record
 * @property {string} [ended] what its last work fell short of, if it did
 * @property {string[]} [awaited] children at work for which it waits
 * @property {number} [awaited_of] for how many it waits, those that have replied included
 * @property {number} [allowance] tokens for its work
 * @property {number[]} [calls] records of the calls of functions that run for it
 * @property {number[]} [queued] records of what a person said that it has not begun to answer
 * @property {number} [left] what neither it nor those below it have used of them
 * @property {number} [lent] how many of those are set aside for children at work
 *
 * What a record says, and what the server adds to show it.
 * @typedef {Shown & Each<import("./records.js").Said>} JournalRecord
 *
 * @typedef {object} Shown
 * @property {number} n
 * @property {string} at
 * @property {string} agent
 * @property {string} [html] missing until it was asked for, in records of long ago
 * @property {string} body
 * @property {{action: number, to: string, html?: string}[]} [messages]
 * @property {number} [body_size] if `body` was shortened
 * @property {string} [said] the whole text of what a person said
 *
 * @typedef {object} SessionFacts
 * @property {string|null} id
 * @property {number} since
 * @property {number} intent
 * @property {Record<string, number>} levels those of its policy, by name
 * @property {string} model
 * @property {string} journal
 * @property {number} last number of the newest record when it was asked for
 * @property {boolean} readonly
 * @property {boolean} [opening] only its end is known yet
 * @property {boolean} [example] it comes with the product and is none of the user's own
 * @property {string} [foreign] why this installation did not make it, if so
 * @property {Prices} [prices] what a million tokens cost, if that is known
 *
 * @typedef {{prompt: number, cached: number, completion: number, models?: Record<string, Prices>}} Prices those of models that cost something else by name
 *
 * @typedef {object} SessionInfo
 * @property {string} id
 * @property {string} title
 * @property {string} created
 * @property {string} changed
 * @property {number} records
 * @property {boolean} open
 * @property {boolean} foreign this installation did not make it
 * @property {"idle"|"working"|"waits"|"paused"|"failed"|"unfinished"} [state]
 * @property {string} [since]
 * @property {string} [what] what it waits for
 * @property {boolean} [pinned]
 * @property {boolean} [named] a person gave it its title
 * @property {string} [source] of a fork
 * @property {number} [at]
 *
 * @typedef {object} SeenMessage
 * @property {string} role
 * @property {string} text
 * @property {number} size
 * @property {boolean} reused
 * @property {number} [left_out]
 *
 * @typedef {object} Variable
 * @property {string} name
 * @property {string} media
 * @property {number} size
 * @property {string} origin
 * @property {string[]} labels
 *
 * @typedef {"asking"|"reasoning"|"writing"|"limited"|"retrying"|"stalled"|"slot"} Doing
 *
 * @typedef {{tokens: number, used: number, exhausted: boolean}} Budget exhausted: the root can't have one more turn
 *
 * What the model of an agent does now, or what keeps it.
 * @typedef {object} Activity
 * @property {string} agent
 * @property {Doing|""} state
 * @property {string} since
 * @property {string} [until]
 * @property {number} [attempt] which one comes next
 * @property {number} [of]
 * @property {string} [why]
 *
 * @typedef {"say"|"queue"|"deliver"|"interrupt"|"fork"|"run"} Mode
 */

export {};
