// The skills client of the TypeScript SDK 2.x, against a server with the skills in `../skills`. MODE is `legacy` or `auto`. The
// arguments are those of `checks.mjs`, over stdio.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

import { Client } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const URI = 'skill://refunds/SKILL.md';
const own = (path) => readFileSync(new URL(`../skills/refunds/${path}`, import.meta.url));

const [mode, _strict, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'interop-skills', version: '1.0.0' }, { versionNegotiation: { mode } });
await client.connect(new StdioClientTransport({ command, args }));
const skills = new SkillsClient(client);
assert.ok(skills.supported && skills.directoryRead);

const { skills: listed, invalid } = await skills.list();
assert.deepEqual(invalid, []);
assert.deepEqual(listed.map((skill) => skill.uri), [URI]);
const { skill } = await skills.get(URI);
assert.deepEqual(skill, listed[0]);
assert.deepEqual(skill.frontmatter.metadata, { since: '2026-01-31', stable: 'yes' });

// Each is verified by the client.
for (const path of ['SKILL.md', 'references/limits.md', 'logo.png']) {
  const file = await skills.read(skill, path);
  assert.equal(file.verified, true);
  assert.ok(own(path).equals(file.bytes), path);
}
await assert.rejects(skills.get('skill://none/SKILL.md'), { code: -32602 });

const children = async (uri) => (await skills.readDirectory(uri)).resources.map((child) => [child.uri, child.mimeType]);
assert.deepEqual(await children('skill://refunds'), [
  ['skill://refunds/SKILL.md', 'text/markdown'],
  ['skill://refunds/logo.png', 'image/png'],
  ['skill://refunds/references', 'inode/directory'],
]);
assert.deepEqual(await children('skill://refunds/references'), [['skill://refunds/references/limits.md', 'text/markdown']]);

const revision = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ revision, checks: ['lists, gets and verifies skills'] }));
