// The part that the TypeScript clients share: reads the command line, plays the script, prints the JSON line.

import { parseArgs } from "node:util";
import { SHAPES, capabilities, isObject, isStep, listen, play } from "./steps.mjs";

const OPTIONS = [
  ...["--url", "--era", "--header", "--timeout", "--elicit", "--answer", "--when", "--sample", "--log"],
  ...["--tasks", "--script"],
];
const ACTIONS = ["accept", "decline", "cancel"];
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

function parseAnswer(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--answer: not JSON: ${error.message}`);
  }
  if (!isObject(content)) throw new UsageError("--answer: expected an object");
  return content;
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
  if (wrong >= 0) throw new UsageError(`--script: step ${wrong} must be one of ${SHAPES}`);
  return steps;
}

function parseValues(own) {
  const text = { type: "string" };
  const options = Object.fromEntries(OPTIONS.map((option) => [option.slice(2), text]));
  try {
    const special = { header: { ...text, multiple: true }, tasks: { type: "boolean" } };
    return parseArgs({ args: own, options: { ...options, ...special } }).values;
  } catch (error) {
    throw new UsageError(error.message);
  }
}

function parseOptions(argv, { eras, openTasks }) {
  const { own, command } = splitCommand(argv);
  const values = parseValues(own);
  const { url, era = eras[0], header = [], timeout = DEFAULT_TIMEOUT_SECONDS, elicit, sample, log } = values;
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
  if (elicit !== undefined && !ACTIONS.includes(elicit)) {
    throw new UsageError(`--elicit: expected one of ${ACTIONS.join(", ")}; got '${elicit}'`);
  }
  if (values.tasks && !openTasks) throw new UsageError("--tasks: this client knows no tasks");
  return {
    url,
    command,
    era,
    elicit,
    answer: parseAnswer(values.answer ?? "{}"),
    when: values.when,
    tasks: values.tasks ?? false,
    sample,
    log,
    headers: Object.fromEntries(header.map(parseHeader)),
    timeout: Number(timeout) * 1000,
    steps: parseScript(values.script),
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

async function playOne(sdk, client, watch, heard, step, options) {
  watch.last = undefined;
  Object.assign(heard, { asked: [], logged: [], tasks: [] });
  let seen;
  try {
    seen = await play(sdk, client, step, options, heard);
  } catch (error) {
    if (watch.last === undefined || watch.last.code !== error.code) throw error;
    seen = { error: watch.last };
  }
  for (const [name, list] of Object.entries(heard)) if (list.length > 0) seen[name] = list;
  return seen;
}

async function playAll(sdk, client, watch, heard, { steps, timeout, log, taskSession }) {
  const options = { timeout, taskSession, ...(log && sdk.isModern(client) && { log }) };
  const seen = [];
  for (const step of steps) {
    try {
      seen.push(await playOne(sdk, client, watch, heard, step, options));
    } catch (error) {
      throw new Error(`step ${seen.length} ${JSON.stringify(step)}: ${describe(error)}`);
    }
  }
  return seen;
}

async function run(sdk, options) {
  const heard = { asked: [], logged: [], tasks: [] };
  const info = { name: sdk.program, version: "0" };
  const client = sdk.newClient(info, capabilities(options), options.era);
  listen(sdk, client, options, heard);
  const transport = openTransport(sdk, options);
  try {
    await client.connect(transport, { timeout: options.timeout });
    if (options.log && !sdk.isModern(client)) await client.setLoggingLevel(options.log);
    const taskSession = options.tasks && sdk.openTasks(client, transport, info, capabilities(options));
    const seen = {
      protocol: sdk.protocolVersion(client, transport),
      server: client.getServerVersion() ?? null,
      instructions: client.getInstructions() ?? null,
      steps: await playAll(sdk, client, watchErrors(transport), heard, { ...options, taskSession }),
    };
    if (transport.sessionId) await transport.terminateSession();
    return seen;
  } finally {
    heard.over = true;
    await client.close();
  }
}

/**
 * Runs one client from its command line. `sdk` names the SDK's classes and the calls in which the
 * generations differ; the first of `sdk.eras` is the default.
 */
export async function main(sdk) {
  try {
    const seen = await run(sdk, parseOptions(process.argv.slice(2), sdk));
    process.stdout.write(`${JSON.stringify(seen)}\n`);
  } catch (error) {
    process.stderr.write(`${sdk.program}: ${describe(error)}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}
