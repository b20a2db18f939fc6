// An official TypeScript client against a server of ours: connects, lists, calls, reads (`uri`) and prompts (`prompt`, an
// object of name and arguments), and prints one JSON line.
//   node client.mjs v1|v2 stdio '{"tool": "...", "arguments": {}, "uri": "...", "prompt": {}}' COMMAND ARGS…
//   node client.mjs v1|v2 http  '{"tool": "...", "arguments": {}}' URL
const [, , line, transport, request, ...target] = process.argv;
const { tool, arguments: args, uri, prompt } = JSON.parse(request);
const info = { name: "peer", version: "1" };

const load = {
  v1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
  }),
  v2: async () => ({ ...(await import("@modelcontextprotocol/client")), ...(await import("@modelcontextprotocol/client/stdio")) }),
};

const sdk = await load[line]();
const client = new sdk.Client(info, line === "v2" ? { versionNegotiation: { mode: "auto" } } : {});
const wire = transport === "stdio"
  ? new sdk.StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env, stderr: "inherit" })
  : new sdk.StreamableHTTPClientTransport(new URL(target[0]));
await client.connect(wire);
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: args });
const read = uri ? (await client.readResource({ uri })).contents.length : null;
const prompted = prompt ? (await client.getPrompt(prompt)).messages.length : null;
console.log(JSON.stringify({ line, transport, server: client.getServerVersion?.() ?? null, revision: wire.protocolVersion ?? client.getNegotiatedProtocolVersion?.() ?? null, tools: tools.length, result, read, prompted }));
await client.close();
