#!/usr/bin/env node
// Plays a script of MCP requests with the TypeScript SDK 1.x, which speaks the legacy era only.
// usage: ts1_client.mjs (--url URL | --stdio CMD ARGS...) [--era legacy] [--header 'K: V']...
//                       [--timeout SECONDS] [--elicit accept|decline|cancel] [--answer JSON] [--when FILE]
//                       [--sample TEXT] [--log LEVEL] --script JSON

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResultSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { main } from "./script.mjs";

const SCHEMAS = { "elicitation/create": ElicitRequestSchema, "sampling/createMessage": CreateMessageRequestSchema };

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
  newClient: (info, capabilities) => new Client(info, { capabilities }),
  handle: (client, method, answer) => client.setRequestHandler(SCHEMAS[method], ({ params }) => answer(params)),
  onLog: (client, heard) =>
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => heard(params)),
  isModern: () => false,
  protocolVersion: (_client, transport) => transport.protocolVersion,
  listTools: (client, params, options) => client.listTools(params, options),
  callTool: (client, params, options) => client.callTool(params, undefined, options),
  request: (client, request, options) => client.request(request, ResultSchema, options),
});
