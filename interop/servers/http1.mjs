// HTTP by hand for servers of the TypeScript SDK 1.x: a transport for each session.
import { randomUUID } from 'node:crypto';
import http from 'node:http';

/** Serves on the port of this machine. `transport` is `http`, or `sse` for that of 2024-11-05; `offer` makes a server. */
export async function serve(name, transport, port, offer) {
  const answer = await (transport === 'sse' ? sse(name, offer) : streamable(name, offer));
  const server = http.createServer((request, response) => {
    answer(request, response).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  server.listen(Number(port), '127.0.0.1');
}

async function streamable(name, offer) {
  const { StreamableHTTPServerTransport } = await import(`${name}/server/streamableHttp.js`);
  const sessions = new Map();

  async function open() {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    await offer().connect(transport);
    return transport;
  }

  return async (request, response) => {
    const id = request.headers['mcp-session-id'];
    if (id && !sessions.has(id)) response.writeHead(404).end();
    else await (sessions.get(id) ?? (await open())).handleRequest(request, response);
  };
}

/** Streams at `/sse`, and messages at `/messages`. */
async function sse(name, offer) {
  const { SSEServerTransport } = await import(`${name}/server/sse.js`);
  const sessions = new Map();

  return async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    const session = sessions.get(searchParams.get('sessionId'));
    if (request.method === 'GET' && pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', response);
      sessions.set(transport.sessionId, transport);
      await offer().connect(transport);
    } else if (request.method === 'POST' && session) await session.handlePostMessage(request, response);
    else response.writeHead(404).end();
  };
}
