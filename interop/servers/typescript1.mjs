// A server of the TypeScript SDK 1.x, with the features of `interop-server`. The first argument names the package; `http PORT`,
// `sse PORT` or `protected PORT URL [ISSUER]` after it are the other transports.
import { setTimeout as sleep } from 'node:timers/promises';

import * as features from './features.mjs';
import { serve } from './http1.mjs';

const [name, transport, ...address] = process.argv.slice(2);
const { Server } = await import(`${name}/server/index.js`);
const { StdioServerTransport } = await import(`${name}/server/stdio.js`);
const types = await import(`${name}/types.js`);

const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const pair = object({ a: { type: 'number' }, b: { type: 'number' } });
const typed = types.LATEST_PROTOCOL_VERSION >= '2025-06-18';

const numeric = (value) => ({
  content: [{ type: 'text', text: String(value) }],
  ...(typed && { structuredContent: { result: value } }),
});
const failure = features.refused;
const levels = types.LoggingLevelSchema.options;
const notThere = (code, message) => Object.assign(new Error(message), { code });

/** A server for one session. */
function offer() {
  const memos = new features.Memos();

  const tools = {
    add: {
      inputSchema: pair,
      call: ({ a, b }) => (typeof a === 'number' && typeof b === 'number' ? numeric(a + b) : failure('/a must be a number')),
    },
    divide: { inputSchema: pair, call: ({ a, b }) => (b === 0 ? failure('b must not be 0') : numeric(a / b)) },
    echo: { inputSchema: object({ text: { type: 'string' } }), call: ({ text }) => ({ content: [{ type: 'text', text }] }) },
    touch: {
      inputSchema: object({}),
      async call() {
        memos.touch();
        await server.sendResourceUpdated({ uri: 'memo://greeting' });
        return features.said('touched');
      },
    },
    shout: {
      inputSchema: object({}),
      async call(_args, _meta, { notify }) {
        for (const [level, msg] of [['info', 'quiet'], ['warning', 'loud']]) {
          if (levels.indexOf(level) < levels.indexOf(loudness)) continue;
          await notify({ method: 'notifications/message', params: { level, data: { msg } } });
        }
        return features.said('shouted');
      },
    },
    think: {
      inputSchema: object({ question: { type: 'string' } }),
      call: async ({ question }, _meta, { related }) =>
        features.thought(await server.createMessage(features.question(question), related)),
    },
    // Messages that are not related to the call are sent on the stream of the session, if there are several.
    where: { inputSchema: object({}), call: async () => features.places(await server.listRoots()) },
    ...(typed && {
      delete: {
        inputSchema: object({ project: { type: 'string' } }),
        async call(_args, _meta, { related }) {
          const which = await server.elicitInput(features.which, related);
          if (which.action !== 'accept') return failure('nothing was deleted');
          const { name } = which.content;
          const sure = await server.elicitInput(features.sure(name), related);
          return sure.content?.sure ? features.said(`deleted ${name}, counted once`) : failure('nothing was deleted');
        },
      },
    }),
    slow: {
      inputSchema: object({ steps: { type: 'integer' } }),
      async call({ steps }, { progressToken }, { signal, notify }) {
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

  let loudness = 'debug';

  const capabilities = { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {}, logging: {} };
  const server = new Server({ name: 'interop-typescript1', version: '1.0.0' }, { capabilities });

  server.setRequestHandler(types.ListToolsRequestSchema, () => ({
    tools: Object.entries(tools).map(([name, { inputSchema }]) => ({
      name,
      inputSchema,
      ...(typed && inputSchema === pair && { outputSchema: object({ result: { type: 'number' } }) }),
    })),
  }));
  server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) => {
    const tool = tools[params.name];
    if (!tool) throw notThere(-32602, `Unknown tool: ${params.name}`);
    const notify = extra.sendNotification ?? ((message) => server.notification(message));
    const related = { relatedRequestId: extra.requestId };
    return tool.call(params.arguments ?? {}, params._meta ?? {}, { signal: extra.signal, notify, related });
  });

  server.setRequestHandler(types.ListPromptsRequestSchema, () => ({
    prompts: [{ name: 'review', arguments: [{ name: 'code', required: true }, { name: 'language' }] }],
  }));
  server.setRequestHandler(types.GetPromptRequestSchema, ({ params }) => {
    if (params.arguments?.code === undefined) throw notThere(-32602, 'the argument code is missing');
    return features.review(params.arguments);
  });

  server.setRequestHandler(types.ListResourcesRequestSchema, () => ({
    resources: ['greeting', 'pixel'].map((name) => ({ name, uri: `memo://${name}` })),
  }));
  server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ name: 'page', uriTemplate: features.TEMPLATE }],
  }));
  server.setRequestHandler(types.ReadResourceRequestSchema, ({ params: { uri } }) => {
    const [, topic, page] = /^memo:\/\/pages\/([^/]+)\/([^/]+)$/.exec(uri) ?? [];
    const memo = topic ? memos.page(uri, decodeURIComponent(topic), page) : memos.read(uri);
    if (!memo) throw notThere(-32002, 'memo not found');
    return { contents: [memo] };
  });
  server.setRequestHandler(types.SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(types.UnsubscribeRequestSchema, () => ({}));
  server.setRequestHandler(types.CompleteRequestSchema, ({ params: { ref, argument } }) => {
    const known = ref.type === 'ref/prompt' ? features.LANGUAGES : features.TOPICS;
    return { completion: { values: features.startingWith(known)(argument.value) } };
  });
  server.setRequestHandler(types.SetLevelRequestSchema, ({ params }) => {
    loudness = params.level;
    return {};
  });
  return server;
}

if (transport) await serve(name, transport, address, offer);
else await offer().connect(new StdioServerTransport());
