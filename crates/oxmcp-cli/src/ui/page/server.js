// @ts-check
// One server: its sections, and the one that is shown.
import { post } from './api.js';
import { arrows, attempted, button, chip, eachFrame, failure, fill, h, visible } from './dom.js';
import { ask } from './questions.js';
import { resultCard } from './results.js';
import { Section } from './section.js';
import { isRunning, store } from './store.js';

/** @typedef {import('./store.js').Server} Server */
/** @typedef {{ key: string, title: string, text?: string, marks?: any[] }} Entry an entry of a list */

/** @type {[string, string][]} */
const SECTIONS = [
  ['overview', 'Overview'], ['tools', 'Tools'], ['prompts', 'Prompts'], ['resources', 'Resources'], ['activity', 'Activity'],
  ['messages', 'Messages'], ['logs', 'Logs'], ['latency', 'Latency'], ['findings', 'Findings'],
];

/** The servers that the user is asked about. @type {Set<Server>} */
const asking = new Set();

/**
 * Connects to a server, after the user has agreed to start its program, or to send values to its address, and has answered its
 * inputs.
 * @param {Server} server
 * @param {string} [revision]
 */
export async function connect(server, revision) {
  // A second click must not ask again.
  if (asking.has(server)) return;
  asking.add(server);
  try {
    await askAndConnect(server, revision);
  } finally {
    asking.delete(server);
  }
}

/**
 * @param {Server} server
 * @param {string} [revision]
 */
async function askAndConnect(server, revision) {
  /** @type {any} */
  const asked = { server: server.id, revision: revision || undefined };
  for (;;) {
    const answer = await post('connect', asked);
    if (answer.ok) return;
    if (answer.consent !== undefined) {
      const { isProgram } = server.listed;
      const agreed = await ask({
        title: `${isProgram ? 'Start' : 'Connect to'} ${visible(server.listed.label)}?`,
        accept: isProgram ? 'Start' : 'Connect',
        body: [
          h('p', {}, isProgram ? 'This program will run on your machine, with your rights:' : 'Values of your environment will be sent to this address:'),
          h('pre', { class: 'code' }, visible(answer.consent)),
          server.listed.source && h('p', { class: 'muted' }, visible(server.listed.source)),
        ].filter(Boolean),
      });
      if (!agreed) return;
      asked.command = answer.consent;
    } else if (answer.inputs) {
      const properties = Object.fromEntries(answer.inputs.map((/** @type {any} */ it) => [it.id, {
        type: 'string', format: it.isPassword ? 'password' : undefined, description: it.description, default: it.default ?? undefined, enum: it.options.length ? it.options : undefined,
      }]));
      const inputs = await ask({
        title: `Inputs of ${visible(server.listed.label)}`,
        accept: 'Connect',
        body: [h('p', {}, 'The configuration file asks for these values. They are not stored.')],
        form: { type: 'object', properties, required: Object.keys(properties) },
      });
      if (!inputs) return;
      asked.inputs = { ...asked.inputs, ...inputs };
    } else {
      Object.assign(server, { state: 'failed', reason: answer.failed });
      server.changed('state');
      store.changed('servers');
      return;
    }
  }
}

/** @param {Server} server */
function disconnect(server) {
  return post('disconnect', { server: server.id });
}

