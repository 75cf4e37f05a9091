#!/usr/bin/env node
// Plays a script of MCP requests with the TypeScript client 2.x, which speaks both eras.
// usage: ts2_client.mjs (--url URL | --stdio CMD ARGS...) [--era legacy|auto|2026-07-28]
//                       [--header 'K: V']... [--timeout SECONDS] [--elicit accept|decline|cancel]
//                       [--sample TEXT] [--log LEVEL] --script JSON

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { main } from "./script.mjs";

const MODERN = "2026-07-28";

await main({
  program: "ts2_client",
  eras: ["legacy", "auto", MODERN],
  StdioClientTransport,
  StreamableHTTPClientTransport,
  newClient: (info, capabilities, era) =>
    new Client(info, { capabilities, versionNegotiation: { mode: era === MODERN ? { pin: MODERN } : era } }),
  handle: (client, method, answer) => client.setRequestHandler(method, ({ params }) => answer(params)),
  onLog: (client, heard) =>
    client.setNotificationHandler("notifications/message", ({ params }) => heard(params)),
  isModern: (client) => client.getNegotiatedProtocolVersion() === MODERN,
  protocolVersion: (client) => client.getNegotiatedProtocolVersion(),
  // A second list step must see a change, so the client's cache never answers.
  listTools: (client, params, options) => client.listTools(params, { ...options, cacheMode: "refresh" }),
  callTool: (client, params, options) => client.callTool(params, options),
});
