#!/usr/bin/env node
// Plays a script of MCP requests with the TypeScript client 2.x, which speaks both eras.
// usage: ts2_client.mjs (--url URL | --stdio CMD ARGS...) [--era legacy|auto|2026-07-28]
//                       [--header 'K: V']... [--timeout SECONDS] [--elicit accept|decline|cancel]
//                       [--answer JSON] [--when FILE] [--sample TEXT] [--log LEVEL] [--tasks] --script JSON

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";
import { main } from "./script.mjs";

const MODERN = "2026-07-28";

/** Takes every result as it is. */
const ANYTHING = { "~standard": { version: 1, vendor: "gantry", validate: (value) => ({ value }) } };

/** Sends requests past the client, which refuses what it has no types for, by the client's own transport. */
function rawDispatch(transport) {
  const waiting = new Map();
  const deliver = transport.onmessage;
  let count = 0;
  transport.onmessage = (message, extra) => {
    const settle = waiting.get(message.id);
    if (!settle || message.method) return deliver?.(message, extra);
    waiting.delete(message.id);
    return settle(message.error ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
  };
  return ({ method, params }) =>
    new Promise((resolve, reject) => {
      count += 1;
      waiting.set(`raw-${count}`, resolve);
      transport.send({ jsonrpc: "2.0", id: `raw-${count}`, method, params }).catch(reject);
    });
}

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
  request: (client, request, options) => client.request(request, ANYTHING, options),
  openTasks: (client, transport, clientInfo, clientCapabilities) =>
    createTaskSessionFromClient(client, {
      endpointId: "gantry",
      rawDispatch: rawDispatch(transport),
      v2RequestFraming: { protocolVersion: MODERN, clientInfo, clientCapabilities },
    }),
});