/** The panel of one server. */
export class ServerPanel extends Section {
  #head = h('header', { class: 'server-head' });
  #nav = h('nav', { class: 'sections', 'aria-label': 'sections of the server' });
  /** @type {any} */
  #tools = null;
  #main = h('main', { class: 'section', tabindex: '-1' });
  // It is made once: a choice must outlive an attempt that has failed.
  #revision = revisionChoice();
  #buttons = new Map(SECTIONS.map(([key, name]) => {
    const count = h('span', { class: 'count' });
    const act = () => {
      this.server.section = key;
      this.server.changed('section');
      this.#main.focus({ preventScroll: true });
    };
    return [key, { made: h('button', { type: 'button', 'data-section': key, onclick: act }, h('span', {}, name), count), count }];
  }));

  connectedCallback() {
    this.replaceChildren(this.#head, h('div', { class: 'server-body' }, this.#nav, this.#main));
    this.#nav.replaceChildren(...[...this.#buttons.values()].map((it) => it.made));
    arrows(this.#nav, 'button');
    const nav = eachFrame(() => this.#sections());
    this.hear('state', () => this.#show());
    this.hear('lists messages logs jobs findings section', nav);
    this.hear('section', () => this.#section());
    this.#show();
  }

  #show() {
    const { server } = this;
    const { facts, listed, state } = server;
    const info = facts?.server;
    const acts = /** @type {Record<string, () => any>} */ ({
      connected: () => button('Disconnect', () => disconnect(server)),
      connecting: () => button('Stop', () => disconnect(server)),
    });
    const isOff = state !== 'connected' && state !== 'connecting';
    fill(this.#head,
      h('h1', {}, visible(server.name)),
      info?.version && h('span', { class: 'muted' }, visible(info.version)),
      facts && chip(facts.revision, 'accent', 'revision of the protocol'),
      facts && h('span', { class: 'muted', title: 'time to connect' }, `${facts.millis} ms`),
      chip(state, { connected: 'good', failed: 'bad', connecting: 'busy' }[state] ?? ''),
      h('code', { class: 'reach', title: visible(listed.reach) }, visible(listed.reach)),
      h('span', { class: 'space' }),
      isOff && this.#revision,
      (acts[state] ?? (() => button('Connect', () => connect(server, this.#revision.querySelector('select').value), { class: 'primary' })))());
    this.#sections();
    this.#section();
  }

  /** Brings the counts up to date. The buttons stay: one that is replaced while it is pressed would not be clicked. */
  #sections() {
    const { server } = this;
    for (const [key, { made, count }] of this.#buttons) {
      if (server.section === key) made.setAttribute('aria-current', 'page');
      else made.removeAttribute('aria-current');
      const [text, kind] = this.#count(key);
      if (count.textContent !== String(text)) count.textContent = String(text);
      count.className = `count ${kind}`;
    }
  }

  /**
   * @param {string} key
   * @returns {[string | number, string]}
   */
  #count(key) {
    const { server } = this;
    switch (key) {
      case 'resources': {
        const all = (server.lists.resources?.length ?? 0) + (server.lists.templates?.length ?? 0);
        return [all || '', ''];
      }
      case 'activity': {
        const running = [...server.jobs.values()].filter((it) => isRunning(it) && isShown(it)).length;
        return [running || '', 'busy'];
      }
      case 'messages':
        return [server.messages.length || '', ''];
      case 'logs':
        return [server.logs.length || '', ''];
      case 'findings': {
        const all = server.findings?.findings.length;
        return [all ?? '', all ? 'bad' : ''];
      }
      default:
        return [server.lists[key]?.length ?? '', ''];
    }
  }

  #section() {
    const { server } = this;
    const needsSession = ['tools', 'prompts', 'resources', 'findings'].includes(server.section);
    if (server.state !== 'connected') {
      this.#tools?.remove();
      this.#tools = null;
    }
    if (needsSession && server.state !== 'connected') {
      fill(this.#main, this.#unconnected());
      return;
    }
    const name = `ox-${server.section}`;
    if (this.#main.firstElementChild?.localName === name && !this.#main.firstElementChild.hasAttribute('hidden')) return;
    // The tools stay, because their apps would begin again.
    for (const it of [...this.#main.children]) {
      if (it === this.#tools) it.setAttribute('hidden', '');
      else it.remove();
    }
    if (server.section === 'tools' && this.#tools) {
      this.#tools.removeAttribute('hidden');
      this.#tools.shown();
      return;
    }
    const element = /** @type {any} */ (document.createElement(name));
    element.server = server;
    if (server.section === 'tools') this.#tools = element;
    this.#main.prepend(element);
  }

  #unconnected() {
    const { server } = this;
    if (server.state === 'connecting') return h('p', { class: 'empty' }, 'Connecting…');
    const reason = server.state === 'failed' && failure(server.reason);
    return h('div', { class: 'empty' }, reason, h('p', {}, server.listed.isProgram ? 'The program is not running.' : 'Not connected.'),
      h('pre', { class: 'code' }, visible(server.listed.reach)), server.listed.source && h('p', { class: 'muted' }, visible(server.listed.source)));
  }
}

/** @param {import('./store.js').Job} job */
const isShown = (job) => !['list', 'complete', 'check', 'level'].includes(job.operation.kind);

/** A choice of the revision to speak. */
function revisionChoice() {
  return h('label', { class: 'inline' }, h('span', { class: 'muted' }, 'revision'),
    h('select', { 'aria-label': 'revision' }, h('option', { value: '' }, 'newest'), ...[...store.revisions].reverse().map((it) => h('option', {}, it))));
}

/**
 * The rows of the entries of a list. An entry that was there keeps its button: one that is replaced while it is pressed would not be
 * clicked.
 * @param {Map<string, HTMLElement>} old
 * @param {Entry[]} entries
 * @param {(key: string) => void} choose
 * @returns {Map<string, HTMLElement>} by the keys of the entries, numbered: a server may give several the same
 */
function entryRows(old, entries, choose) {
  /** @type {Map<string, HTMLElement>} */
  const rows = new Map();
  for (const { key, title, text, marks = [] } of entries) {
    let number = 0;
    while (rows.has(`${number} ${key}`)) number += 1;
    const id = `${number} ${key}`;
    const row = old.get(id) ?? h('li', {}, h('button', { type: 'button', 'data-key': key, onclick: () => choose(key) }));
    rows.set(id, row);
    const shown = text && visible(text).slice(0, 200);
    const content = JSON.stringify([title, shown, marks.map((mark) => mark && mark.textContent)]);
    if (row.dataset.content === content) continue;
    row.dataset.content = content;
    fill(row.firstElementChild, h('span', { class: 'entry-title' }, visible(title)), ...marks, shown && h('span', { class: 'entry-text' }, shown));
  }
  return rows;
}

/**
 * A list beside the entry that is chosen.
 * @param {Server} server
 * @param {string} of
 * @param {{ entries: () => Entry[], find: (key: string) => any,
 *   show: (found: any, key: string) => any, empty: () => any }} options
 */
export function masterDetail(server, of, { entries, find, show, empty }) {
  const filter = h('input', { type: 'search', placeholder: 'Filter', 'aria-label': `filter ${of}`, autocomplete: 'off' });
  const refresh = button('Refresh', () => store.relist(server, of), { class: 'quiet' });
  const list = h('ul', { class: 'entries', 'aria-label': of });
  const detail = h('div', { class: 'detail', tabindex: '-1' });
  const element = h('div', { class: 'master-detail' }, h('div', { class: 'master' }, h('div', { class: 'row' }, filter, refresh), list), detail);
  arrows(list, 'button');
  let shown = '';
  /** @type {Map<string, HTMLElement>} */
  let rows = new Map();
  const note = h('li', { class: 'muted' });
  const choose = (/** @type {string} */ chosen) => {
    server.chosen[of] = chosen;
    render();
    element.classList.add('in-detail');
    detail.focus({ preventScroll: true });
  };
  const back = button('‹ All', () => element.classList.remove('in-detail'), { class: 'back quiet' });
  const render = () => {
    const all = entries();
    const wanted = filter.value.trim().toLowerCase();
    const matching = all.filter((it) => !wanted || `${it.title} ${it.text ?? ''}`.toLowerCase().includes(wanted));
    // A key may be empty: servers choose the names of their tools.
    if (all[0] && !all.some((it) => it.key === server.chosen[of])) server.chosen[of] = all[0].key;
    const current = all.length ? server.chosen[of] : undefined;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    const hasFocus = list.contains(focused);
    rows = entryRows(rows, matching.slice(0, 1000), choose);
    if (matching.length > 1000) fill(note, `The first 1000 of ${matching.length} are shown. Filter for the others.`);
    else fill(note, !matching.length && (all.length ? 'Nothing matches.' : empty()));
    const inOrder = [...rows.values(), note];
    const isSame = inOrder.length === list.children.length && inOrder.every((it, index) => it === list.children[index]);
    if (!isSame) list.replaceChildren(...inOrder);
    if (hasFocus) focused?.focus();
    for (const it of list.querySelectorAll('button')) {
      if (it.dataset.key === current) it.setAttribute('aria-current', 'true');
      else it.removeAttribute('aria-current');
    }
    // A form is not replaced under the hands of its user, unless the definition of its entry has changed.
    const found = current !== undefined && find(current);
    const definition = JSON.stringify([current, found]);
    if (current !== undefined && shown === definition && detail.hasChildNodes()) return;
    shown = definition;
    fill(detail, back, current !== undefined ? attempted(() => show(found, current)) : h('p', { class: 'empty' }, empty()));
  };
  filter.addEventListener('input', render);
  return { element, render };
}

/** The operations of a server that run or are over. */
class Activity extends Section {
  connectedCallback() {
    const { server } = this;
    const cards = h('div', { class: 'cards' });
    const empty = h('p', { class: 'empty' }, 'Calls, reads and tasks appear here, and go on while you do something else.');
    const seen = new Set();
    const show = (/** @type {any} */ job) => {
      if (!isShown(job) || seen.has(job.id)) return;
      seen.add(job.id);
      empty.remove();
      cards.prepend(h('div', {}, resultCard(server, job, { read: (uri) => openResource(server, uri) }),
        job.operation.kind === 'call' && h('details', { class: 'arguments' }, h('summary', {}, 'Arguments'), h('pre', { class: 'code' }, visible(JSON.stringify(job.operation.arguments, null, 2))))));
      while (cards.children.length > 100) cards.lastChild?.remove();
    };
    this.replaceChildren(h('div', { class: 'page' }, h('h2', {}, 'Activity'), empty, cards));
    for (const job of server.jobs.values()) show(job);
    this.hear('jobs', show);
  }
}

/**
 * Reads a resource in its section.
 * @param {Server} server
 * @param {string} uri
 */
export function openResource(server, uri) {
  server.section = 'resources';
  server.chosen.resources = `r:${uri}`;
  server.chosen.read = uri;
  server.changed('section');
}

customElements.define('ox-activity', Activity);
customElements.define('ox-server', ServerPanel);
