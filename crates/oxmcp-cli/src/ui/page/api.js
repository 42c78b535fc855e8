// @ts-check
// The API of the program: requests with the token, and the stream of events.

const KEY = 'oxmcp-token';

/** The token, which the fragment of the URL has brought. It leaves the address bar, and survives a reload. */
const token = (() => {
  const brought = location.hash.slice(1);
  if (brought) {
    sessionStorage.setItem(KEY, brought);
    history.replaceState(null, '', location.pathname);
  }
  return brought || sessionStorage.getItem(KEY) || '';
})();

/** A request that the program has refused. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} path
 * @param {unknown} body
 */
async function send(path, body) {
  const isText = typeof body === 'string';
  const response = await fetch(`/api/${path}`, {
    method: 'POST',
    headers: { 'x-oxmcp-token': token, 'content-type': isText ? 'text/plain' : 'application/json' },
    body: isText ? body : JSON.stringify(body ?? {}),
  });
  if (!response.ok) throw new Refused(response.status, await response.text() || `the program answered with ${response.status}`);
  return response;
}

/**
 * Sends a request, and returns its answer.
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>}
 */
export async function post(path, body) {
  const response = await send(path, body);
  return response.status === 204 ? null : response.json();
}

/**
 * Reads the events from a number on, until the program ends. Calls `gap` if some were dropped before they could be read.
 * @param {number} from
 * @param {(event: any) => void} receive
 * @param {() => void} gap
 * @returns {Promise<number>} the number after the last event
 */
export async function events(from, receive, gap) {
  const response = await send('events', { from });
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let [rest, next] = ['', from];
  for (;;) {
    const part = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (part.done) return next;
    const blocks = (rest + decoder.decode(part.value, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      if (block.startsWith('data: ')) receive(JSON.parse(block.slice(6)));
      else if (block.startsWith('id: ')) next = Number(block.slice(4));
      else if (block.startsWith('event: gap')) gap();
    }
  }
}
