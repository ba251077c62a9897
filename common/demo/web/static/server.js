// Requests to the server of the page.

export class Gone extends Error {} // the server no longer has a file

// A name for this tab: the server keeps the last result of each.
const tab = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16)).join('');

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw error.name === 'AbortError' ? error : new Error('the server does not answer: is it still running?');
  }
  if (response.ok) return response;
  const { error } = await response.json();
  throw response.status === 404 ? new Gone(error) : new Error(error);
}

export const about = async () => (await send('/about')).json();

export const getFile = (address) => send(address);

// file: {name, body}. what: further parts of the address. signal: of an AbortController.
export function post(path, file, what = {}, signal = undefined) {
  const query = new URLSearchParams({ name: file.name, tab, ...what });
  return send(`${path}?${query}`, { method: 'POST', body: file.body, signal });
}

// The lines of an answer that comes piece by piece, each of them JSON.
export async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw error.name === 'AbortError' ? error : new Error('the server has ended in the middle of its answer');
    });
    if (done) return;
    const parts = (text + value).split('\n');
    text = parts.pop();
    for (const part of parts) yield JSON.parse(part);
  }
}
