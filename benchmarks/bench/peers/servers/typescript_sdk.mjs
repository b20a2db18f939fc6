// One tool on the official TypeScript SDK, with node's own HTTP server: the fastest of its documented settings.
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

function make() {
  const server = new McpServer({ name: "bench", version: "1" });
  server.registerTool("add", { description: "Add two numbers.", inputSchema: { a: z.number().int(), b: z.number().int() } },
    async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }));
  return server;
}

if (process.argv.includes("--http")) {
  const port = Number(process.argv[process.argv.indexOf("--port") + 1]);
  createServer(async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    const server = make();
    response.on("close", () => { transport.close(); server.close(); });
    await server.connect(transport);
    await transport.handleRequest(request, response);
  }).listen(port, "127.0.0.1");
} else {
  await make().connect(new StdioServerTransport());
}
