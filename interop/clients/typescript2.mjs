// The TypeScript SDK 2.x. MODE is `legacy`, `auto` or a modern revision to insist on.
import assert from 'node:assert/strict';

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { main, overHttp } from './checks.mjs';
import { roots, sample } from './features.mjs';
import { Login } from './login.mjs';

await main(async (mode, command, args, person) => {
  const client = new Client(
    { name: 'interop-typescript2', version: '1.0.0' },
    {
      capabilities: { elicitation: {}, sampling: {}, roots: {} },
      versionNegotiation: { mode: mode.startsWith('2') ? { pin: mode } : mode },
    },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => person.elicit(params));
  client.setRequestHandler('sampling/createMessage', ({ params }) => sample(params));
  client.setRequestHandler('roots/list', () => roots);
  const Http = command === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
  const login = command === 'login' ? Object.assign(new Login(mode !== 'legacy'), { finish: (parameters) => parameters }) : undefined;
  let transport;
  const connect = () => {
    // A rejected transport cannot be restarted.
    transport = overHttp(command)
      ? new Http(new URL(args[0]), login && { authProvider: login })
      : new StdioClientTransport({ command, args });
    return client.connect(transport);
  };
  await (login ? login.run(() => transport, connect) : connect());
  const legacy = client.getProtocolEra() === 'legacy';
  const peer = {
    revision: client.getNegotiatedProtocolVersion(),
    listTools: async () => (await client.listTools()).tools,
    call: (name, args, { meta, ...options } = {}) => client.callTool({ name, arguments: args, _meta: meta }, options),
    ping: legacy ? () => client.ping() : undefined,
    onToolsChanged: async (changed) => {
      client.setNotificationHandler('notifications/tools/list_changed', changed);
      if (legacy) return undefined;
      const subscription = await client.listen({ toolsListChanged: true, promptsListChanged: true });
      assert.equal(subscription.honoredFilter.toolsListChanged, true);
      return async () => {
        await subscription.close();
        assert.equal(await subscription.closed, 'local');
      };
    },
    prompts: async () => (await client.listPrompts()).prompts,
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    resources: async () => (await client.listResources()).resources,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    read: (uri) => client.readResource({ uri }),
    // The client reports the modern code, whichever code the server sends.
    notFound: -32602,
    complete: async (ref, argument) => (await client.complete({ ref, argument })).completion,
    watch: async (uri, updated) => {
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => updated(params.uri));
      if (legacy) {
        await client.subscribeResource({ uri });
        return () => client.unsubscribeResource({ uri });
      }
      const subscription = await client.listen({ resourceSubscriptions: [uri] });
      assert.deepEqual(subscription.honoredFilter.resourceSubscriptions, [uri]);
      return () => subscription.close();
    },
    logging: legacy ? {} : { meta: { 'io.modelcontextprotocol/logLevel': 'warning' } },
    logs: async (level, run) => {
      const heard = [];
      client.setNotificationHandler('notifications/message', ({ params }) => { heard.push(params); });
      if (legacy) await client.setLoggingLevel(level);
      await run();
      return heard;
    },
    close: async () => {
      await transport.terminateSession?.();
      await client.close();
    },
  };
  return login ? login.wrap(peer, () => transport) : peer;
});
