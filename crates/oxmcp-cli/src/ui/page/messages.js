// @ts-check
// The messages on the wire, with their times: filtered, copied, and sent again.
import { MAX_ROWS, button, chip, copyButton, duration, eachFrame, fill, h, showNewest, size, visible } from './dom.js';
import { jsonTree } from './json.js';
import { runInto } from './results.js';
import { Section } from './section.js';
import { store } from './store.js';

/** @typedef {import('./store.js').Message} Message */

/** @type {[string, string][]} */
const KINDS = [['request', 'Requests'], ['response', 'Responses'], ['error', 'Errors'], ['notification', 'Notifications'], ['unknown', 'Other']];
/** The requests that a client can send again. */
const AGAIN = /^(ping|server\/discover|completion\/complete|logging\/setLevel|(tools|prompts|resources)\/(list|call|get|read|templates\/list)|tasks\/(get|list|result|cancel))$/;

class Messages extends Section {
  #hidden = new Set();
  #filter = h('input', { type: 'search', placeholder: 'Filter by method, id or text', 'aria-label': 'filter messages', autocomplete: 'off' });
  #rows = h('ol', { class: 'messages', 'aria-label': 'messages', tabindex: '0' });
  #count = h('span', { class: 'muted', role: 'status' });
  #replay = h('div', { class: 'replay' });
  #since = 0;

  connectedCallback() {
    const render = eachFrame(() => this.#render());
    const toggles = KINDS.map(([kind, name]) => {
      const made = button(name, () => {
        if (this.#hidden.has(kind)) this.#hidden.delete(kind);
        else this.#hidden.add(kind);
        made.setAttribute('aria-pressed', String(!this.#hidden.has(kind)));
        render();
      }, { class: 'toggle', 'aria-pressed': 'true' });
      return made;
    });
    const clear = button('Clear', () => {
      this.#since = this.server.messages.at(-1)?.number ?? 0;
      render();
    }, { class: 'quiet' });
    const all = copyButton(() => this.#matching().map((it) => `${store.time(it.at)} ${it.isSent ? '->' : '<-'} ${it.text}`).join('\n'), 'Copy all');
    this.replaceChildren(h('div', { class: 'page wide' }, h('div', { class: 'row tools-row' }, this.#filter, ...toggles, h('span', { class: 'space' }), this.#count, all, clear), this.#replay, this.#rows));
    this.#filter.addEventListener('input', render);
    this.hear('messages', render);
    this.#render();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    for (const it of this.server.messages) delete it.row;
  }

  #matching() {
    const wanted = this.#filter.value.trim().toLowerCase();
    return this.server.messages.filter((it) => it.number > this.#since && !this.#hidden.has(it.kind)
      && (!wanted || it.method.toLowerCase().includes(wanted) || JSON.stringify(it.id) === wanted || it.text.toLowerCase().includes(wanted)));
  }

  #render() {
    const all = this.#matching();
    showNewest(this.#rows, all, (it) => this.#shown(it), 'No messages.');
    this.#count.textContent = all.length > MAX_ROWS ? `${MAX_ROWS} of ${all.length}` : `${all.length}`;
  }

  /** @param {Message} it */
  #shown(it) {
    const row = it.row ??= this.#row(it);
    // The answer of a request was not there when its row was made.
    const place = row.querySelector('.latency');
    if (place && !place.textContent && it.micros !== undefined) place.textContent = duration(it.micros);
    return row;
  }

  /** @param {Message} it */
  #row(it) {
    const body = h('div', { class: 'message-body' });
    const details = h('details', { class: `message ${it.kind} ${it.isSent ? 'sent' : 'received'}` },
      h('summary', {},
        h('time', {}, store.time(it.at)),
        h('span', { class: 'direction', role: 'img', 'aria-label': it.isSent ? 'sent' : 'received' }, it.isSent ? '→' : '←'),
        h('span', { class: 'method' }, visible(it.method || (it.message ? 'message' : 'text'))),
        h('span', { class: 'kind' }, it.kind),
        h('span', { class: 'id' }, it.id === undefined ? '' : visible(JSON.stringify(it.id)).slice(0, 40)),
        h('span', { class: 'preview' }, visible(previewOf(it))),
        h('span', { class: 'latency' }),
        h('span', { class: 'size' }, size(it.text.length))),
      body);
    details.addEventListener('toggle', () => {
      if (!details.open || body.hasChildNodes()) return;
      const canSend = it.kind === 'request' && it.isSent && AGAIN.test(it.method);
      fill(body, h('div', { class: 'actions' }, copyButton(() => it.text), canSend && button('Send again…', () => this.#again(it))),
        it.message ? jsonTree(it.message, { open: 3, copy: false }) : h('pre', { class: 'code' }, visible(it.text)));
    });
    return h('li', {}, details);
  }

  /** @param {Message} it */
  #again(it) {
    const { _meta, ...params } = it.message.params ?? {};
    const text = h('textarea', { class: 'code', rows: 6, spellcheck: 'false', 'aria-label': 'parameters' });
    text.value = JSON.stringify(params, null, 2);
    const problem = h('p', { class: 'problem', role: 'alert' });
    const results = h('div', { class: 'cards' });
    const { server } = this;
    const send = () => {
      let written;
      try {
        written = JSON.parse(text.value || '{}');
      } catch (error) {
        problem.textContent = `This is not JSON: ${/** @type {Error} */ (error).message}`;
        return;
      }
      runInto(server, { kind: 'send', method: it.method, params: written }, { cards: results, problem, read: () => {}, max: 1 });
    };
    fill(this.#replay, h('section', { class: 'block', 'aria-label': 'send again' },
      h('div', { class: 'row' }, chip('send again', 'accent'), h('code', {}, visible(it.method)), h('span', { class: 'space' }), button('Close', () => this.#replay.replaceChildren(), { class: 'quiet' })),
      text, problem, h('div', { class: 'actions' }, button('Send', send, { class: 'primary' })), results));
    text.focus();
  }
}

/** @param {Message} it */
function previewOf({ message, text, method }) {
  if (!message) return text.slice(0, 160);
  const params = message.params;
  if (method === 'tools/call' && params) return `${params.name} ${JSON.stringify(params.arguments ?? {})}`.slice(0, 160);
  if (params?.uri ?? params?.name) return String(params.uri ?? params.name);
  if (message.error) return `${message.error.code} ${message.error.message}`.slice(0, 160);
  if (params?.data !== undefined) return JSON.stringify(params.data).slice(0, 160);
  return '';
}

customElements.define('ox-messages', Messages);
