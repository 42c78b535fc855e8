// HTTP for servers of the TypeScript SDK 1.x, which has no HTTP server: one transport for each session.
import { randomUUID } from 'node:crypto';
import http from 'node:http';

import { SCOPES, metadataOf, serveProtected, verifierOf } from './protection.mjs';

/**
 * Serves on a local port. `transport` is `http`, `protected` (by tokens of `issuer` for `url`), or `sse` (the transport of
 * 2024-11-05); `offer` creates a server.
 */
export async function serve(name, transport, [port, url, issuer], offer) {
  if (transport === 'protected') return protect(name, port, url, issuer, await streamable(name, offer));
  const answer = await (transport === 'sse' ? sse(name, offer) : streamable(name, offer));
  const server = http.createServer((request, response) => {
    answer(request, response).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  server.listen(Number(port), '127.0.0.1');
}

/** Without an issuer, the server is its own issuer, with the router and the demo provider of the SDK. */
async function protect(name, port, url, issuer, answer) {
  const router = await import(`${name}/server/auth/router.js`);
  const { requireBearerAuth } = await import(`${name}/server/auth/middleware/bearerAuth.js`);
  const { InvalidTokenError } = await import(`${name}/server/auth/errors.js`);
  const resourceServerUrl = new URL(url);
  const resourceMetadataUrl = router.getOAuthProtectedResourceMetadataUrl(resourceServerUrl);
  const guardOf = (verifier) => (requiredScopes) => requireBearerAuth({ verifier, requiredScopes, resourceMetadataUrl });
  if (issuer) {
    const oauthMetadata = await metadataOf(issuer);
    const metadata = router.mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl, scopesSupported: SCOPES });
    const verifier = verifierOf(issuer, url, (message) => new InvalidTokenError(message));
    return serveProtected(port, metadata, guardOf(verifier), answer);
  }
  const { DemoInMemoryAuthProvider } = await import(`${name}/examples/server/demoInMemoryOAuthProvider.js`);
  const provider = new DemoInMemoryAuthProvider((resource) => resource?.href === url);
  const issuerUrl = new URL(resourceServerUrl.origin);
  const own = router.mcpAuthRouter({ provider, issuerUrl, resourceServerUrl, scopesSupported: SCOPES });
  return serveProtected(port, own, guardOf(provider), answer);
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

  return async (request, response, body) => {
    const id = request.headers['mcp-session-id'];
    if (id && !sessions.has(id)) response.writeHead(404).end();
    else await (sessions.get(id) ?? (await open())).handleRequest(request, response, body);
  };
}

/** Serves streams at `/sse` and messages at `/messages`. */
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
