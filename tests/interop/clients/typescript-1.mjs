// The TypeScript SDK 1.x.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { makeCalls, readPlan, report } from "./steps.mjs";

function transport({ transport, command: [command, ...args], env, url }) {
  if (transport === "stdio") return new StdioClientTransport({ command, args, env });
  return transport === "http"
    ? new StreamableHTTPClientTransport(new URL(url))
    : new SSEClientTransport(new URL(url));
}

const plan = readPlan();
const client = new Client({ name: "interop", version: "1" });
await client.connect(transport(plan));
const { tools } = await client.listTools();
report(tools.map((tool) => tool.name), await makeCalls(plan, client));
await client.close();
