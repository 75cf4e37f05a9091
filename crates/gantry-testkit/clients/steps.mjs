// What the TypeScript clients can be told to do, step by step, and what they answer when a server asks them something.

import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_MS = 20;
const MAX_PAGES = 100;
const LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel";

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value) => typeof value === "string";
const isFlag = (value) => typeof value === "boolean";
const optional = (check) => (value) => value === undefined || check(value);

/** The keys of each step, and what may stand there. */
const STEPS = {
  list: {},
  resources: {},
  templates: {},
  prompts: {},
  call: { name: isText, arguments: optional(isObject), progress: optional(isFlag), cancel: optional(isFlag) },
  read: { uri: isText },
  prompt: { name: isText, arguments: optional(isObject) },
  complete: { ref: isObject, argument: isObject },
  request: { method: isText, params: optional(isObject) },
};

/** Whether a step has one of the known shapes. */
export function isStep(step) {
  if (!isObject(step) || Object.keys(step).length !== 1) return false;
  const [[name, params]] = Object.entries(step);
  const checks = STEPS[name];
  if (!checks || !isObject(params)) return false;
  const known = Object.keys(params).every((key) => key in checks);
  return known && Object.entries(checks).every(([key, check]) => check(params[key]));
}

/** The shapes in words. */
export const SHAPES = Object.entries(STEPS)
  .map(([name, checks]) => `{"${name}":{${Object.keys(checks).join(",")}}}`)
  .join(", ");

/** What a person who changes nothing would send: every default, and something for what is required without one. */
function fill({ properties = {}, required = [] }) {
  const simplest = { string: "text", integer: 1, number: 1, boolean: true, array: [] };
  const value = (field) => field.default ?? field.enum?.[0] ?? field.oneOf?.[0]?.const ?? simplest[field.type];
  const filled = Object.entries(properties).filter(
    ([name, field]) => field.default !== undefined || required.includes(name),
  );
  return Object.fromEntries(filled.map(([name, field]) => [name, value(field)]));
}

/** The capabilities of a client that answers what the options say. */
export function capabilities({ elicit, sample, tasks }) {
  return {
    ...(tasks && { extensions: { "io.modelcontextprotocol/tasks": {} } }),
    ...(elicit && { elicitation: { form: {}, url: {} } }),
    ...(sample !== undefined && { sampling: {} }),
  };
}

/** Answers questions as the options say, and keeps them and the log messages in `heard`. */
export function listen(sdk, client, { elicit, answer, when, sample }, heard) {
  const handle = (method, answer) =>
    sdk.handle(client, method, (params) => {
      heard.asked.push({ method, params });
      return answer(params);
    });
  if (elicit) {
    handle("elicitation/create", async (params) => {
      // Who waits for the file must not keep a client alive that has played everything.
      while (when && !heard.over && !existsSync(when)) await sleep(LOOK_MS);
      const form = elicit === "accept" && params.mode !== "url";
      return { action: elicit, ...(form && { content: { ...fill(params.requestedSchema), ...answer } }) };
    });
  }
  if (sample !== undefined) {
    handle("sampling/createMessage", () => ({
      role: "assistant",
      content: { type: "text", text: sample },
      model: "scripted",
      stopReason: "endTurn",
    }));
  }
  sdk.onLog(client, (params) => heard.logged.push(params));
}

async function pages(list, key) {
  const items = [];
  let cursor;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const result = await list(cursor === undefined ? undefined : { cursor });
    items.push(...result[key]);
    cursor = result.nextCursor;
    if (cursor === undefined) return items;
  }
  throw new Error(`a list did not end after ${MAX_PAGES} pages`);
}

/** Calls a tool, and asks for what becomes of it until it is over if it became a task. */
async function callAsTask(session, { name, arguments: args, cancel }, heard) {
  const execution = await session.callTool(name, args);
  if (cancel) await execution.cancel();
  const onEvent = (event) => event.type === "task" && heard.tasks.push(event.task.raw);
  const { outcome } = await execution.settle({ onEvent });
  if (outcome.status === "cancelled") return { cancelled: true };
  if (outcome.status === "failed") throw outcome.error;
  const { isError = false, content = [], structuredContent, _meta } = outcome.result;
  return { isError, content, structuredContent, _meta };
}

async function call(sdk, client, { name, arguments: args, progress, cancel }, options) {
  const { log, taskSession: _, ...rest } = options;
  const seen = [];
  const withdrawal = new AbortController();
  const onprogress = (report) => {
    seen.push(report);
    if (cancel) withdrawal.abort("the script says so");
  };
  const watched = progress || cancel ? { ...rest, onprogress, signal: withdrawal.signal } : rest;
  const meta = log && { _meta: { [LOG_LEVEL_KEY]: log } };
  const params = { name, ...(args && { arguments: args }), ...meta };
  try {
    const result = await sdk.callTool(client, params, watched);
    const { isError = false, content = [], structuredContent, _meta } = result;
    return { isError, content, structuredContent, _meta, ...(progress && { progress: seen }) };
  } catch (error) {
    if (!withdrawal.signal.aborted) throw error;
    return { cancelled: true, progress: seen };
  }
}

/** Plays one step. `options` are those of a request, and `log`, the level that a modern call asks for. */
export async function play(sdk, client, step, options, heard) {
  const { log: _, taskSession, ...rest } = options;
  const [[name, params]] = Object.entries(step);
  switch (name) {
    case "list": {
      const definitions = await pages((page) => sdk.listTools(client, page, rest), "tools");
      return { tools: definitions.map((tool) => tool.name), definitions };
    }
    case "resources":
      return { resources: await pages((page) => client.listResources(page, rest), "resources") };
    case "templates":
      return { templates: await pages((page) => client.listResourceTemplates(page, rest), "resourceTemplates") };
    case "prompts":
      return { prompts: await pages((page) => client.listPrompts(page, rest), "prompts") };
    case "read":
      return { contents: (await client.readResource(params, rest)).contents };
    case "prompt":
      return { messages: (await client.getPrompt(params, rest)).messages };
    case "complete":
      return { completion: (await client.complete(params, rest)).completion };
    case "request":
      return { result: await sdk.request(client, params, rest) };
    default:
      return taskSession ? callAsTask(taskSession, params, heard) : call(sdk, client, params, options);
  }
}
