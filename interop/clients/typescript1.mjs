// The TypeScript SDK 1.x. MODE names the package: `@modelcontextprotocol/sdk` or one of the older lines in package.json.
import { main, overHttp } from './checks.mjs';
import { roots, sample } from './features.mjs';
import { Login } from './login.mjs';

const MODULES = { http: 'streamableHttp', login: 'streamableHttp', nodes: 'streamableHttp', rolling: 'streamableHttp', sse: 'sse' };

async function transportClass(name, command) {
  const module = await import(`${name}/client/${MODULES[command] ?? 'stdio'}.js`);
  return module.StreamableHTTPClientTransport ?? module.SSEClientTransport ?? module.StdioClientTransport;
}

await main(async (name, command, args, person) => {
  const { Client } = await import(`${name}/client/index.js`);
  const types = await import(`${name}/types.js`);

  const Base = await transportClass(name, command);
  // The client does not keep the negotiated revision, so it is read from the response to `initialize`.
  class Transport extends Base {
    async start() {
      const deliver = this.onmessage;
      this.onmessage = (message, ...rest) => {
        this.revision ??= message.result?.protocolVersion;
        deliver(message, ...rest);
      };
      await super.start();
    }
  }

  const asks = 'ElicitRequestSchema' in types;
  const capabilities = { ...(asks && { elicitation: {} }), sampling: {}, roots: {} };
  const login = command === 'login' ? new Login(true) : undefined;
  const { BROWSER, ISSUER } = process.env;
  // Child processes inherit only the variables that the SDK knows.
  const server = overHttp(command) ? new URL(args[0]) : { command, args, ...(ISSUER && { env: { BROWSER } }) };
  const open = () => new Transport(server, login && { authProvider: login });
  let transport;
  const client = new Client({ name: 'interop-typescript1', version: '1.0.0' }, { capabilities });
  if (asks) client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => person.elicit(params));
  client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => sample(params));
  client.setRequestHandler(types.ListRootsRequestSchema, () => roots);
  const connect = () => {
    // A rejected transport cannot be restarted.
    transport = open();
    return client.connect(transport);
  };
  await (login ? login.run(() => transport, connect) : connect());
  const peer = {
    revision: transport.revision,
    listTools: async () => (await client.listTools()).tools,
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    ping: () => client.ping(),
    prompts: async () => (await client.listPrompts()).prompts,
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    resources: async () => (await client.listResources()).resources,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    read: (uri) => client.readResource({ uri }),
    complete: async (ref, argument) => (await client.complete({ ref, argument })).completion,
    watch: async (uri, updated) => {
      client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, ({ params }) => updated(params.uri));
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    },
    logs: async (level, run) => {
      const heard = [];
      client.setNotificationHandler(types.LoggingMessageNotificationSchema, ({ params }) => { heard.push(params); });
      await client.setLoggingLevel(level);
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
