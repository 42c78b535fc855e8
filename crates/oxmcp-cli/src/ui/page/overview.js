// @ts-check
// The facts about a server: its name, its capabilities, its instructions.
import { chip, failure, fill, h, prose, visible, webLink } from './dom.js';
import { jsonTree } from './json.js';
import { Section } from './section.js';

class Overview extends Section {
  connectedCallback() {
    this.hear('state', () => this.#show());
    this.#show();
  }

  #show() {
    const { facts, listed, state, reason } = this.server;
    const info = facts?.server ?? {};
    const fact = (/** @type {string} */ name, /** @type {any} */ value) => value && [h('dt', {}, name), h('dd', {}, value)];
    fill(this, h('div', { class: 'page' }, h('h2', {}, 'Overview'),
      state === 'failed' && failure(reason),
      h('dl', {}, ...[
        fact('Name', info.name && visible(info.name)), fact('Title', info.title && visible(info.title)), fact('Version', info.version && visible(info.version)),
        fact('Description', info.description && prose(info.description, { lines: 6 })), fact('Website', info.websiteUrl && webLink(info.websiteUrl)),
        fact('Revision', facts?.revision), fact('Connected after', facts && `${facts.millis} ms`),
        fact(listed.isProgram ? 'Command line' : 'URL', h('code', {}, visible(listed.reach))), fact('From', listed.source && visible(listed.source)),
        fact('Offers', facts && h('div', { class: 'row' }, ...Object.keys(facts.capabilities).map((it) => chip(visible(it))))),
      ].filter(Boolean).flat()),
      facts?.instructions && h('section', {}, h('h3', {}, 'Instructions for models'), prose(facts.instructions, { lines: 12 })),
      facts && h('section', {}, h('h3', {}, 'Capabilities'), jsonTree(facts.capabilities, { open: 2 }))));
  }
}

customElements.define('ox-overview', Overview);
