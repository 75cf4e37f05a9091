// Drives every primitive of a server through Gantry, so that the suite's mock servers see Gantry's upstream client.
//
// The suite runs `node drive.mjs URL` with the address of its mock server and says in the environment which revision
// and which calls it wants. GANTRY names the program; without it, the mock server is driven directly, which shows
// whether a failure is Gantry's or this script's.

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const MODERN = '2026-07-28';
// Everything together takes a few seconds; the suite itself gives up later than this.
const DEADLINE_MS = 45_000;
// How long Gantry may take to connect to the mock server and list its tools.
const CONNECT_MS = 5_000;

const upstream = process.argv[2];
if (upstream === undefined) {
  console.error('usage: node drive.mjs URL');
  process.exit(2);
}
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? MODERN;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

let gantry;
let home;

async function startGantry(program) {
  home = await mkdtemp(join(tmpdir(), 'gantry-conformance-'));
  const server = { type: 'http', url: upstream, prefix: false, roots: true };
  // Every listed tool is called: without Gantry's own, all of them are the mock server's.
  const tools = { workspace: { enabled: false } };
  const config = { server: { bind: '127.0.0.1:0' }, mcpServers: { suite: server }, tools };
  await writeFile(join(home, 'gantry.json'), JSON.stringify(config));
  gantry = spawn(program, ['serve'], { cwd: home, stdio: ['ignore', 'ignore', 'pipe'] });
  const said = [];
  for await (const line of createInterface({ input: gantry.stderr })) {
    said.push(line);
    const open = /^\s*open\s+(http:\/\/\S+?)\/?$/.exec(line);
    if (open) {
      gantry.stderr.resume();
      return `${open[1]}/mcp`;
    }
  }
  throw new Error(`gantry did not start:\n${said.join('\n')}`);
}

async function stop(code) {
  if (gantry?.exitCode === null) {
    gantry.kill('SIGTERM');
    await new Promise((resolve) => {
      gantry.once('exit', resolve);
      setTimeout(() => gantry.kill('SIGKILL'), 3_000).unref();
    });
  }
  if (home) await rm(home, { recursive: true, force: true });
  process.exit(code);
}

/** A value that fits a JSON Schema of a parameter or a form field. */
function sample(schema) {
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (Array.isArray(schema.oneOf)) return schema.oneOf[0].const;
  switch (schema.type) {
    case 'integer':
    case 'number':
      return 5;
    case 'boolean':
      return true;
    case 'array':
      return [];
    case 'object':
      return samples(schema);
    default:
      return 'us-west1';
  }
}

function samples(schema) {
  const entries = Object.entries(schema?.properties ?? {});
  return Object.fromEntries(entries.map(([name, property]) => [name, sample(property)]));
}

/** Says how a step went; a refused step is an answer too, and the suite judges by what it saw. */
async function attempt(what, step) {
  try {
    const result = await step();
    console.log(`ok    ${what}`);
    return result;
  } catch (error) {
    console.log(`error ${what}: ${error?.message ?? error}`);
    return undefined;
  }
}

function newClient() {
  const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
  const mode = version >= MODERN ? 'auto' : 'legacy';
  const client = new Client({ name: 'gantry-conformance', version: '0' }, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', (request) => ({
    action: 'accept',
    content: samples(request.params?.requestedSchema),
  }));
  client.setRequestHandler('roots/list', () => ({ roots: [] }));
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'sampled' },
  }));
  return client;
}

/** Lists the tools, waiting for those of a server that Gantry is still connecting to. */
async function listTools(client) {
  const end = Date.now() + (gantry ? CONNECT_MS : 0);
  for (;;) {
    const { tools } = await client.listTools();
    if (tools.length > 0 || Date.now() >= end) return tools;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The calls to make: what the suite asks for, else one of every tool. */
function callsFor(tools) {
  if (context.toolCalls) return context.toolCalls;
  const subject = tools.find((tool) => tool.name === 'json_schema_2020_12_tool');
  const echo = tools.find((tool) => tool.name === 'json_schema_echo');
  if (subject && echo) return [{ name: echo.name, arguments: { schema: subject.inputSchema } }];
  return tools.map((tool) => ({ name: tool.name, arguments: samples(tool.inputSchema) }));
}

async function drive(client) {
  const tools = (await attempt('tools/list', () => listTools(client))) ?? [];
  for (const call of callsFor(tools)) {
    await attempt(`tools/call ${call.name}`, () => client.callTool(call));
  }
  const listed = await attempt('resources/list', () => client.listResources());
  for (const { uri } of listed?.resources ?? []) {
    await attempt(`resources/read ${uri}`, () => client.readResource({ uri }));
  }
  const known = await attempt('prompts/list', () => client.listPrompts());
  for (const prompt of known?.prompts ?? []) {
    const values = Object.fromEntries((prompt.arguments ?? []).map(({ name }) => [name, 'x']));
    await attempt(`prompts/get ${prompt.name}`, () => client.getPrompt({ name: prompt.name, arguments: values }));
  }
}

for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop(1));
setTimeout(() => {
  console.error(`drive.mjs: not done after ${DEADLINE_MS} ms`);
  void stop(1);
}, DEADLINE_MS).unref();

try {
  const url = process.env.GANTRY ? await startGantry(process.env.GANTRY) : upstream;
  const client = newClient();
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await drive(client);
  await client.close();
  await stop(0);
} catch (error) {
  console.error(`drive.mjs: ${error?.stack ?? error}`);
  await stop(1);
}
