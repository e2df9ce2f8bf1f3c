// The TypeScript SDK 2.x.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { makeCalls, readPlan, report } from "./steps.mjs";

function transport({ transport, command: [command, ...args], env, url }) {
  if (transport === "stdio") return new StdioClientTransport({ command, args, env });
  return transport === "http"
    ? new StreamableHTTPClientTransport(new URL(url))
    : new SSEClientTransport(new URL(url));
}

const plan = readPlan();
const client = new Client({ name: "interop", version: "1" }, { versionNegotiation: { mode: plan.era } });
await client.connect(transport(plan));
const { tools } = await client.listTools();
report(tools.map((tool) => tool.name), await makeCalls(plan, client), client.getNegotiatedProtocolVersion());
await client.close();
