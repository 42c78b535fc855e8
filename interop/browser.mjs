// What the suites in headless Chromium share: the browser, and the loop over their cases.
import { mkdirSync } from 'node:fs';

import puppeteer from 'puppeteer-core';

/** The time of the slowest step on a busy machine. Nothing waits for as long unless it fails. */
export const LIMIT = 60_000;

/** The time for a case. The slowest takes seconds. */
const CASE_LIMIT = 300_000;

/**
 * Runs a suite and ends the process: `test.mjs CHROMIUM PROGRAM PROGRAM DIRECTORY [WORD]`. DIRECTORY gets the screenshots, and WORD
 * selects cases by name. Without a CHROMIUM, all are skipped. `setUp` makes the world of the cases from the browser, the directory,
 * and the two programs. After each case its `endCase` is called, before that its `failed` if there is one and the case has failed,
 * and its `end` after the last.
 */
export async function runCases(cases, setUp) {
  const [chromium, first, second, directory, word = ''] = process.argv.slice(2);
  const chosen = Object.entries(cases).filter(([name]) => name.includes(word));
  if (!chromium) {
    console.log(`0 passed, 0 failed, ${chosen.length} skipped`);
    process.exit();
  }
  mkdirSync(directory, { recursive: true });
  // The sandbox of the browser needs a user that is not root. All pages of the tests are their own.
  const unboxed = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const args = [...unboxed, '--disable-dev-shm-usage', '--font-render-hinting=none'];
  const browser = await puppeteer.launch({ executablePath: chromium, headless: 'shell', args });
  const world = await setUp(browser, directory, first, second);
  let [passed, failed] = [0, 0];
  for (const [name, run] of chosen) {
    const begin = performance.now();
    const tooLate = new Promise((_, reject) => {
      setTimeout(() => reject(new Error(`timed out after ${CASE_LIMIT / 1000} s`)), CASE_LIMIT).unref();
    });
    try {
      await Promise.race([run(world), tooLate]);
      passed += 1;
      console.log(`ok     ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.stack}`);
      await world.failed?.(name);
    }
    await world.endCase();
  }
  await world.end?.();
  await browser.close();
  console.log(`\n${passed} passed, ${failed} failed`);
  process.exit(failed || !passed ? 1 : 0);
}
