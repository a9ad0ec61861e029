// What the page works with, made of the generated types: wire.d.ts has the messages, records.js what records say.

import type { ActivityNews, Node, Requests, SessionNews, SessionRow } from "./wire.d.ts";

export type { Budget, JournalRecord, Node, Prices, SeenMessage, Shown, Variable } from "./wire.d.ts";

/** That of a node; or its session is being opened, and is not known. */
export type State = "opening" | Node["state"];

export type TreeNode = Omit<Node, "state"> & { state: State };

/** What is known of the session that is shown. */
export type SessionFacts = Omit<SessionNews, "type"> & Required<Pick<SessionNews, "intent" | "levels" | "model" | "journal" | "last" | "readonly">>;

/** A session in the list. */
export type SessionInfo = SessionRow;

/** What the model of an agent does now, or what keeps it. */
export type Activity = ActivityNews;
export type Doing = Exclude<Activity["state"], "">;

/** What a message is sent as. */
export type Mode = "say" | "queue" | "deliver" | "interrupt" | "fork" | "run";

export type RequestType = keyof Requests;

/** Asks the server, and settles with what the `ok` has. */
export type Request = <T extends RequestType>(type: T, fields?: Requests[T]["fields"]) => Promise<Requests[T]["answer"]>;

/** Has the browser download what the answer to a request leads to. */
export type Fetch = (type: "download" | "export" | "file.download" | "files.download", fields: { path?: string; name?: string; at?: number | null }) => void;

/** Something that is done about an agent, a plan or a step, by the type of the request. */
export type Act = <T extends RequestType>(type: T, fields: Requests[T]["fields"]) => void;

/** What a request of type `T` has. */
export type Fields<T extends RequestType> = Requests[T]["fields"];
