// The Inspector's verification of skills, against our server with the skills in `../skills`. MODE is the era: `legacy` or `modern`.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const inspector = fileURLToPath(
  new URL('../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url),
);
const [era, _strict, ...server] = process.argv.slice(2);
const check = ['--method', 'skills/list', '--verify', '--require-digests'];
const args = [inspector, '--cli', '--protocol-era', era, '--format', 'json', ...check, ...server];

// It exits with another status than 0 if a check fails or cannot be made.
const { stdout } = await promisify(execFile)(process.execPath, args);
const [report, ...others] = stdout.trim().split('\n').map((line) => JSON.parse(line));
assert.deepEqual(others, []);
assert.equal(report.outcome, 'verified');
assert.deepEqual([report.conformance, report.frontmatter], [[], []]);
assert.deepEqual(report.files.map(({ uri }) => uri), [
  'skill://refunds/SKILL.md',
  'skill://refunds/logo.png',
  'skill://refunds/references/limits.md',
]);

const revision = era === 'legacy' ? '2025-11-25' : '2026-07-28';
console.log(JSON.stringify({ revision, checks: ['verifies all files of all skills'] }));
