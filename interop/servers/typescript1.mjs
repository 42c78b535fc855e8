// A server of the TypeScript SDK 1.x, with the tools of `interop-server`. The argument names the package.
import { setTimeout as sleep } from 'node:timers/promises';

const name = process.argv[2];
const { Server } = await import(`${name}/server/index.js`);
const { StdioServerTransport } = await import(`${name}/server/stdio.js`);
const { CallToolRequestSchema, ListToolsRequestSchema, LATEST_PROTOCOL_VERSION } = await import(`${name}/types.js`);

const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const pair = object({ a: { type: 'number' }, b: { type: 'number' } });
const typed = LATEST_PROTOCOL_VERSION >= '2025-06-18';

const numeric = (value) => ({
  content: [{ type: 'text', text: String(value) }],
  ...(typed && { structuredContent: { result: value } }),
});
const failure = (text) => ({ content: [{ type: 'text', text }], isError: true });

const tools = {
  add: {
    inputSchema: pair,
    call: ({ a, b }) => (typeof a === 'number' && typeof b === 'number' ? numeric(a + b) : failure('/a must be a number')),
  },
  divide: { inputSchema: pair, call: ({ a, b }) => (b === 0 ? failure('b must not be 0') : numeric(a / b)) },
  echo: { inputSchema: object({ text: { type: 'string' } }), call: ({ text }) => ({ content: [{ type: 'text', text }] }) },
  slow: {
    inputSchema: object({ steps: { type: 'integer' } }),
    async call({ steps }, { progressToken }, signal, notify) {
      for (let progress = 1; progress <= steps && !signal.aborted; progress += 1) {
        if (progressToken !== undefined) {
          await notify({ method: 'notifications/progress', params: { progressToken, progress, total: steps } });
        }
        await sleep(20);
      }
      return { content: [{ type: 'text', text: 'done' }] };
    },
  },
};

const server = new Server({ name: 'interop-typescript1', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.entries(tools).map(([name, { inputSchema }]) => ({
    name,
    inputSchema,
    ...(typed && inputSchema === pair && { outputSchema: object({ result: { type: 'number' } }) }),
  })),
}));
server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) => {
  const tool = tools[params.name];
  if (!tool) throw Object.assign(new Error(`Unknown tool: ${params.name}`), { code: -32602 });
  return tool.call(params.arguments ?? {}, params._meta ?? {}, signal, (message) => server.notification(message));
});
await server.connect(new StdioServerTransport());
