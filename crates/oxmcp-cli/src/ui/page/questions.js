// @ts-check
// The questions of servers: forms, pages to visit, and messages of a model, which the user answers.
import { post, Refused } from './api.js';
import { contentBlock } from './content.js';
import { add, attempted, button, chip, fill, h, prose, visible, webLink } from './dom.js';
import { schemaForm } from './form.js';
import { jsonTree } from './json.js';
import { store } from './store.js';

/** The open questions of all servers, above everything else. */
class Questions extends HTMLElement {
  /** @type {Map<number, HTMLElement>} */
  #cards = new Map();

  connectedCallback() {
    this.setAttribute('role', 'region');
    this.setAttribute('aria-label', 'Questions of servers');
    this.setAttribute('aria-live', 'polite');
    store.on('questions', (fresh) => this.#show(fresh));
  }

  /** @param {any} fresh */
  #show(fresh) {
    for (const [number, card] of this.#cards) {
      if (store.questions.has(number)) continue;
      card.remove();
      this.#cards.delete(number);
    }
    for (const [number, question] of store.questions) {
      if (this.#cards.has(number)) continue;
      const card = questionCard(question);
      this.#cards.set(number, card);
      this.append(card);
    }
    this.hidden = !this.#cards.size;
    const isTyping = document.activeElement?.matches('input, textarea, select');
    // The focus is on no button: a key that was meant for something else must not answer.
    if (fresh && !isTyping) this.#cards.get(fresh.question)?.focus();
  }
}

/** @param {any} question */
function questionCard(question) {
  const server = store.servers[question.server];
  const problem = h('p', { class: 'problem', role: 'alert' });
  const reply = async (/** @type {any} */ body) => {
    // The card goes when the program has told of the answer. Until then, a second click must not answer again.
    card.inert = true;
    problem.textContent = '';
    try {
      await post('answer', { question: question.question, reply: body });
    } catch (error) {
      // The server has withdrawn the question, or it was answered in another page.
      if (error instanceof Refused && error.status === 404) return;
      card.inert = false;
      problem.textContent = `The answer was not sent: ${/** @type {Error} */ (error).message}`;
    }
  };
  const kinds = /** @type {Record<string, string>} */ ({ form: 'asks for information', url: 'asks you to visit a page', sampling: 'asks for a message of a model' });
  const id = `question-${question.question}`;
  const card = h('section', { class: 'question', role: 'group', tabindex: '-1', 'aria-labelledby': id, 'data-of': question.of });
  add(card, h('h2', { id }, h('span', { class: 'who' }, visible(server?.name ?? 'A server')), ` ${kinds[question.of]}`));
  const refuse = [button('Decline', () => reply({ action: 'decline' })), button('Cancel', () => reply({ action: 'cancel' }), { class: 'quiet', title: 'Make no choice' })];
  const body = { form, url: page, sampling }[/** @type {'form' | 'url' | 'sampling'} */ (question.of)];
  const made = attempted(() => body(question.params, (/** @type {any} */ content) => reply({ action: 'accept', content }), refuse));
  add(card, made, !made.contains(refuse[0]) && h('div', { class: 'actions' }, ...refuse), problem);
  return card;
}

/**
 * @param {any} params
 * @param {(content: any) => void} accept
 * @param {HTMLElement[]} refuse
 */
function form(params, accept, refuse) {
  const actions = [h('button', { type: 'submit', class: 'primary' }, 'Send'), ...refuse];
  const made = schemaForm(params.requestedSchema, { submit: accept, label: 'answer', actions });
  return h('div', {}, prose(params.message), made.element);
}

/**
 * @param {any} params
 * @param {(content: any) => void} accept
 * @param {HTMLElement[]} refuse
 */
function page(params, accept, refuse) {
  let host = '';
  try {
    host = new URL(params.url).host;
  } catch {
    // The address is shown as it is.
  }
  const visit = button('Open page', () => {
    open(params.url, '_blank', 'noopener,noreferrer');
    accept({});
  }, { class: 'primary' });
  return h('div', {}, prose(params.message), host && h('p', {}, 'The page is at ', h('strong', {}, visible(host)), '. Never enter secrets that this server should not get.'),
    h('p', { class: 'address' }, webLink(params.url)), h('div', { class: 'actions' }, visit, ...refuse));
}

/**
 * @param {any} params
 * @param {(content: any) => void} accept
 * @param {HTMLElement[]} refuse
 */
function sampling(params, accept, refuse) {
  const messages = (params.messages ?? []).map((/** @type {any} */ it) => h('div', { class: 'turn' }, chip(visible(it.role)),
    ...[it.content].flat().map((/** @type {any} */ block) => contentBlock(block ?? {}, () => {}))));
  const text = h('textarea', { rows: 3, 'aria-label': 'the message of the model', required: true });
  const model = h('input', { value: 'a-person', 'aria-label': 'name of the model' });
  const send = h('form', {
    class: 'schema-form',
    'aria-label': 'message of the model',
    onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      accept({ role: 'assistant', content: { type: 'text', text: text.value }, model: model.value, stopReason: 'endTurn' });
    },
  }, h('div', { class: 'field' }, h('label', {}, 'Message'), text), h('div', { class: 'field' }, h('label', {}, 'Model'), model),
  h('div', { class: 'actions' }, h('button', { type: 'submit', class: 'primary' }, 'Send'), ...refuse));
  const { messages: _, ...settings } = params;
  return h('div', {}, params.systemPrompt && h('div', { class: 'turn' }, chip('system'), prose(params.systemPrompt, { lines: 4 })), ...messages,
    h('details', {}, h('summary', {}, 'Settings'), jsonTree(settings)), send);
}

/**
 * Asks the user before a program is started, or for the inputs of a configuration file.
 * @param {{ title: string, body: Node[], form?: any, accept: string }} options
 * @returns {Promise<any>} `null` if the user has declined
 */
export function ask({ title, body, form: schema, accept }) {
  return new Promise((resolve) => {
    const dialog = h('dialog', { 'aria-label': title });
    const end = (/** @type {any} */ value) => {
      resolve(value);
      dialog.close();
      dialog.remove();
    };
    dialog.addEventListener('cancel', () => end(null));
    const no = button('Cancel', () => end(null), schema ? {} : { autofocus: true });
    fill(dialog, h('h2', {}, title), ...body);
    if (schema) add(dialog, schemaForm(schema, { submit: end, label: title, actions: [h('button', { type: 'submit', class: 'primary' }, accept), no] }).element);
    else add(dialog, h('div', { class: 'actions' }, button(accept, () => end({}), { class: 'primary' }), no));
    document.body.append(dialog);
    dialog.showModal();
  });
}

customElements.define('ox-questions', Questions);
