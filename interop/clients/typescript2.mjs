// The TypeScript SDK 2.x. MODE is `legacy`, `auto` or a modern revision to insist on.
import assert from 'node:assert/strict';

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { main } from './checks.mjs';

await main(async (mode, command, args) => {
  const client = new Client(
    { name: 'interop-typescript2', version: '1.0.0' },
    { versionNegotiation: { mode: mode.startsWith('2') ? { pin: mode } : mode } },
  );
  await client.connect(new StdioClientTransport({ command, args }));
  return {
    revision: client.getNegotiatedProtocolVersion(),
    listTools: async () => (await client.listTools()).tools,
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
    ping: client.getProtocolEra() === 'legacy' ? () => client.ping() : undefined,
    onToolsChanged: async (changed) => {
      client.setNotificationHandler('notifications/tools/list_changed', changed);
      if (client.getProtocolEra() === 'legacy') return undefined;
      const subscription = await client.listen({ toolsListChanged: true, promptsListChanged: true });
      assert.deepEqual(subscription.honoredFilter, { toolsListChanged: true });
      return async () => {
        await subscription.close();
        assert.equal(await subscription.closed, 'local');
      };
    },
    close: () => client.close(),
  };
});
