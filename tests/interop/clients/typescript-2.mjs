// The TypeScript SDK 2.x.
import { Client, SSEClientTransport as Sse, StreamableHTTPClientTransport as Http } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio } from "@modelcontextprotocol/client/stdio";
import { readPlan, run } from "./steps.mjs";

const plan = readPlan();
const client = new Client({ name: "interop", version: "1" }, { versionNegotiation: { mode: plan.era } });
await run(plan, client, { Stdio, Http, Sse });
