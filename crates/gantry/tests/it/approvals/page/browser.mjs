// Runs the script of the page with a small stand-in for a browser, and prints what the page shows in the end.
//
// Standard input is a job: the address of the server, the path and the text of the page, its script, a key to type, and
// steps: {click: id}, {type: [id, text]}, {wait: [id, text]}, {meanwhile: {path, key, body}}, {deaf: true}.

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const job = JSON.parse(Buffer.concat(chunks).toString('utf8'));
const PATIENCE = 20000;

class Node {
  constructor(tag, id) { Object.assign(this, { tag, id, children: [], hidden: false, value: '', className: '', disabled: false, listeners: {} }); }
  append(...parts) { this.children.push(...parts); }
  replaceChildren(...parts) { this.children = parts; }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  focus() {}
  get textContent() { return this.children.map((part) => part instanceof Node ? part.shown : String(part)).join(''); }
  set textContent(text) { this.children = [String(text)]; }
  get shown() { return this.tag === 'mark' ? `[${this.textContent}]` : this.textContent; }
  fire(name) { return this.listeners[name]?.({ preventDefault() {} }); }
}

// Every element of the page that has an id, hidden as it says, in the order of the page.
const byId = new Map();
for (const [tag, name, id] of job.page.split('<script')[0].matchAll(/<(\w+)[^>]*?\bid="(\w+)"[^>]*>/g)) {
  byId.set(id, Object.assign(new Node(name, id), { hidden: /\bhidden\b/.test(tag) }));
}
const form = new Node('form'), list = new Node('ul'), stored = new Map();
const queries = { '#door form': form, '#list ul': list };
globalThis.document = {
  title: '',
  getElementById: (id) => byId.get(id) ?? (() => { throw new Error(`the page has no ${id}`); })(),
  createElement: (tag) => new Node(tag),
  querySelector: (query) => queries[query] ?? (() => { throw new Error(`no stand-in for ${query}`); })(),
  querySelectorAll: () => ['yes', 'edit', 'no', 'session', 'always'].map((id) => byId.get(id)),
};
globalThis.location = { pathname: job.path };
globalThis.sessionStorage = {
  getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => stored.set(key, value), removeItem: (key) => stored.delete(key),
};
globalThis.setInterval = () => 0;

const plain = fetch;
let deaf = false, open = 0;
globalThis.fetch = async (path, options) => {
  const waits = path.includes('wait=');
  // One who does not hear of changes still sees what he asks for himself.
  if (waits && deaf) return new Promise(() => {});
  if (!waits) open++;
  try {
    const answer = await plain(job.origin + path, options);
    // Also what was asked before he became deaf.
    return waits && deaf ? new Promise(() => {}) : answer;
  } finally { if (!waits) open--; }
};

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
async function until(what, holds) {
  for (const end = Date.now() + PATIENCE; !holds();) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await pause(10);
  }
}
const settled = async () => {
  await until('the page is quiet', () => open === 0);
  await pause(50);
  await until('the page is quiet', () => open === 0);
};
const text = (id) => byId.get(id).textContent;

new Function(job.script)();
byId.get('key').value = job.key;
await form.fire('submit');
await until('it shows something', () => ['one', 'list', 'refused'].some((id) => !byId.get(id).hidden));
await settled();

for (const step of job.steps) {
  if (step.deaf) deaf = true;
  if (step.type) byId.get(step.type[0]).value = step.type[1];
  if (step.wait) await until(step.wait.join(' says '), () => text(step.wait[0]) === step.wait[1]);
  if (step.meanwhile) {
    const { path, key, body } = step.meanwhile;
    const answer = await plain(job.origin + path, { method: 'POST', headers: { Authorization: `Bearer ${key}` }, body: JSON.stringify(body) });
    if (answer.status !== 200) throw new Error(await answer.text());
  }
  if (step.click) {
    const button = byId.get(step.click);
    if (button.hidden || button.disabled) throw new Error(`${step.click} cannot be clicked`);
    await button.fire('click');
    await settled();
  }
}
if (text('state').match(/about to run|running/)) await until('it is over', () => !text('state').match(/about to run|running/));

const nodes = [...byId.values()];
const sections = ['door', 'refused', 'list', 'one', 'actions', 'editor', 'instead', 'fault', 'outcome', 'again', 'lost'];
process.stdout.write(JSON.stringify({
  texts: Object.fromEntries(nodes.map((node) => [node.id, node.textContent])),
  values: Object.fromEntries(nodes.map((node) => [node.id, node.value])),
  visible: sections.filter((id) => !byId.get(id).hidden).filter((id) => inside(id)),
  links: list.children.map((item) => item.children[0].href),
  stored: [...stored],
}), () => process.exit(0));

// What is in a hidden section is not seen.
function inside(id) {
  const parents = { refused: 'door', actions: 'one', editor: 'one', instead: 'one', fault: 'one', outcome: 'one', again: 'one' };
  return !parents[id] || !byId.get(parents[id]).hidden;
}
