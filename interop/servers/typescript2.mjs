// A server of the TypeScript SDK 2.x, with the tools of `interop-server`. It serves both eras.
import { setTimeout as sleep } from 'node:timers/promises';

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const pair = z.object({ a: z.number(), b: z.number() });
const outputSchema = z.object({ result: z.number() });
const numeric = (value) => ({ content: [{ type: 'text', text: String(value) }], structuredContent: { result: value } });

serveStdio(() => {
  const server = new McpServer({ name: 'interop-typescript2', version: '1.0.0' }, { capabilities: { tools: {} } });

  server.registerTool('add', { description: 'Add two numbers', inputSchema: pair, outputSchema }, ({ a, b }) => numeric(a + b));

  server.registerTool('divide', { description: 'Divide a by b', inputSchema: pair, outputSchema }, ({ a, b }) =>
    b === 0 ? { content: [{ type: 'text', text: 'b must not be 0' }], isError: true } : numeric(a / b));

  server.registerTool('echo', { description: 'Say it again', inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
    content: [{ type: 'text', text }],
  }));

  server.registerTool('grow', { description: 'Add a tool', inputSchema: z.object({}) }, () => {
    server.registerTool('grown', { description: 'Say that it is there', inputSchema: z.object({}) }, () => ({
      content: [{ type: 'text', text: 'here' }],
    }));
    return { content: [{ type: 'text', text: 'grown' }] };
  });

  server.registerTool(
    'slow',
    { description: 'Take some time', inputSchema: z.object({ steps: z.int() }) },
    async ({ steps }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (let progress = 1; progress <= steps && !mcpReq.signal.aborted; progress += 1) {
        if (progressToken !== undefined) {
          await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: steps } });
        }
        await sleep(20);
      }
      return { content: [{ type: 'text', text: 'done' }] };
    },
  );
  return server;
});
