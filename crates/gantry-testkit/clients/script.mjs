// The part that the TypeScript clients share: reads the command line, plays the script, prints the JSON line.

import { parseArgs } from "node:util";

const OPTIONS = ["--url", "--era", "--header", "--timeout", "--script"];
const MAX_PAGES = 100;
const DEFAULT_TIMEOUT_SECONDS = "60";

class UsageError extends Error {}

/** The message with the HTTP status or code and the causes: fetch itself says only "fetch failed". */
function describe(error) {
  const code = error.status ?? error.code;
  const message = code === undefined ? String(error.message ?? error) : `${error.message} [${code}]`;
  return error.cause ? `${message}: ${describe(error.cause)}` : message;
}

/** Separates the server command from our options: it runs from `--stdio` to the next of them. */
function splitCommand(argv) {
  const start = argv.indexOf("--stdio");
  if (start < 0) return { own: argv, command: [] };
  let end = start + 1;
  while (end < argv.length && !OPTIONS.includes(argv[end])) end += 1;
  return { own: [...argv.slice(0, start), ...argv.slice(end)], command: argv.slice(start + 1, end) };
}

function parseHeader(text) {
  const match = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(text);
  if (!match) throw new UsageError(`--header: expected 'Name: value', got '${text}'`);
  return [match[1], match[2]];
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function isStep(step) {
  if (!isObject(step) || Object.keys(step).length !== 1) return false;
  if ("list" in step) return isObject(step.list) && Object.keys(step.list).length === 0;
  if (!isObject(step.call)) return false;
  const { name, arguments: args = {}, ...rest } = step.call;
  return typeof name === "string" && isObject(args) && Object.keys(rest).length === 0;
}

function parseScript(text) {
  if (text === undefined) throw new UsageError("--script JSON is required");
  let steps;
  try {
    steps = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--script: not JSON: ${error.message}`);
  }
  if (!Array.isArray(steps)) throw new UsageError("--script: expected a list of steps");
  const wrong = steps.findIndex((step) => !isStep(step));
  if (wrong >= 0) {
    const shapes = '{"list":{}} or {"call":{"name":"...","arguments":{...}}}';
    throw new UsageError(`--script: step ${wrong} must be ${shapes}`);
  }
  return steps;
}

function parseValues(own) {
  const text = { type: "string" };
  const options = { url: text, era: text, header: { ...text, multiple: true }, timeout: text, script: text };
  try {
    return parseArgs({ args: own, options }).values;
  } catch (error) {
    throw new UsageError(error.message);
  }
}

function parseOptions(argv, eras) {
  const { own, command } = splitCommand(argv);
  const { url, era = eras[0], header = [], timeout = DEFAULT_TIMEOUT_SECONDS, script } = parseValues(own);
  if (Boolean(url) === command.length > 0) {
    throw new UsageError("name the server with either --url URL or --stdio CMD ARGS...");
  }
  if (url && !/^https?:\/\/./.test(url)) {
    throw new UsageError(`--url must begin with http:// or https://, got '${url}'`);
  }
  if (header.length > 0 && !url) {
    throw new UsageError("--header needs --url: a stdio server reads no headers");
  }
  if (!eras.includes(era)) throw new UsageError(`--era: this client speaks ${eras.join(", ")}; got '${era}'`);
  if (!(Number(timeout) > 0)) throw new UsageError("--timeout must be a positive number of seconds");
  return {
    url,
    command,
    era,
    headers: Object.fromEntries(header.map(parseHeader)),
    timeout: Number(timeout) * 1000,
    steps: parseScript(script),
  };
}

function openTransport(sdk, { url, command, headers }) {
  if (url) return new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  // The SDK would hide most variables; a test sets the server's environment through ours.
  return new sdk.StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env });
}

/**
 * Keeps the last JSON-RPC error that arrived. The SDKs raise the same classes for what they find
 * themselves (a timeout, a result that breaks its schema), and only one of the two is an answer.
 */
function watchErrors(transport) {
  const watch = { last: undefined };
  const deliver = transport.onmessage;
  transport.onmessage = (message, extra) => {
    if (message.error) watch.last = message.error;
    deliver?.(message, extra);
  };
  return watch;
}

async function listTools(sdk, client, timeout) {
  const definitions = [];
  let cursor;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const result = await sdk.listTools(client, cursor && { cursor }, timeout);
    definitions.push(...result.tools);
    cursor = result.nextCursor;
    if (cursor === undefined) return { tools: definitions.map((tool) => tool.name), definitions };
  }
  throw new Error(`tools/list did not end after ${MAX_PAGES} pages`);
}

async function callTool(sdk, client, call, timeout) {
  const result = await sdk.callTool(client, call, timeout);
  const { isError = false, content = [], structuredContent, _meta } = result;
  return { isError, content, structuredContent, _meta };
}

async function play(sdk, client, watch, step, timeout) {
  watch.last = undefined;
  try {
    if (step.list) return await listTools(sdk, client, timeout);
    return await callTool(sdk, client, step.call, timeout);
  } catch (error) {
    if (watch.last === undefined || watch.last.code !== error.code) throw error;
    return { error: watch.last };
  }
}

async function playAll(sdk, client, watch, { steps, timeout }) {
  const seen = [];
  for (const step of steps) {
    try {
      seen.push(await play(sdk, client, watch, step, timeout));
    } catch (error) {
      throw new Error(`step ${seen.length} ${JSON.stringify(step)}: ${describe(error)}`);
    }
  }
  return seen;
}

async function run(sdk, options) {
  const client = sdk.newClient({ name: sdk.program, version: "0" }, options.era);
  const transport = openTransport(sdk, options);
  try {
    await client.connect(transport, { timeout: options.timeout });
    const seen = {
      protocol: sdk.protocolVersion(client, transport),
      server: client.getServerVersion() ?? null,
      instructions: client.getInstructions() ?? null,
      steps: await playAll(sdk, client, watchErrors(transport), options),
    };
    if (transport.sessionId) await transport.terminateSession();
    return seen;
  } finally {
    await client.close();
  }
}

/**
 * Runs one client from its command line. `sdk` names the SDK's classes and the calls in which the
 * generations differ; the first of `sdk.eras` is the default.
 */
export async function main(sdk) {
  try {
    const seen = await run(sdk, parseOptions(process.argv.slice(2), sdk.eras));
    process.stdout.write(`${JSON.stringify(seen)}\n`);
  } catch (error) {
    process.stderr.write(`${sdk.program}: ${describe(error)}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}
