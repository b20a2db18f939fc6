// An official TypeScript client against a server of ours: connects, lists and calls, and prints one JSON line.
//   node client.mjs v1|v2 stdio '{"tool": "...", "arguments": {}}' COMMAND ARGS…
//   node client.mjs v1|v2 http  '{"tool": "...", "arguments": {}}' URL
const [, , line, transport, request, ...target] = process.argv;
const { tool, arguments: args } = JSON.parse(request);
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
console.log(JSON.stringify({ line, transport, server: client.getServerVersion?.() ?? null, revision: wire.protocolVersion ?? client.getNegotiatedProtocolVersion?.() ?? null, tools: tools.length, result }));
await client.close();
