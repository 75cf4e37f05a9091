// What a page tries that wants to use a Gantry on this machine. `call` is a call that leaves a file behind, `held` the
// path that withdraws a call that waits. Returns what the page could see of each try.
async ({ host, call, held }) => {
  const api = `http://${host}/api/v1/calls`;
  const seen = {};
  const ended = (promise) => promise.then((answer) => `${answer.type} ${answer.status}`, (error) => error.name);
  const post = (url, options) => ended(fetch(url, { method: 'POST', ...options }));
  const json = { 'Content-Type': 'application/json' };
  const form = new FormData();
  form.append('a', call);
  const bodies = {
    text: { body: call }, form: { body: new URLSearchParams({ a: call }) }, multipart: { body: form },
    untyped: { body: new Blob([call]) }, json: { body: call, headers: json },
    typed: { body: new Blob([call], { type: 'application/json' }) },
  };
  for (const [name, options] of Object.entries(bodies)) {
    for (const mode of ['cors', 'no-cors']) {
      seen[`${name} ${mode}`] = await post(api, { ...options, mode });
      seen[`${name} ${mode} unsigned`] = await post(api, { ...options, mode, referrerPolicy: 'no-referrer' });
    }
    await post(`http://${host}/mcp`, { ...options, mode: 'no-cors' });
  }
  seen.withdrawn = await post(`http://${host}${held}`, { mode: 'no-cors' });
  navigator.sendBeacon(api, call);
  navigator.sendBeacon(api, new Blob([call], { type: 'text/plain' }));
  // A form whose text is JSON, and one without fields.
  const [before, after] = call.split('=');
  for (const fields of [{ [before]: after }, {}]) {
    const frame = document.createElement('iframe');
    const form = document.createElement('form');
    frame.name = form.target = `frame${Object.keys(fields).length}`;
    document.body.append(frame, form);
    Object.assign(form, { method: 'post', action: api, enctype: 'text/plain' });
    for (const [name, value] of Object.entries(fields)) {
      form.append(Object.assign(document.createElement('input'), { name, value }));
    }
    await new Promise((loaded) => { frame.onload = loaded; form.submit(); });
  }
  // A frame without an origin of its own.
  const frame = document.createElement('iframe');
  frame.sandbox = 'allow-scripts';
  const sent = JSON.stringify({ method: 'POST', mode: 'no-cors', body: call });
  frame.srcdoc = `<script>fetch(${JSON.stringify(api)}, ${sent})
    .then((answer) => answer.type + ' ' + answer.status, (error) => error.name)
    .then((seen) => parent.postMessage(seen, '*'))</` + 'script>';
  seen.sandboxed = await new Promise((done) => {
    addEventListener('message', ({ data }) => done(data), { once: true });
    document.body.append(frame);
  });
  const socket = new WebSocket(`ws://${host}/ws`, 'mcp');
  const message = (id, method, params) => JSON.stringify({ jsonrpc: '2.0', id, method, params });
  const hello = message(1, 'initialize', {
    protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'page', version: '1' },
  });
  const tool = JSON.parse(call);
  const use = message(2, 'tools/call', { name: tool.tool, arguments: tool.arguments });
  seen.socket = await new Promise((done) => {
    socket.onopen = () => { socket.send(hello); };
    socket.onmessage = ({ data }) => (JSON.parse(data).id === 1 ? socket.send(use) : done('answered'));
    socket.onclose = () => done('closed');
  });
  const events = new EventSource(`http://${host}/sse`);
  seen.events = await new Promise((done) => {
    events.addEventListener('endpoint', () => done('open'));
    events.onerror = () => done('closed');
  });
  events.close();
  return seen;
}
