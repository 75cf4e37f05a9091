// What the TypeScript clients can be told to do, step by step, and what they answer when a server asks them something.

const MAX_PAGES = 100;
const LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel";

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
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
export function capabilities({ elicit, sample }) {
  return {
    ...(elicit && { elicitation: { form: {}, url: {} } }),
    ...(sample !== undefined && { sampling: {} }),
  };
}

/** Answers questions as the options say, and keeps them and the log messages in `heard`. */
export function listen(sdk, client, { elicit, sample }, heard) {
  const handle = (method, answer) =>
    sdk.handle(client, method, (params) => {
      heard.asked.push({ method, params });
      return answer(params);
    });
  if (elicit) {
    handle("elicitation/create", (params) => {
      const form = elicit === "accept" && params.mode !== "url";
      return { action: elicit, ...(form && { content: fill(params.requestedSchema) }) };
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

async function call(sdk, client, { name, arguments: args, progress, cancel }, options) {
  const { log, ...rest } = options;
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
export async function play(sdk, client, step, options) {
  const { log: _, ...rest } = options;
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
    default:
      return call(sdk, client, params, options);
  }
}
