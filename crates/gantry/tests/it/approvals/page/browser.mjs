// A browser that does what it is told: it reads a step per line, and answers each with a line.
//
// Steps: {open: url, deaf}, {click: selector}, {type: [selector, text]}, {see: [selector, text]}. The last one waits until
// the page shows that text there, and is answered with what the page shows then. {run: [url, text]} opens a page whose
// faults do not matter, and is answered with the value of that expression there. The argument is the browser's program.
// The browser ends with the input.

import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const PATIENCE = 20_000;
const browser = await chromium.launch({ executablePath: process.argv[1], args: ['--no-proxy-server'] });
let page = null;
const faults = [];

// The browser reports each refusal of the API, which the page itself tells the person about. All else is a fault.
const isRefusal = (message) =>
  /^Failed to load resource: the server responded with a status of 4\d\d/.test(message.text()) &&
  new URL(message.location().url).pathname.startsWith('/api/v1/');

// Opens a page as somebody new, who is told of no later change if deaf.
async function open(url, deaf) {
  await page?.context().close();
  const context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE);
  if (deaf) await context.route((asked) => asked.searchParams.has('wait'), () => {});
  page = await context.newPage();
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !isRefusal(message)) faults.push(message.text());
  });
  await page.goto(url);
}

async function run(url, text) {
  await page?.context().close();
  page = await (await browser.newContext()).newPage();
  await page.goto(url);
  return page.evaluate(text);
}

// What can be seen on the page, by the ids of its elements, and what it has kept.
const look = () => page.evaluate(() => {
  const visible = [...document.querySelectorAll('[id]')].filter((element) => element.checkVisibility());
  const all = (query, pick) => [...document.querySelectorAll(query)].map(pick);
  return {
    texts: Object.fromEntries(visible.map((element) => [element.id, element.innerText])),
    values: Object.fromEntries(visible.map((element) => [element.id, element.value])),
    marks: all('#arguments mark', (mark) => mark.innerText),
    links: all('#list a', (link) => link.getAttribute('href')),
    kept: { tab: Object.entries(sessionStorage), beyond: [...Object.entries(localStorage), document.cookie].join('') },
  };
});

async function perform(step) {
  if (step.run) return run(...step.run);
  if (step.open) await open(step.open, step.deaf);
  if (step.click) await page.locator(step.click).click();
  if (step.type) {
    const field = page.locator(step.type[0]);
    await field.clear();
    await field.pressSequentially(step.type[1]);
  }
  if (!step.see) return null;
  await page.locator(step.see[0], { hasText: step.see[1] }).waitFor();
  return look();
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await perform(JSON.parse(line)).then((shown) => ({ shown }), (error) => ({ failed: String(error) }));
  process.stdout.write(JSON.stringify({ ...answer, faults }) + '\n');
}
await browser.close();
// Also what went wrong after the last step.
if (faults.length) throw new Error(faults.join('\n'));
