// The shapes that come over the websocket (see web/connection.py and web/records.py).

/**
 * @typedef {"idle"|"thinking"|"acting"|"waiting"|"paused"|"done"|"failed"|"cancelled"} State
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
 * @property {number} [allowance] tokens for its work
 * @property {number} [left] what is left of them
 *
 * @typedef {object} JournalRecord
 * @property {number} n
 * @property {string} at
 * @property {string} kind
 * @property {string} agent
 * @property {string} [html] missing until it was asked for, in records of long ago
 * @property {string} body
 * @property {{action: number, to: string, html?: string}[]} [messages]
 * @property {number} [turn]
 * @property {number} [action]
 * @property {unknown} [allow]
 * @property {number} [intent]
 * @property {number[]} [took]
 * @property {string} [to]
 * @property {string} [op]
 * @property {string} [function]
 * @property {string} [status]
 * @property {number} [call]
 * @property {unknown} [grant]
 * @property {number} [body_size] if `body` was shortened
 * @property {string} [said] the whole text of a `say`
 * @property {string} [context] digest of what the model saw
 * @property {{prompt: number, cached: number, completion: number}} [usage]
 * @property {number} [ms] how long a turn or a call took
 * @property {unknown} [params] of a `clearance` record that asks: the call's arguments
 * @property {number} [ask] the record of the question that this answers
 * @property {unknown} [value] of a `control` record
 * @property {string} [by]
 * @property {number} [impact]
 * @property {string} [reason]
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
 * @property {boolean} [example] it comes with the product and is none of the user's own
 * @property {string} [foreign] why this installation did not make it, if so
 * @property {Prices} [prices] what a million tokens cost, if that is known
 *
 * @typedef {{prompt: number, cached: number, completion: number}} Prices
 *
 * @typedef {object} SessionInfo
 * @property {string} id
 * @property {string} title
 * @property {string} created
 * @property {string} changed
 * @property {number} records
 * @property {boolean} open
 * @property {boolean} foreign this installation did not make it
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
 * @typedef {"say"|"queue"|"deliver"|"interrupt"|"fork"} Mode
 */

export {};
