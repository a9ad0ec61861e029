// A front end's client of AG-UI by other people: every event goes through its schema and its verifier of their order.
// Usage: node ag_ui_client.js URL KEY STEPS; a step of the JSON list STEPS is {say}, {resume: PAYLOAD}, {back: N} (as if
// the last N messages had never been), {state} or {abort: TYPE}, which hangs up at the first such event. Prints what it
// saw of each run as JSON. With - as STEPS it reads them from standard input, one a line, and answers each with a line.
import { createInterface } from "node:readline";

import { HttpAgent, buildResumeArray } from "@ag-ui/client";

const [url, key, given] = process.argv.slice(2);
const agent = new HttpAgent({ url, headers: { Authorization: `Bearer ${key}` }, initialState: { mine: "kept" } });
const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));
console.error = () => {}; // a run that fails is in what is printed
const runs = [];

async function* steps() {
  if (given !== "-") yield* JSON.parse(given);
  else for await (const line of createInterface({ input: process.stdin })) yield JSON.parse(line);
}

for await (const step of steps()) {
  const seen = { events: [], failed: null };
  runs.push(seen);
  if (step.back) agent.setMessages(agent.messages.slice(0, -step.back));
  if (step.state) agent.setState(step.state);
  // What the front end's tools give back: each call that has no result yet gets this one.
  if (step.result !== undefined) {
    const done = new Set(agent.messages.filter(({ role }) => role === "tool").map(({ toolCallId }) => toolCallId));
    const calls = agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []).filter(({ id }) => !done.has(id));
    for (const { id } of calls) agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: id, content: step.result });
  }
  if (step.say) agent.addMessage({ id: crypto.randomUUID(), role: "user", content: step.say });
  const parameters = step.tools ? { tools: step.tools } : {};
  if (step.resume !== undefined) {
    const answers = agent.pendingInterrupts.map((one) => [one.id, { status: "resolved", payload: step.resume }]);
    parameters.resume = buildResumeArray(agent.pendingInterrupts, Object.fromEntries(answers));
  }
  await agent
    .runAgent(parameters, {
      onEvent: ({ event }) => {
        seen.events.push(event);
        if (event.type === step.abort) agent.abortRun();
      },
      onRunFailed: ({ error }) => {
        seen.failed = error.message;
      },
    })
    .catch((error) => {
      seen.failed = error.message;
    });
  seen.messages = structuredClone(agent.messages);
  seen.state = structuredClone(agent.state);
  seen.interrupts = structuredClone(agent.pendingInterrupts);
  if (given === "-") console.log(JSON.stringify({ ...seen, warnings }));
}
if (given !== "-") console.log(JSON.stringify({ runs, warnings }));
