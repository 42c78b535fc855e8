// @ts-check
// Forms that are made from JSON schemas. What a form cannot show is written as JSON.
import { add, button, fill, h, prose, visible } from './dom.js';

const MAX_DEPTH = 8;
const MAX_FIELDS = 200;
const MAX_CHOICES = 1000;
const MAX_STEPS = 1000;
let ids = 0;

/**
 * A part of a form.
 * @typedef {{ element: HTMLElement, read: () => any, write: (value: any) => void }} Field `read` returns `undefined` for a value
 *   that is left out, and throws an `Error` that tells what is wrong
 */

/** @typedef {{ root: any, left: number }} Context the whole schema, and the number of fields that may still be made */

/** A value that cannot be read, and the control to correct it. */
class Wrong extends Error {
  /**
   * @param {string} message
   * @param {HTMLElement} [control]
   */
  constructor(message, control) {
    super(message);
    this.control = control;
  }
}

/**
 * Follows references within the schema, and merges `allOf`.
 * @param {any} schema
 * @param {any} root
 * @param {number} [depth]
 * @param {{ left: number }} [steps] the schemas that may still be resolved: a schema may refer to itself many times over
 * @returns {any}
 */
function resolved(schema, root, depth = 0, steps = { left: MAX_STEPS }) {
  steps.left -= 1;
  if (schema === null || typeof schema !== 'object' || depth > MAX_DEPTH || steps.left < 0) return {};
  let it = schema;
  if (typeof it.$ref === 'string') {
    const { $ref: path, ...others } = it;
    const names = path.startsWith('#/') ? path.slice(2).split('/') : path === '#' ? [] : null;
    const target = names?.reduce((/** @type {any} */ at, /** @type {string} */ step) => at?.[unescaped(step)], root);
    if (!target) return others;
    it = { ...resolved(target, root, depth + 1, steps), ...others };
  }
  if (Array.isArray(it.allOf)) {
    const { allOf, ...others } = it;
    it = [...allOf.map((/** @type {any} */ part) => resolved(part, root, depth + 1, steps)), others].reduce((all, part) => ({
      ...all,
      ...part,
      properties: { ...all.properties, ...part.properties },
      required: [all.required, part.required].flatMap((it) => (Array.isArray(it) ? it : [])),
    }), {});
  }
  // A value or null.
  const either = it.anyOf ?? it.oneOf;
  if (Array.isArray(either) && either.some(isNull)) {
    const { anyOf, oneOf, ...others } = it;
    const rest = either.filter((part) => !isNull(part));
    if (rest.length === 1) it = { ...resolved(rest[0], root, depth + 1, steps), ...others };
  }
  if (Array.isArray(it.type)) {
    const types = it.type.filter((/** @type {string} */ type) => type !== 'null');
    if (types.length === 1) it = { ...it, type: types[0] };
  }
  return it;
}

/**
 * A step of a pointer. One that is not escaped as a URI is taken as it is.
 * @param {string} step
 */
function unescaped(step) {
  const pointer = (/** @type {string} */ it) => it.replace(/~1/g, '/').replace(/~0/g, '~');
  try {
    return pointer(decodeURIComponent(step));
  } catch {
    return pointer(step);
  }
}

const isNull = (/** @type {any} */ schema) => schema?.type === 'null' || schema?.const === null;

/**
 * The values that can be chosen, and their names. `null` if a schema is no choice.
 * @param {any} schema
 * @returns {{ value: any, name: string }[] | null}
 */
function choices(schema) {
  const either = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(either) && either.length && either.length <= MAX_CHOICES && either.every((it) => it && 'const' in it)) {
    return either.map((it) => ({ value: it.const, name: visible(it.title ?? it.const) }));
  }
  if ('const' in schema) return [{ value: schema.const, name: visible(schema.const) }];
  if (!Array.isArray(schema.enum) || !schema.enum.length || schema.enum.length > MAX_CHOICES) return null;
  return schema.enum.map((/** @type {any} */ value, /** @type {number} */ index) => ({ value, name: visible(schema.enumNames?.[index] ?? value) }));
}

/**
 * A form for the value of a schema.
 * @param {any} schema
 * @param {{ value?: any, submit: (value: any) => void, label: string, actions?: any[] }} options
 */
