// The command line of the Inspector. MODE is the era: `legacy` or `modern`. Each call opens a new connection.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { overHttp } from './checks.mjs';

const inspector = fileURLToPath(
  new URL('../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url),
);
const [era, strictness, ...command] = process.argv.slice(2);
const server = overHttp(command[0]) ? ['--transport', command[0], '--server-url', command[1]] : command;
const TOOL_ERROR = 5;

/** Resolves to the result that the Inspector prints; its exit status must be `status`. */
function inspect(status, ...options) {
  const args = [inspector, '--cli', '--protocol-era', era, '--format', 'json', ...options, ...server];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, (error, stdout, stderr) => {
      try {
        assert.equal(error?.code ?? 0, status, `${options.join(' ')}\n${stdout}${stderr}`);
        resolve(JSON.parse(stdout.split('\n')[0]).result);
      } catch (unexpected) {
        reject(unexpected);
      }
    });
  });
}

const call = (status, name, args) =>
  inspect(status, '--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args));

const names = (await inspect(0, '--method', 'tools/list')).tools.map((tool) => tool.name);
for (const name of ['add', 'divide', 'slow', 'echo']) assert.ok(names.includes(name), `tools/list must offer ${name}`);

const sum = await call(0, 'add', { a: 1, b: 2 });
assert.equal(Number(sum.content[0].text), 3);
if (strictness === 'strict') assert.deepEqual(sum.structuredContent, era === 'legacy' ? { result: 3 } : 3);

const failed = await call(TOOL_ERROR, 'divide', { a: 1, b: 0 });
assert.equal(failed.isError, true);
assert.match(failed.content[0].text, /b must not be 0/);

// The Inspector replaces a value that does not parse as a number by null.
const refused = await call(TOOL_ERROR, 'add', { a: 'one', b: 2 });
assert.equal(refused.isError, true);
if (strictness === 'strict') assert.match(refused.content[0].text, /\/a\b/);

const { prompts } = await inspect(0, '--method', 'prompts/list');
assert.deepEqual(prompts.map(({ name }) => name), ['review']);
const [greeting] = (await inspect(0, '--method', 'resources/read', '--uri', 'memo://greeting')).contents;
assert.match(greeting.text, /^hello/);
const { resourceTemplates } = await inspect(0, '--method', 'resources/templates/list');
assert.ok(resourceTemplates.some(({ uriTemplate }) => uriTemplate === 'memo://pages/{topic}/{page}'));

console.log(JSON.stringify({ era, checks: ['lists', 'calls', 'tool error', 'validation error', 'prompts', 'resources'] }));
