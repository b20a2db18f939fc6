// An official TypeScript client against a server of ours: does what it is told, answers what it is asked, prints one JSON line.
//   node typescript.mjs v1|v2 legacy|modern stdio TASKS COMMAND ARGS…
//   node typescript.mjs v1|v2 legacy|modern http|sse TASKS URL
// TASKS is JSON: what to do and how to answer stands in benchmarks/bench/peers/client_tasks.py, and so does who judges the line.
import { readFileSync } from "node:fs";

const [, , line, era, transport, tasks, ...target] = process.argv;

const load = {
  v1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
    ...(await import("@modelcontextprotocol/sdk/client/sse.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    ...(await import("@modelcontextprotocol/sdk/types.js")),
  }),
  v2: async () => ({ ...(await import("@modelcontextprotocol/client")), ...(await import("@modelcontextprotocol/client/stdio")) }),
};
const sdk = await load[line]();
const name = line === "v1" ? "sdk" : "client";
const { version } = JSON.parse(readFileSync(new URL(`./node_modules/@modelcontextprotocol/${name}/package.json`, import.meta.url)));

const choice = (field) => field.default ?? field.enum?.[0] ?? field.oneOf?.[0].const ?? typed(field);
const typed = ({ type, items }) =>
  ({ array: () => [items.enum?.[0] ?? items.anyOf[0].const], boolean: () => true, integer: () => 7, number: () => 7 })[type]?.() ?? "Ann";
const fill = ({ properties }) => Object.fromEntries(Object.entries(properties).map(([key, field]) => [key, choice(field)]));

const asked = { elicitation: 0, sampling: 0, roots: 0 };
const answers = {
  elicitation: ["ElicitRequestSchema", "elicitation/create", ({ message, requestedSchema }) =>
    message.includes("decline") ? { action: "decline" } : { action: "accept", content: fill(requestedSchema) }],
  sampling: ["CreateMessageRequestSchema", "sampling/createMessage", () =>
    ({ role: "assistant", model: "m", content: { type: "text", text: "Paris" } })],
  roots: ["ListRootsRequestSchema", "roots/list", () => ({ roots: [{ uri: "file:///work" }] })],
};

const client = new sdk.Client({ name: "peer", version: "1" }, {
  capabilities: { elicitation: {}, sampling: {}, roots: {} },
  ...(era === "modern" ? { versionNegotiation: { mode: "auto" } } : {}),
});
for (const [kind, [schema, method, answer]] of Object.entries(answers)) {
  client.setRequestHandler(line === "v1" ? sdk[schema] : method, async ({ params }) => {
    asked[kind] += 1;
    return answer(params);
  });
}

const texts = (blocks) => blocks.map((block) => block.text ?? block.type).join(" ");
const doers = {
  tools: async () => (await client.listTools()).tools.map((tool) => tool.name).join(" "),
  call: async ({ target, arguments: args }) => {
    const steps = [];
    const onprogress = ({ progress }) => steps.push(progress);
    const params = { name: target, arguments: args };
    const { content, isError } = await (line === "v1" ? client.callTool(params, undefined, { onprogress }) : client.callTool(params, { onprogress }));
    return `${isError ? "isError " : ""}progress ${steps} ${texts(content)}`;
  },
  read: async ({ target: uri }) => texts((await client.readResource({ uri })).contents),
  prompt: async ({ target, arguments: args }) => texts((await client.getPrompt({ name: target, arguments: args })).messages.map((message) => message.content)),
};

const wires = {
  stdio: () => new sdk.StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env, stderr: "inherit" }),
  http: () => new sdk.StreamableHTTPClientTransport(new URL(target[0])),
  sse: () => new sdk.SSEClientTransport(new URL(target[0])),
};
const wire = wires[transport]();
let revision = null; // a transport is told it; v2 says it as well
const pass = wire.setProtocolVersion?.bind(wire);
wire.setProtocolVersion = (version) => {
  revision = version;
  pass?.(version);
};
await client.connect(wire);
revision = client.getNegotiatedProtocolVersion?.() ?? revision;
const heard = {};
for (const task of JSON.parse(tasks)) heard[task.name] = await doers[task.kind](task).catch((error) => `failed: ${error.message}`);
console.log(JSON.stringify({ client: `TypeScript ${version}`, transport, revision, asked, heard }));
await client.close();
