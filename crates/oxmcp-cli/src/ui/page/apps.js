// @ts-check
// Apps of servers, each in a frame of another origin. The program holds them to the protocol; the page only forwards messages.
import { post } from './api.js';
import { contentBlock } from './content.js';
import { add, button, chip, fill, h, prose, visible, webLink } from './dom.js';
import { jsonTree } from './json.js';
import { store } from './store.js';

const MAX_NOTES = 100;
const MAX_PENDING = 64;
/** The program reads no longer message. */
const MAX_MESSAGE = 10 << 20;
const MAX_HEIGHT = 2000;

/** @typedef {{ key: string, url: string, allow: string, uri: string, policy: string, border: boolean | null, isShown?: boolean }} View */

/** The view of an app. It is closed when it is removed from the page: a frame that is moved would begin again. */
class AppView extends HTMLElement {
  view = /** @type {View} */ ({});
  #end = () => {};

  connectedCallback() {
    const { view } = this;
    const origin = new URL(view.url).origin;
    const frame = h('iframe', { sandbox: 'allow-scripts allow-same-origin allow-forms', allow: view.allow, title: `app ${visible(view.uri)}` });
    const asked = h('div', { class: 'asked', 'aria-live': 'polite' });
    const context = h('div', {});
    const notes = h('ol', { class: 'notes' });
    const close = button('Close app', () => this.#close(), { class: 'quiet' });
    if (view.border === false) frame.classList.add('plain');

    // One request at a time keeps the messages in order.
    let last = Promise.resolve();
    let pending = 0;
    const receive = (/** @type {MessageEvent} */ { source, origin: from, data }) => {
      if (source !== frame.contentWindow || from !== origin || pending >= MAX_PENDING) return;
      const message = JSON.stringify(data);
      if (message === undefined || message.length > MAX_MESSAGE) return;
      pending += 1;
      last = last.then(() => post(`views/${view.key}/message`, message)).catch(() => {}).then(() => { pending -= 1; });
    };
    addEventListener('message', receive);
    // A page that is loaded again shows the app no more.
    const leave = () => this.#close();
    addEventListener('pagehide', leave);
    const end = store.on(`view:${view.key}`, (event) => {
      if (event.post) frame.contentWindow?.postMessage(JSON.parse(event.post), origin);
      if (event.height) frame.style.height = `${Math.min(event.height, MAX_HEIGHT)}px`;
      if (event.note) {
        notes.append(h('li', {}, visible(event.note.slice(0, 2000))));
        while (notes.children.length > MAX_NOTES) notes.firstChild?.remove();
      }
      if (event.context) fill(context, h('details', { class: 'block' }, h('summary', {}, 'Context for the model, from the app'), jsonTree(event.context, { open: 2 })));
      if (event.ask) asked.append(question(view.key, event));
      if (event.unmount) {
        this.#end();
        frame.remove();
        asked.replaceChildren();
        close.replaceWith(chip('closed'));
      }
    });
    this.#end = () => {
      end();
      removeEventListener('message', receive);
      removeEventListener('pagehide', leave);
    };
    frame.src = view.url;
    this.replaceChildren(h('section', { class: 'app', 'aria-label': `app ${visible(view.uri)}`, 'data-view': view.key },
      h('div', { class: 'row' }, chip('app'), h('code', { class: 'uri' }, visible(view.uri)), h('span', { class: 'space' }), close),
      frame, asked, context,
      h('details', {}, h('summary', {}, 'Policy and notes'), prose(view.policy, { code: true }), notes)));
  }

  disconnectedCallback() {
    this.#end();
    this.#close();
  }

  #close() {
    // It may be closed already.
    post(`views/${this.view.key}/close`, {}, true).catch(() => {});
  }
}

/**
 * Shows an app, once.
 * @param {View} view
 */
export function appView(view) {
  view.isShown = true;
  const element = new AppView();
  element.view = view;
  return element;
}

/**
 * A request of the app that the user decides about.
 * @param {string} key
 * @param {any} event
 */
function question(key, { number, ask }) {
  const card = h('div', { class: 'question', role: 'group', 'aria-label': `The app asks to ${ask.what}` });
  const decide = (/** @type {boolean} */ accept) => {
    if (accept && ask.link) open(ask.link, '_blank', 'noopener,noreferrer');
    post(`views/${key}/decide`, { number, accept }).catch(() => {});
    card.remove();
  };
  add(card, h('p', {}, 'The app asks to ', h('strong', {}, ask.what), '.'), ask.link && h('p', {}, webLink(ask.link)),
    ...(ask.content ?? []).map((/** @type {any} */ it) => contentBlock(it, () => {})),
    h('div', { class: 'actions' }, button('Allow', () => decide(true), { class: 'primary' }), button('Decline', () => decide(false))));
  return card;
}

customElements.define('ox-app-view', AppView);
