// Apps in headless Chromium: `test.mjs CHROMIUM SERVER HOST DIRECTORY [WORD]`. SERVER is `interop-apps`, HOST the example `apps`.
// DIRECTORY gets the documents, too.
import { runCases } from '../browser.mjs';
import { cases } from './cases.mjs';
import { setUp } from './setup.mjs';

await runCases(cases, setUp);
