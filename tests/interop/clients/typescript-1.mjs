// The TypeScript SDK 1.x.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport as Sse } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport as Stdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { readPlan, run } from "./steps.mjs";

await run(readPlan(), new Client({ name: "interop", version: "1" }), { Stdio, Http, Sse });
