// @ts-check
// The page: the servers in tabs, and the one that is shown.
import './findings.js';
import './latency.js';
import './logs.js';
import './messages.js';
import './overview.js';
import './prompts.js';
import './questions.js';
import './resources.js';
import './tools.js';
import { Refused } from './api.js';
import { arrows, fill, h, visible } from './dom.js';
import { ServerPanel, connect } from './server.js';
import { store } from './store.js';

/** The whole page. */
class App extends HTMLElement {
  #tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'servers' });
  #panel = h('div', { class: 'server-panel', role: 'tabpanel', id: 'panel' });
  #problem = h('div', { class: 'banner', role: 'alert', hidden: true });
  /** @type {number | null} */
  #shown = null;
  #begun = new Set();
  /** @type {Map<number, ServerPanel>} */
  #panels = new Map();
  #listed = '';

  connectedCallback() {
    const questions = h('ox-questions', { hidden: true });
    this.replaceChildren(h('header', { class: 'top' }, h('img', { src: 'icon.svg', alt: '', width: 22, height: 22 }), h('strong', { class: 'brand' }, 'oxmcp'), this.#tabs),
      this.#problem, this.#panel, questions);
    arrows(this.#tabs, '[role=tab]');
    store.on('servers', () => this.#show());
    store.on('problem', () => this.#tell(store.problem));
    store.follow().catch((error) => {
      const isForeign = error instanceof Refused && error.status === 401;
      this.#tell(isForeign ? 'This page has no token. Open the whole URL that oxmcp ui has printed.' : `The page does not work: ${error.message}`);
    });
  }

  /** @param {string} text */
  #tell(text) {
    this.#problem.hidden = !text;
    this.#problem.textContent = text;
  }

  #show() {
    const listed = JSON.stringify([store.active, store.servers.map((it) => [it.name, it.state])]);
    if (listed === this.#listed) return;
    this.#listed = listed;
    const hasFocus = this.#tabs.contains(document.activeElement);
    fill(this.#tabs, ...store.servers.map((it) => {
      const isCurrent = it.id === store.active;
      return h('button', {
        type: 'button', role: 'tab', class: 'tab', 'aria-selected': String(isCurrent), 'aria-controls': 'panel', tabindex: isCurrent ? '0' : '-1',
        onclick: () => { store.active = it.id; store.changed('servers'); },
      }, h('span', { class: `dot ${it.state}`, role: 'img', 'aria-label': it.state }), h('span', { class: 'name' }, visible(it.listed.source ? it.listed.label : it.name)));
    }));
    if (hasFocus) /** @type {HTMLElement | null} */ (this.#tabs.querySelector('[aria-selected=true]'))?.focus();
    document.title = `${visible(store.servers[store.active]?.name ?? '')} – oxmcp`;
    if (this.#shown === store.active) return;
    this.#shown = store.active;
    const server = store.servers[store.active];
    if (!server) return;
    // The others stay, because their apps would begin again.
    for (const it of this.#panel.children) it.hidden = true;
    const known = this.#panels.get(server.id);
    const panel = known ?? new ServerPanel();
    panel.server = server;
    panel.hidden = false;
    this.#panels.set(server.id, panel);
    if (!known) this.#panel.append(panel);
    this.#panel.setAttribute('aria-label', visible(server.listed.label));
    // The user has named it on the command line.
    if (server.listed.isNamed && server.state === 'idle' && !this.#begun.has(server.id)) {
      this.#begun.add(server.id);
      connect(server).catch((error) => this.#tell(error.message));
    }
  }
}

customElements.define('ox-app', App);
