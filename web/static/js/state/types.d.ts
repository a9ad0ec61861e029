// The page's types, built from generated ones: wire.d.ts has the messages, records.js the records.

import type { ActivityNews, Node, Requests, SessionNews, SessionRow } from "./wire.d.ts";

export type { Budget, JournalRecord, Node, Prices, SeenMessage, Shown, Variable } from "./wire.d.ts";

/** The state of a node, or "opening" while its session is being opened and the state is unknown. */
export type State = "opening" | Node["state"];

export type TreeNode = Omit<Node, "state"> & { state: State };

/** The facts about the shown session. */
export type SessionFacts = Omit<SessionNews, "type"> & Required<Pick<SessionNews, "intent" | "levels" | "model" | "journal" | "last" | "readonly">>;

/** A session in the list. */
export type SessionInfo = SessionRow;

/** What the model of an agent does or waits for now. */
export type Activity = ActivityNews;
export type Doing = Exclude<Activity["state"], "">;

/** The mode in which a message is sent. */
export type Mode = "say" | "queue" | "deliver" | "interrupt" | "fork" | "run";

export type RequestType = keyof Requests;

/** Sends a request to the server. Settles with the fields of the `ok`. */
export type Request = <T extends RequestType>(type: T, fields?: Requests[T]["fields"]) => Promise<Requests[T]["answer"]>;

/** Lets the browser download the file that the answer to a request names. */
export type Fetch = (type: "download" | "export" | "file.download" | "files.download", fields: { path?: string; name?: string; at?: number | null }) => void;

/** Sends a request that acts on an agent, a plan or a step. */
export type Act = <T extends RequestType>(type: T, fields: Requests[T]["fields"]) => void;

/** The fields of a request of type `T`. */
export type Fields<T extends RequestType> = Requests[T]["fields"];
