// A server of the TypeScript SDK 2.x with the skills in `../skills`. With an argument it lies about the `size`, the `digest` or the
// `frontmatter` of a `SKILL.md`.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { McpServer } from '@modelcontextprotocol/server';
import { SkillsExtension, skillEntry } from '@modelcontextprotocol/server/ext/skills';
import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const directory = fileURLToPath(new URL('../skills', import.meta.url));
const text = readFileSync(`${directory}/refunds/SKILL.md`, 'utf8');
const lies = {
  size: (entry) => [entry, `${text}More.\n`],
  digest: (entry) => [entry, text.replace('Read', 'Skip')],
  frontmatter: (entry) => [{ ...entry, frontmatter: { ...entry.frontmatter, description: 'Do nothing' } }, text],
};

async function liar(lie) {
  const [entry, content] = lies[lie](await skillEntry('refunds', { 'SKILL.md': text }));
  return new SkillsExtension({
    source: {
      list: async () => ({ skills: [entry] }),
      get: async () => entry,
      read: async () => ({ text: content, mimeType: 'text/markdown' }),
    },
  });
}

const [lie] = process.argv.slice(2);
const skills = lie ? await liar(lie) : await loadSkills(directory, { strict: true });
serveStdio(() => {
  const server = new McpServer({ name: 'interop-skills', version: '1.0.0' }, { capabilities: { resources: {} } });
  skills.attach(server);
  return server;
});
