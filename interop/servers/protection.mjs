// Protection of the TypeScript servers with the middleware of their SDKs: tokens come from an issuer, and one tool needs another
// scope.
import express from 'express';
import { createRemoteJWKSet, jwtVerify } from 'jose';

export const SCOPES = ['mcp:basic', 'mcp:write'];
const needed = (body) => (body?.method === 'tools/call' && body.params.name === 'touch' ? SCOPES : ['mcp:basic']);

/** Verifies tokens of the issuer for the URL; `refusal` creates the error that the SDK expects. */
export function verifierOf(issuer, url, refusal) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  return {
    async verifyAccessToken(token) {
      const { payload } = await jwtVerify(token, keys, { issuer, audience: url, typ: 'at+jwt' }).catch((error) => {
        throw refusal(error.message);
      });
      const { client_id: clientId, scope, exp: expiresAt, aud } = payload;
      return { token, clientId, scopes: scope.split(' '), expiresAt, resource: new URL(aud) };
    },
  };
}

/** The metadata of the issuer. */
export async function metadataOf(issuer) {
  return (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
}

/** Serves requests that `guard` permits at `/mcp`; it is given the needed scopes. `router` serves the public pages. */
export function serveProtected(port, router, guard, answer) {
  const app = express();
  app.use(router);
  app.all(
    '/mcp',
    express.json(),
    (request, response, next) => guard(needed(request.body))(request, response, next),
    (request, response, next) => { answer(request, response, request.body).catch(next); },
  );
  app.listen(Number(port), '127.0.0.1');
}
