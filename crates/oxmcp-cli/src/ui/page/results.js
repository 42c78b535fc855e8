// @ts-check
// The result of an operation: its progress, and then its content, or the reason why it failed.
import { appView } from './apps.js';
import { contentBlock, resourceContents } from './content.js';
import { add, attempted, button, chip, copyButton, duration, fill, h, prose, visible, webLink } from './dom.js';
import { jsonTree } from './json.js';
import { isRunning, store } from './store.js';

/**
 * @typedef {import('./store.js').Server} Server
 * @typedef {import('./store.js').Job} Job
 */

/**
 * A card that shows an operation, and follows it.
 * @param {Server} server
 * @param {Job} job
 * @param {{ read: (uri: string) => void, title?: string }} options
 */
export function resultCard(server, job, { read, title }) {
  const card = h('article', { class: 'result', 'data-job': job.id });
  const head = h('header', {});
  const body = h('div', { class: 'result-body', 'aria-live': 'polite' });
  const frame = h('div', {});
  add(card, head, frame, body);
  let isRaw = false;
  let shown = '';
  const show = () => {
    card.dataset.phase = stateOf(job);
    body.setAttribute('aria-busy', String(isRunning(job)));
    fill(body, ...[attempted(() => (isRaw ? jsonTree(job.result, { open: 3 }) : parts(job, read)))].flat());
    if (job.view && !job.view.isShown && store.own.has(job.id)) frame.append(appView(job.view));
    // Progress changes only the body: a button that is replaced while it is pressed would not be clicked.
    const now = `${stateOf(job)} ${isRaw}`;
    if (now === shown) return;
    shown = now;
    const hasResult = job.result !== undefined && job.result !== null;
    const raw = button(isRaw ? 'Shown' : 'Raw', () => {
      isRaw = !isRaw;
      show();
    }, { class: 'quiet', 'aria-pressed': String(isRaw) });
    fill(head, statusChip(job), h('strong', {}, visible(title ?? titleOf(job))),
      h('time', {}, store.time(job.at)), job.micros !== undefined && h('span', { class: 'muted' }, duration(job.micros)),
      h('span', { class: 'space' }),
      isRunning(job) && button('Cancel', () => { store.cancel(job.id); }, { class: 'danger' }),
      hasResult && copyButton(() => JSON.stringify(job.result, null, 2)), hasResult && raw);
  };
  show();
  const end = server.on(`job:${job.id}`, () => {
    // A card that is no longer shown hears nothing more.
    if (!card.isConnected && !isRunning(job)) end();
    show();
  });
  return card;
}

/**
 * Begins an operation. Its card comes before those of earlier ones. If it cannot begin, the reason becomes the text of `problem`.
 * @param {Server} server
 * @param {any} operation
 * @param {{ cards: HTMLElement, problem: HTMLElement, read: (uri: string) => void, max?: number }} options the number of cards
 *   that are kept
 */
export function runInto(server, operation, { cards, problem, read, max = Infinity }) {
  problem.textContent = '';
  const { id, done } = store.run(server, operation);
  const end = server.on(`job:${id}`, (job) => {
    end();
    cards.prepend(resultCard(server, job, { read }));
    while (cards.children.length > max) cards.lastChild?.remove();
  });
  // The card of an operation that has begun tells why it failed.
  done.catch((error) => { if (!server.jobs.has(id)) problem.textContent = error.message; });
}

/** @param {Job} job */
function titleOf({ operation }) {
  return operation.tool ?? operation.name ?? operation.uri ?? operation.method ?? operation.kind ?? 'operation';
}

/** @param {Job} job */
function stateOf(job) {
  if (isRunning(job)) return job.task ? 'task' : 'running';
  if (job.phase === 'failed') return job.error?.isCancelled ? 'cancelled' : 'failed';
  return job.result?.isError ? 'error' : 'done';
}

/** @param {Job} job */
function statusChip(job) {
  const state = stateOf(job);
  const kinds = /** @type {Record<string, string>} */ ({ failed: 'bad', error: 'bad', done: 'good', running: 'busy', task: 'busy' });
  return chip(state === 'error' ? 'tool error' : state, kinds[state]);
}

/**
 * @param {Job} job
 * @param {(uri: string) => void} read
 */
function parts(job, read) {
  /** @type {any[]} */
  const shown = [];
  if (isRunning(job)) {
    if (job.task) shown.push(h('p', {}, chip(visible(job.task.status), 'busy'), ' ', h('code', {}, visible(job.task.id)), ' ', visible(job.task.message ?? '')));
    shown.push(progress(job.progress));
    return shown;
  }
  if (job.error) {
    shown.push(h('p', { class: 'problem' }, job.error.code !== null && job.error.code !== undefined && h('code', {}, `${job.error.code} `), visible(job.error.message)));
    const elicitations = job.error.data?.elicitations;
    for (const it of Array.isArray(elicitations) ? elicitations : []) shown.push(h('p', {}, visible(it?.message), ' ', webLink(visible(it?.url))));
    if (job.error.data !== null && job.error.data !== undefined) shown.push(jsonTree(job.error.data));
    return shown;
  }
  const result = job.result ?? {};
  for (const block of result.content ?? []) {
    const made = contentBlock(block, read);
    shown.push(isSame(block, result.structuredContent) ? h('details', {}, h('summary', { class: 'muted' }, 'Text, the same as the structured content'), made) : made);
  }
  for (const it of result.contents ?? []) shown.push(resourceContents(it));
  for (const it of result.messages ?? []) {
    shown.push(h('div', { class: 'turn' }, chip(visible(it.role)), contentBlock(it.content ?? {}, read)));
  }
  if (result.structuredContent !== undefined) shown.push(h('div', { class: 'block' }, h('h4', {}, 'Structured content'), jsonTree(result.structuredContent, { open: 2 })));
  if (!shown.length) shown.push(job.operation.kind === 'send' || result.content === undefined ? jsonTree(result, { open: 2 }) : h('p', { class: 'muted' }, 'The result is empty.'));
  if (result.description) shown.unshift(prose(result.description, { lines: 3 }));
  if (result._meta) shown.push(h('details', {}, h('summary', {}, '_meta'), jsonTree(result._meta)));
  return shown;
}

/**
 * Whether a text repeats the structured content, as servers do for models that do not see it.
 * @param {any} block
 * @param {any} structured
 */
function isSame(block, structured) {
  if (structured === undefined || block.type !== 'text') return false;
  try {
    return sorted(JSON.parse(block.text)) === sorted(structured);
  } catch {
    return false;
  }
}

/** @param {any} value */
const sorted = (value) => JSON.stringify(value, (_, it) => (it && typeof it === 'object' && !Array.isArray(it) ? Object.fromEntries(Object.entries(it).sort()) : it));

/** @param {any} it */
function progress(it) {
  const bar = h('progress', { 'aria-label': 'progress' });
  if (it?.total > 0) {
    bar.max = it.total;
    bar.value = Math.min(it.progress, it.total);
  }
  const count = it ? `${it.progress}${it.total ? ` of ${it.total}` : ''}` : 'waiting for the server';
  return h('div', { class: 'progress' }, bar, h('span', {}, count), it?.message && h('span', {}, visible(it.message)));
}