export function schemaForm(schema, { value, submit, label, actions = [] }) {
  const root = schema && typeof schema === 'object' ? schema : {};
  const asFields = () => objectField(resolved(root, root), { root, left: MAX_FIELDS }, 0);
  const problem = h('p', { class: 'problem', role: 'alert' });
  const body = h('div', { class: 'fields' });
  const form = h('form', { class: 'schema-form', 'aria-label': label, novalidate: true });
  let field = asFields();
  let isJson = false;

  const mode = button('Edit as JSON', () => {
    let now;
    try {
      now = field.read();
    } catch (error) {
      if (isJson) return report(error);
      now = undefined;
    }
    isJson = !isJson;
    field = isJson ? jsonField({ type: 'object' }, 8) : asFields();
    field.write(now ?? {});
    mode.textContent = isJson ? 'Edit as form' : 'Edit as JSON';
    problem.textContent = '';
    fill(body, field.element);
    return undefined;
  }, { class: 'quiet' });

  /** @param {string} message */
  const tell = (message) => {
    problem.textContent = message;
    for (const it of form.querySelectorAll('[aria-invalid]')) it.removeAttribute('aria-invalid');
  };
  /** @param {any} error */
  const report = (error) => {
    tell(error.message);
    if (error instanceof Wrong && error.control) {
      error.control.setAttribute('aria-invalid', 'true');
      error.control.focus();
    }
  };

  form.addEventListener('submit', (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      const read = field.read() ?? {};
      tell('');
      submit(read);
    } catch (error) {
      report(error);
    }
  });
  // In texts of several lines, Enter would only begin another line.
  form.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const isText = event.target instanceof HTMLTextAreaElement;
    if (event.key === 'Enter' && isText && (event.ctrlKey || event.metaKey || event.target.rows === 1 && !event.shiftKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  if (value !== undefined) field.write(value);
  fill(body, field.element);
  add(form, body, problem, h('div', { class: 'actions' }, ...actions, mode));
  return { element: form, problem };
}

/**
 * @param {any} schema
 * @param {Context} context
 * @param {number} depth
 * @returns {Field}
 */
function objectField(schema, context, depth) {
  const properties = Object.entries(schema.properties ?? {});
  // A schema may refer to itself many times over.
  context.left -= properties.length;
  if (depth && !properties.length || depth > MAX_DEPTH || context.left < 0) return jsonField(schema, 3);
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  // Required ones first.
  properties.sort(([a], [b]) => Number(required.has(b)) - Number(required.has(a)));
  const fields = properties.map(([name, it]) => /** @type {[string, Field]} */ ([name, named(name, resolved(it, context.root), context, required.has(name), depth)]));
  const element = h('div', { class: 'object' }, ...fields.map(([, it]) => it.element));
  if (!fields.length) element.append(h('p', { class: 'hint' }, 'No arguments.'));
  return {
    element,
    read: () => Object.fromEntries(fields.map(([name, it]) => [name, it.read()]).filter(([, it]) => it !== undefined)),
    write: (value) => fields.forEach(([name, it]) => it.write(value?.[name])),
  };
}

/**
 * A field with its name and its description.
 * @param {string} name
 * @param {any} schema
 * @param {Context} context
 * @param {boolean} isRequired
 * @param {number} depth
 * @returns {Field}
 */
function named(name, schema, context, isRequired, depth) {
  const id = `field-${ids += 1}`;
  const title = schema.title && schema.title !== name ? schema.title : null;
  const field = control(name, schema, context, { id, isRequired, depth });
  const caption = [
    h('code', {}, visible(name)), title && h('span', { class: 'title' }, visible(title)),
    h('span', { class: 'type' }, typeName(schema)),
    isRequired && h('span', { class: 'required', title: 'required' }, 'required'),
  ];
  const description = schema.description ? prose(schema.description, { lines: 4 }) : null;
  if (description) {
    description.classList.add('hint');
    description.id = `${id}-hint`;
    field.element.querySelector(`#${id}`)?.setAttribute('aria-describedby', description.id);
  }
  const isGroup = !field.element.querySelector(`#${id}`) && field.element.id !== id;
  const element = isGroup
    ? h('fieldset', { class: 'field group' }, h('legend', {}, ...caption), description, field.element)
    : h('div', { class: 'field' }, h('label', { for: id }, ...caption), description, field.element);
  return { ...field, element };
}

/** @param {any} schema */
function typeName(schema) {
  const types = Array.isArray(schema.type) ? schema.type.join(' | ') : schema.type ?? (choices(schema) ? 'choice' : schema.properties ? 'object' : 'any');
  const limits = [];
  const low = schema.minimum ?? schema.minLength ?? schema.minItems;
  const high = schema.maximum ?? schema.maxLength ?? schema.maxItems;
  if (low !== undefined || high !== undefined) limits.push(`${low ?? ''}…${high ?? ''}`);
  if (schema.format) limits.push(schema.format);
  return visible([types, ...limits].join(' '));
}

/**
 * @param {string} name
 * @param {any} schema
 * @param {Context} context
 * @param {{ id: string, isRequired: boolean, depth: number }} options
 * @returns {Field}
 */
function control(name, schema, context, options) {
  const { id, isRequired, depth } = options;
  const offered = choices(schema);
  if (offered) return choiceField(schema, offered, options);
  if (schema.type === 'boolean') return booleanField(schema, options);
  if (schema.type === 'integer' || schema.type === 'number') return numberField(name, schema, options);
  if (schema.type === 'string') return stringField(name, schema, options);
  if (schema.type === 'array' && schema.items && typeof schema.items === 'object' && !schema.prefixItems) {
    const items = resolved(schema.items, context.root);
    const several = choices(items);
    return several ? severalField(schema, several, name) : listField(name, schema, items, context, options);
  }
  if (schema.type === 'object' || schema.properties) {
    if (!schema.properties || depth >= MAX_DEPTH) return jsonField(schema, 3, id, isRequired);
    const inner = () => objectField(schema, context, depth + 1);
    return isRequired ? inner() : optional(inner, name, schema);
  }
  return jsonField(schema, 2, id, isRequired);
}

/**
 * An object that can be left out. Its fields are made when it is included.
 * @param {() => Field} make
 * @param {string} name
 * @param {any} schema
 * @returns {Field}
 */
function optional(make, name, schema) {
  const box = h('input', { type: 'checkbox', 'aria-label': `include ${name}` });
  const place = h('div', {});
  /** @type {Field | null} */
  let inner = null;
  const show = () => {
    if (box.checked && !inner) {
      inner = make();
      place.append(inner.element);
    }
    place.hidden = !box.checked;
  };
  const write = (/** @type {any} */ value) => {
    box.checked = value !== undefined;
    show();
    if (value !== undefined) inner?.write(value);
  };
  box.addEventListener('change', show);
  write(schema.default);
  return { element: h('div', {}, h('label', { class: 'include' }, box, ' include'), place), read: () => (box.checked ? inner?.read() : undefined), write };
}

/**
 * @param {any} schema
 * @param {{ value: any, name: string }[]} offered
 * @param {{ id: string, isRequired: boolean }} options
 * @returns {Field}
 */
function choiceField(schema, offered, { id, isRequired }) {
  const select = h('select', { id }, !(isRequired && schema.default === undefined && offered.length === 1) && h('option', { value: '' }, isRequired ? 'choose…' : '—'),
    ...offered.map((it, index) => h('option', { value: index }, visible(it.name))));
  const write = (/** @type {any} */ value = schema.default) => {
    const at = offered.findIndex((it) => JSON.stringify(it.value) === JSON.stringify(value));
    select.value = at < 0 ? select.options[0].value : String(at);
  };
  write();
  return {
    element: select,
    read: () => {
      if (select.value !== '') return offered[Number(select.value)]?.value;
      if (isRequired) throw new Wrong('Choose a value.', select);
      return undefined;
    },
    write,
  };
}

/**
 * Several of some values.
 * @param {any} schema
 * @param {{ value: any, name: string }[]} offered
 * @param {string} name
 * @returns {Field}
 */
function severalField(schema, offered, name) {
  const boxes = offered.map((it) => h('input', { type: 'checkbox', 'aria-label': `${name}: ${it.name}` }));
  const check = (/** @type {any} */ value = schema.default) => boxes.forEach((box, index) => {
    box.checked = Array.isArray(value) && value.some((it) => JSON.stringify(it) === JSON.stringify(offered[index]?.value));
  });
  check();
  let isGiven = schema.default !== undefined;
  const element = h('div', { class: 'choices', onchange: () => { isGiven = true; } }, ...boxes.map((box, index) => h('label', {}, box, ' ', visible(offered[index]?.name))));
  return {
    element,
    read: () => {
      const chosen = offered.filter((_, index) => boxes[index].checked).map((it) => it.value);
      return chosen.length || isGiven ? chosen : undefined;
    },
    write: (value) => {
      isGiven = value !== undefined;
      check(value);
    },
  };
}

/**
 * @param {any} schema
 * @param {{ id: string, isRequired: boolean }} options
 * @returns {Field}
 */
function booleanField(schema, { id, isRequired }) {
  if (!isRequired && schema.default === undefined) {
    return choiceField(schema, [{ value: true, name: 'true' }, { value: false, name: 'false' }], { id, isRequired });
  }
  const box = h('input', { type: 'checkbox', id });
  box.checked = schema.default === true;
  return {
    element: h('div', { class: 'check' }, box),
    read: () => box.checked,
    write: (value = schema.default) => { box.checked = value === true; },
  };
}

/**
 * @param {string} name
 * @param {any} schema
 * @param {{ id: string, isRequired: boolean }} options
 * @returns {Field}
 */
function numberField(name, schema, { id, isRequired }) {
  const input = h('input', { id, type: 'text', inputmode: 'decimal', autocomplete: 'off', value: schema.default ?? '' });
  return {
    element: input,
    read: () => {
      const text = input.value.trim();
      if (!text && !isRequired) return undefined;
      const value = Number(text);
      if (!text || !Number.isFinite(value) || schema.type === 'integer' && !Number.isInteger(value)) {
        throw new Wrong(`${name}: expected ${schema.type === 'integer' ? 'an integer' : 'a number'}.`, input);
      }
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new Wrong(`${name}: too large for a page; use \`oxmcp call\`.`, input);
      return value;
    },
    write: (value) => { input.value = value ?? schema.default ?? ''; },
  };
}

/**
 * @param {string} name
 * @param {any} schema
 * @param {{ id: string, isRequired: boolean }} options
 * @returns {Field}
 */
function stringField(name, schema, { id, isRequired }) {
  const types = /** @type {Record<string, string>} */ ({ date: 'date', email: 'email', uri: 'url', 'date-time': 'text', password: 'password' });
  const input = schema.format
    ? h('input', { id, type: types[schema.format] ?? 'text', autocomplete: schema.format === 'password' ? 'new-password' : 'off' })
    : h('textarea', { id, rows: 1, autocomplete: 'off', spellcheck: 'false' });
  if (Array.isArray(schema.examples) && schema.examples.length) input.placeholder = visible(schema.examples[0]);
  const write = (/** @type {any} */ value) => { input.value = [value, schema.default].find((it) => typeof it === 'string') ?? ''; };
  write(undefined);
  return {
    element: input,
    read: () => {
      if (input.value !== '') return input.value;
      // An empty text and none are different.
      if (!isRequired) return undefined;
      if (schema.minLength > 0 || schema.format) throw new Wrong(`${name}: a value is required.`, input);
      return '';
    },
    write,
  };
}

/**
 * @param {string} name
 * @param {any} schema
 * @param {any} items
 * @param {Context} context
 * @param {{ depth: number, isRequired: boolean }} options
 * @returns {Field}
 */
function listField(name, schema, items, context, { depth, isRequired }) {
  /** @type {{ field: Field, row: HTMLElement }[]} */
  let rows = [];
  const list = h('div', { class: 'items' });
  const insert = (/** @type {any} */ value) => {
    const id = `field-${ids += 1}`;
    const field = items.properties
      ? objectField(items, context, depth + 1)
      : control(name, items, context, { id, isRequired: true, depth: depth + 1 });
    if (value !== undefined) field.write(value);
    const row = h('div', { class: 'item' }, field.element);
    const entry = { field, row };
    (field.element.id === id ? field.element : field.element.querySelector(`#${id}`))?.setAttribute('aria-label', `${name}, item ${rows.length + 1}`);
    row.append(button('Remove', () => {
      rows = rows.filter((it) => it !== entry);
      row.remove();
    }, { class: 'quiet', 'aria-label': `Remove an item of ${name}` }));
    rows.push(entry);
    list.append(row);
    return field;
  };
  const write = (/** @type {any} */ value = schema.default) => {
    rows = [];
    list.replaceChildren();
    if (Array.isArray(value)) value.forEach(insert);
  };
  write();
  const more = button('Add item', () => {
    const made = insert(undefined).element;
    /** @type {HTMLElement | null} */ (made.matches('input, select, textarea') ? made : made.querySelector('input, select, textarea'))?.focus();
  }, { class: 'quiet', 'aria-label': `Add an item to ${name}` });
  return {
    element: h('div', {}, list, more),
    read: () => (rows.length || isRequired ? rows.map((it) => it.field.read()) : undefined),
    write,
  };
}

/**
 * A value that is written as JSON.
 * @param {any} schema
 * @param {number} rows
 * @param {string} [id]
 * @param {boolean} [isRequired]
 * @returns {Field}
 */
function jsonField(schema, rows, id = `field-${ids += 1}`, isRequired = false) {
  const area = h('textarea', { id, rows, class: 'code', spellcheck: 'false', placeholder: 'JSON', 'aria-label': 'JSON' });
  const write = (/** @type {any} */ value = schema.default) => { area.value = value === undefined ? '' : JSON.stringify(value, null, 2); };
  write();
  return {
    element: area,
    read: () => {
      if (!area.value.trim() && !isRequired) return undefined;
      try {
        return JSON.parse(area.value);
      } catch (error) {
        throw new Wrong(`This is not JSON: ${/** @type {Error} */ (error).message}`, area);
      }
    },
    write,
  };
}
