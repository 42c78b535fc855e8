// The TypeScript SDK 1.x. MODE names the package: `@modelcontextprotocol/sdk` or one of the older lines in package.json.
import { main } from './checks.mjs';

await main(async (name, command, args) => {
  const { Client } = await import(`${name}/client/index.js`);
  const { StdioClientTransport } = await import(`${name}/client/stdio.js`);

  // The client keeps no record of the revision that was agreed on, so it is read from the answer to `initialize`.
  class Transport extends StdioClientTransport {
    async start() {
      const deliver = this.onmessage;
      this.onmessage = (message, ...rest) => {
        this.revision ??= message.result?.protocolVersion;
        deliver(message, ...rest);
      };
      await super.start();
    }
  }

  const transport = new Transport({ command, args });
  const client = new Client({ name: 'interop-typescript1', version: '1.0.0' }, { capabilities: {} });
  await client.connect(transport);
  return {
    revision: transport.revision,
    listTools: async () => (await client.listTools()).tools,
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    ping: () => client.ping(),
    close: () => client.close(),
  };
});
