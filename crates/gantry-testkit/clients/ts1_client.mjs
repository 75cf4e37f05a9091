#!/usr/bin/env node
// Plays a script of MCP requests with the TypeScript SDK 1.x, which speaks the legacy era only.
// usage: ts1_client.mjs (--url URL | --stdio CMD ARGS...) [--era legacy] [--header 'K: V']...
//                       [--timeout SECONDS] --script JSON

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { main } from "./script.mjs";

/** The client hands the negotiated version to its transport only, and the stdio one would drop it. */
class VersionedStdioTransport extends StdioClientTransport {
  setProtocolVersion(version) {
    this.protocolVersion = version;
  }
}

await main({
  program: "ts1_client",
  eras: ["legacy"],
  StdioClientTransport: VersionedStdioTransport,
  StreamableHTTPClientTransport,
  newClient: (info) => new Client(info),
  protocolVersion: (_client, transport) => transport.protocolVersion,
  listTools: (client, params, timeout) => client.listTools(params, { timeout }),
  callTool: (client, params, timeout) => client.callTool(params, undefined, { timeout }),
});
