// Apps in headless Chromium: `test.mjs CHROMIUM SERVER HOST DIRECTORY [WORD]`. SERVER is `interop-apps`, HOST the example `apps`,
// DIRECTORY gets the documents and the screenshots, and WORD selects cases by name. Without a CHROMIUM, all are skipped.
import { mkdirSync } from 'node:fs';

import { cases } from './cases.mjs';
import { setUp } from './setup.mjs';

/** The time for a case. The slowest takes seconds. */
const LIMIT = 300_000;

const [chromium, server, host, directory, word = ''] = process.argv.slice(2);
const chosen = Object.entries(cases).filter(([name]) => name.includes(word));
if (!chromium) {
  console.log(`0 passed, 0 failed, ${chosen.length} skipped`);
  process.exit();
}

mkdirSync(directory, { recursive: true });
const world = await setUp({ chromium, server, host, directory });
let [passed, failed] = [0, 0];
for (const [name, run] of chosen) {
  const begin = performance.now();
  const tooLate = () => new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`timed out after ${LIMIT / 1000} s`)), LIMIT).unref();
  });
  try {
    await Promise.race([run(world), tooLate()]);
    passed += 1;
    console.log(`ok     ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.stack}`);
  }
  await world.endCase();
}
await world.end();
console.log(`\n${passed} passed, ${failed} failed`);
process.exit(failed || !passed ? 1 : 0);
