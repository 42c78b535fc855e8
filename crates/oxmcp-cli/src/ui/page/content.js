// @ts-check
// The content of results: text, images, audio, links, resources. Only known media types are shown, from the memory of the page.
import { button, chip, h, prose, size, visible, webLink } from './dom.js';
import { jsonTree } from './json.js';

const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp'];
const SOUNDS = ['audio/wav', 'audio/x-wav', 'audio/mpeg', 'audio/mp4', 'audio/ogg', 'audio/webm', 'audio/flac', 'audio/aac'];

/**
 * The media type without its parameters, if it is one of some.
 * @param {string} type
 * @param {string[]} known
 */
const among = (type, known) => known.find((it) => it === String(type ?? '').split(';')[0]?.trim().toLowerCase());

/** @param {string} base64 */
function decoded(base64) {
  const binary = atob(base64.replace(/\s/g, ''));
  return Uint8Array.from(binary, (it) => it.charCodeAt(0));
}

/**
 * Bytes, shown if their type is known.
 * @param {string} base64
 * @param {string} type
 * @param {string} name
 */
function media(base64, type, name) {
  let bytes;
  try {
    bytes = decoded(base64);
  } catch {
    return h('p', { class: 'problem' }, `${visible(name)}: this is not base64.`);
  }
  const image = among(type, IMAGES);
  const sound = among(type, SOUNDS);
  const caption = h('figcaption', {}, chip(visible(type || 'unknown type')), ` ${size(bytes.length)} `,
    button('Save', () => save(bytes, name), { class: 'quiet' }));
  if (!image && !sound) return h('figure', {}, caption);
  const url = URL.createObjectURL(new Blob([bytes], { type: image ?? sound }));
  const shown = image ? h('img', { src: url, alt: visible(name) }) : h('audio', { src: url, controls: true, 'aria-label': visible(name) });
  // An image that was shown needs its bytes no more.
  if (image) shown.addEventListener('load', () => URL.revokeObjectURL(url));
  shown.addEventListener('error', () => {
    shown.replaceWith(h('p', { class: 'problem' }, `This is not ${image ? 'an image' : 'a sound'} of the type ${visible(type)}.`));
  });
  return h('figure', {}, shown, caption);
}

/**
 * @param {Uint8Array} bytes
 * @param {string} name
 */
function save(bytes, name) {
  const url = URL.createObjectURL(new Blob([/** @type {any} */ (bytes)], { type: 'application/octet-stream' }));
  h('a', { href: url, download: name.replace(/[^\w.-]+/g, '_').replace(/^\.+/, '').slice(-80) || 'download' }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * A text, as a tree if it is JSON.
 * @param {string} text
 * @param {string} [type]
 */
function textBody(text, type = '') {
  const begins = /^\s*[[{]/.test(text) && text.length < 2_000_000;
  if (begins || type.includes('json')) {
    try {
      const value = JSON.parse(text);
      const [tree, plain] = [jsonTree(value, { open: 2 }), prose(text, { code: true })];
      plain.hidden = true;
      const toggle = button('as text', () => {
        [tree.hidden, plain.hidden] = [plain.hidden, tree.hidden];
        toggle.textContent = plain.hidden ? 'as text' : 'as tree';
      }, { class: 'quiet' });
      return h('div', {}, tree, plain, toggle);
    } catch {
      // It only looks like JSON.
    }
  }
  return prose(text, { code: true });
}

/**
 * The contents of a resource.
 * @param {any} contents
 */
export function resourceContents(contents) {
  const name = String(contents.uri ?? 'resource').split('/').pop() || 'resource';
  const head = h('div', { class: 'row' }, h('code', { class: 'uri' }, visible(contents.uri)), contents.mimeType && chip(visible(contents.mimeType)));
  if (typeof contents.text === 'string') return h('div', { class: 'block' }, head, textBody(contents.text, contents.mimeType));
  if (typeof contents.blob === 'string') return h('div', { class: 'block' }, head, media(contents.blob, contents.mimeType, name));
  return h('div', { class: 'block' }, head, jsonTree(contents));
}

/**
 * A block of content.
 * @param {any} block
 * @param {(uri: string) => void} read reads a resource that is linked
 */
export function contentBlock(block, read) {
  const audience = [block.annotations?.audience ?? []].flat().map(visible).join(', ');
  const notes = [audience && chip(`for ${audience}`), block.annotations?.priority !== undefined && chip(`priority ${visible(block.annotations.priority)}`)];
  const body = blockBody(block, read);
  return h('div', { class: 'block' }, notes.some(Boolean) && h('div', { class: 'row' }, ...notes), body);
}

/**
 * @param {any} block
 * @param {(uri: string) => void} read
 */
function blockBody(block, read) {
  switch (block.type) {
    case 'text':
      return textBody(String(block.text ?? ''));
    case 'image':
    case 'audio':
      return media(String(block.data ?? ''), block.mimeType, `${block.type}.${String(block.mimeType).split('/')[1] ?? 'bin'}`);
    case 'resource_link':
      return h('div', { class: 'row link' }, h('strong', {}, visible(block.title || block.name)), webLink(String(block.uri)),
        block.mimeType && chip(visible(block.mimeType)), button('Read', () => read(String(block.uri))), block.description && prose(block.description, { lines: 3 }));
    case 'resource':
      return resourceContents(block.resource ?? {});
    default:
      return jsonTree(block);
  }
}
