// @ts-check
// The API of the program: requests with the token, and the stream of events.

const KEY = 'oxmcp-token';

const ONCE = 'once-';

let token = sessionStorage.getItem(KEY) ?? '';
let isKept = true;

/** Takes the token from the fragment of the URL, or exchanges the code there for it. The fragment leaves the address bar. */
const brought = (async () => {
  const fragment = location.hash.slice(1);
  if (!fragment) return;
  history.replaceState(null, '', location.pathname);
  if (fragment.startsWith(ONCE)) {
    const code = fragment.slice(ONCE.length);
    const response = await fetch('/api/open', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code }) });
    // A page that is loaded again has the token already.
    if (!response.ok) return;
    token = (await response.json()).token;
  } else {
    token = fragment;
  }
  isKept = false;
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
 * @param {boolean} [outlives] whether it is sent even if the page is left meanwhile
 */
async function send(path, body, outlives = false) {
  await brought;
  const isText = typeof body === 'string';
  const response = await fetch(`/api/${path}`, {
    method: 'POST',
    keepalive: outlives,
    headers: { 'x-oxmcp-token': token, 'content-type': isText ? 'text/plain' : 'application/json' },
    body: isText ? body : JSON.stringify(body ?? {}),
  });
  if (!response.ok) throw new Refused(response.status, await response.text() || `the program answered with ${response.status}`);
  if (!isKept) {
    // It has proved to be the token, and survives a reload.
    sessionStorage.setItem(KEY, token);
    isKept = true;
  }
  return response;
}

/**
 * Sends a request, and returns its answer.
 * @param {string} path
 * @param {unknown} [body]
 * @param {boolean} [outlives] whether it is sent even if the page is left meanwhile
 * @returns {Promise<any>}
 */
export async function post(path, body, outlives) {
  const response = await send(path, body, outlives);
  return response.status === 204 ? null : response.json();
}

/**
 * Reads the events from a number on, until the program ends. Calls `gap` if some were dropped before they could be read.
 * @param {number} from
 * @param {(event: any, size: number) => void} receive
 * @param {() => void} gap
 * @returns {Promise<number>} the number after the last event
 */
export async function events(from, receive, gap) {
  const response = await send('events', { from });
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  /** @type {string[]} the beginning of a block, in parts: they are joined when it is whole */
  let begun = [];
  let next = from;
  try {
    for (;;) {
      const part = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (part.done) return next;
      const text = decoder.decode(part.value, { stream: true });
      if (!text) continue;
      const isWhole = text.includes('\n\n') || text.startsWith('\n') && begun.at(-1)?.endsWith('\n');
      begun.push(text);
      if (!isWhole) continue;
      const blocks = begun.join('').split('\n\n');
      begun = [blocks.pop() ?? ''];
      for (const block of blocks) {
        if (block.startsWith('data: ')) {
          // An event that cannot be shown must not stop the others, and is not read again.
          next += 1;
          attempt(() => receive(JSON.parse(block.slice(6)), block.length));
        } else if (block.startsWith('id: ')) next = Number(block.slice(4));
        else if (block.startsWith('event: gap')) attempt(gap);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Calls a function, and reports what it throws to the console.
 * @param {() => void} act
 */
export function attempt(act) {
  try {
    act();
  } catch (error) {
    reportError(error);
  }
}
