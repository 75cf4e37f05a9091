// What Gantry's own page may do: the same call as JSON, a socket, and the event stream.
async ({ host, call }) => {
  const post = async (type) => {
    const options = { method: 'POST', headers: { 'Content-Type': type }, body: call };
    return (await fetch(`http://${host}/api/v1/calls`, options)).status;
  };
  const seen = { json: await post('application/json'), text: await post('text/plain') };
  const socket = new WebSocket(`ws://${host}/ws`, 'mcp');
  seen.socket = await new Promise((done) => {
    socket.onopen = () => done('open');
    socket.onerror = () => done('closed');
  });
  const events = new EventSource(`http://${host}/sse`);
  seen.events = await new Promise((done) => {
    events.addEventListener('endpoint', () => done('open'));
    events.onerror = () => done('closed');
  });
  events.close();
  return seen;
}
