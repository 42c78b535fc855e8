// Validates our messages in transcripts against the official schemas.
//
// Usage: `node wire.mjs SCHEMAS SIDE:REVISION:TRANSCRIPT...`, where SIDE is our side: `client` or `server`. Prints how many
// messages were checked; if any are invalid, prints them and exits with status 1. Revisions without a schema are skipped.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const MODERN = '2026-07-28';
const VERSION = 'io.modelcontextprotocol/protocolVersion';

// The TypeScript source of the schemas has `number` in these places, such as values of forms; some schemas have `integer`.
const NUMBERS = /"string",\s*"integer",\s*"boolean"/g;

const [directory, ...transcripts] = process.argv.slice(2);

/** The schema of a revision, with `check(definition, value)`, which returns the errors. */
function load(revision) {
  const file = join(directory, `${revision}.json`);
  if (!existsSync(file)) return undefined;
  const schema = JSON.parse(readFileSync(file, 'utf8').replace(NUMBERS, '"string","number","boolean"'));
  const key = schema.$defs ? '$defs' : 'definitions';
  const ajv = new (schema.$defs ? Ajv2020 : Ajv)({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(schema, 'mcp');
  const definitions = schema[key];
  const byMethod = new Map();
  for (const [name, { properties }] of Object.entries(definitions)) {
    if (properties?.method?.const) byMethod.set(properties.method.const, name);
  }
  return {
    message: (method) => byMethod.get(method),
    has: (name) => name in definitions,
    check(name, value) {
      const validate = ajv.getSchema(`mcp#/${key}/${name}`);
      return validate(value) ? undefined : `${name}: ${ajv.errorsText(validate.errors)}`;
    },
  };
}

const schemas = new Map();
const schemaOf = (revision) => {
  if (!schemas.has(revision)) schemas.set(revision, load(revision));
  return schemas.get(revision);
};

/** The definition of the result of a request: named after the request, except for requests that return nothing. */
function resultName(schema, request, result, params) {
  // In 2025-11-25 the client requests a task.
  if (params?.task && result.task) return 'CreateTaskResult';
  if (result.resultType === 'input_required') return 'InputRequiredResult';
  const name = request.replace(/Request$/, 'Result');
  return schema.has(name) ? name : 'EmptyResult';
}

/** The definition that a message of ours must match, and the part of it to check; nothing if it has no definition. */
function subject(schema, message, asked) {
  if (message.method) return [schema.message(message.method), message];
  if (message.error) return [schema.has('JSONRPCErrorResponse') ? 'JSONRPCErrorResponse' : 'JSONRPCError', message];
  const request = schema.message(asked?.method);
  // The schemas do not have the members that extensions add to results.
  if (!['complete', 'input_required', undefined].includes(message.result.resultType)) return [];
  return request ? [resultName(schema, request, message.result, asked.params), message.result] : [];
}

function* offences(side, agreed, lines) {
  const [ours, theirs] = side === 'client' ? ['> ', '< '] : ['< ', '> '];
  const parse = (line) => [JSON.parse(line.slice(2))].flat();
  const revisionOf = (message) => message.params?._meta?.[VERSION] ?? (agreed === MODERN && message.id === undefined ? MODERN : undefined);
  const asked = new Map();
  for (const line of lines) {
    if (line.startsWith(theirs)) {
      try {
        for (const message of parse(line)) if (message.method) asked.set(message.id, message);
      } catch {
        // Lines of the other side need not be JSON: servers print other text, too.
      }
      continue;
    }
    if (!line.startsWith(ours)) continue;
    for (const message of parse(line)) {
      const request = message.method ? message : asked.get(message.id);
      const named = request && revisionOf(request);
      const schema = schemaOf(named ?? (agreed === MODERN && side === 'server' ? MODERN : agreed));
      if (!schema) continue;
      const [name, value] = subject(schema, message, request);
      yield { line, offence: name ? schema.check(name, value) : undefined, known: name !== undefined };
    }
  }
}

let [held, wrong, hasSchema] = [0, 0, false];
for (const transcript of transcripts) {
  const [side, agreed, file] = transcript.split(/:(.*?):(.*)/s);
  hasSchema ||= schemaOf(agreed) !== undefined;
  for (const { line, offence, known } of offences(side, agreed, readFileSync(file, 'utf8').split('\n'))) {
    held += known ? 1 : 0;
    if (!offence) continue;
    wrong += 1;
    console.log(`${file}\n  ${line.slice(0, 300)}\n  ${offence}`);
  }
}
console.log(`checked ${held} messages against the official schemas: ${wrong} invalid`);
process.exitCode = wrong || (hasSchema && !held) ? 1 : 0;
