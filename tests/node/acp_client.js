// A client of the Agent Client Protocol by other people: what it is sent is validated against their schema.
// Usage: node acp_client.js FOLDER OPTION COMMAND…; answers every question with OPTION, and prints what it saw as JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";

const [folder, option, command, ...rest] = process.argv.slice(2);
const agent = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const seen = { updates: [], asked: [], withdrawn: 0 };
let asked;
const question = new Promise((resolve) => (asked = resolve));

const app = acp
  .client({ name: "tests" })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    seen.updates.push(params.update);
  })
  .onRequest(acp.methods.client.session.requestPermission, async ({ params, signal }) => {
    seen.asked.push(params);
    asked();
    if (option === "wait") {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      seen.withdrawn += 1;
      return { outcome: { outcome: "cancelled" } };
    }
    return { outcome: { outcome: "selected", optionId: option } };
  });

await app.connectWith(stream, async (peer) => {
  const methods = acp.methods.agent;
  seen.initialized = await peer.request(methods.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const session = await peer.request(methods.session.new, { cwd: folder, mcpServers: [] });
  const sessionId = session.sessionId;
  seen.modes = session.modes.availableModes.map((mode) => mode.id);
  const prompt = peer.request(methods.session.prompt, { sessionId, prompt: [{ type: "text", text: "Make it." }] });
  if (option === "wait") {
    await question;
    await peer.notify(methods.session.cancel, { sessionId });
  }
  seen.ended = await prompt;
  seen.listed = (await peer.request(methods.session.list, { cwd: folder })).sessions.map((one) => one.sessionId);
  seen.session = sessionId;
  await peer.request(methods.session.close, { sessionId });
  seen.refused = await peer
    .request(methods.session.prompt, { sessionId, prompt: [{ type: "text", text: "?" }] })
    .catch((error) => error.message);
  const live = seen.updates.length;
  await peer.request(methods.session.load, { sessionId, cwd: folder, mcpServers: [] });
  seen.replayed = seen.updates.splice(live);
});
agent.stdin.end();
agent.on("exit", (status) => {
  console.log(JSON.stringify({ ...seen, status }));
});
