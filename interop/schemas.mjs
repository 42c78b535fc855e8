// Writes the official JSON schemas, one `REVISION.json` each, into the directory that is the argument.
//
// The bundle of the conformance suite has them as object literals. The lock file pins its version; if the bundle looks different,
// that is an error.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import vm from 'node:vm';

const bundle = await readFile(new URL('./node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url), 'utf8');

// A definition that identifies each revision. The package has no schema of 2024-11-05.
const MARKS = {
  '2025-03-26': (types) => types.JSONRPCBatchRequest,
  '2025-06-18': (types) => types.ElicitRequest && !types.Icon,
  '2025-11-25': (types) => types.ElicitRequest && types.Icon && types.InitializeRequest,
  '2026-07-28': (types) => types.DiscoverRequest,
};

/** The object literal that begins at `start`, up to its closing brace; braces in strings do not count. */
function literal(start) {
  let depth = 0;
  let quote;
  for (let at = start; at < bundle.length; at += 1) {
    const char = bundle[at];
    if (quote) {
      if (char === '\\') at += 1;
      else if (char === quote) quote = undefined;
    } else if ('`"\''.includes(char)) quote = char;
    else if (char === '{') depth += 1;
    else if (char === '}' && --depth === 0) return bundle.slice(start, at + 1);
  }
  throw new Error('the bundle of the conformance suite ends within a schema');
}

const schemas = [...bundle.matchAll(/=(?=\{\$schema:`[^`]+`,(?:definitions|\$defs):\{)/g)].map((match) =>
  vm.runInNewContext(`(${literal(match.index + 1)})`),
);

const [target] = process.argv.slice(2);
await mkdir(target, { recursive: true });
for (const [revision, marks] of Object.entries(MARKS)) {
  const found = schemas.filter((schema) => marks(schema.$defs ?? schema.definitions));
  if (found.length !== 1) throw new Error(`${found.length} schemas look like revision ${revision}; expected one`);
  await writeFile(join(target, `${revision}.json`), `${JSON.stringify(found[0], null, 2)}\n`);
}
