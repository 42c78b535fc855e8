// An authorization server with npm `oidc-provider`, as strict as the specification allows. Its user agrees to everything.
import { createServer } from 'node:http';
import { generateKeyPairSync, randomBytes } from 'node:crypto';

import { Provider, errors } from 'oidc-provider';

/** The lifetime of access tokens in seconds: self-contained tokens expire soon, others are revoked. */
const LIFETIMES = { jwt: 5, bound: 5, opaque: 600 };
const SCOPES = ['mcp:basic', 'mcp:write'];
/** The URL of the metadata of a client whose ID is a URL. No server is there: the `fetch` of this server returns the document. */
const DOCUMENTS = 'https://client.example/';
const SECRET = 'a secret only for interop clients';

function keyPair(type, options, id) {
  const { publicKey, privateKey } = generateKeyPairSync(type, options);
  const jwk = { ...privateKey.export({ format: 'jwk' }), kid: id, use: 'sig' };
  return { jwk, pem: privateKey.export({ format: 'pem', type: 'pkcs8' }), own: { ...publicKey.export({ format: 'jwk' }), kid: id, use: 'sig' } };
}

/** The metadata document of a client whose ID is its URL. */
function document(url, jwks) {
  const hasKey = url.endsWith('/key.json');
  const how = hasKey ? { token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'ES256', jwks } : { token_endpoint_auth_method: 'none' };
  const metadata = {
    client_id: url,
    client_name: 'interop client',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    ...how,
  };
  return new Response(JSON.stringify(metadata), { headers: { 'content-type': 'application/json' } });
}

function clients(jwks) {
  const service = { redirect_uris: [], response_types: [], grant_types: ['client_credentials'] };
  return [
    { client_id: 'service', client_secret: SECRET, token_endpoint_auth_method: 'client_secret_basic', ...service },
    { client_id: 'service-key', token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'ES256', jwks, ...service },
    { client_id: 'mcp-server', client_secret: SECRET, token_endpoint_auth_method: 'client_secret_basic', redirect_uris: [], response_types: [], grant_types: [] },
  ];
}

/**
 * Starts the server on a local port. `tokens` is the kind of tokens: `jwt`, `opaque`, or `bound` to a key with DPoP and nonces.
 * Their audience is `resource`. `say` receives a line for each request. Returns the issuer, and the variables for clients.
 */
export async function startIssuer({ tokens, resource, say }) {
  const server = createServer();
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const client = keyPair('ec', { namedCurve: 'P-256' }, 'client');
  const info = {
    scope: SCOPES.join(' '),
    audience: resource,
    accessTokenTTL: LIFETIMES[tokens],
    accessTokenFormat: tokens === 'opaque' ? 'opaque' : 'jwt',
    ...(tokens !== 'opaque' && { jwt: { sign: { alg: 'ES256' } } }),
  };
  const provider = new Provider(issuer, {
    jwks: { keys: [keyPair('ec', { namedCurve: 'P-256' }, 'ec').jwk, keyPair('rsa', { modulusLength: 2048 }, 'rsa').jwk] },
    clients: clients({ keys: [client.own] }),
    scopes: ['openid', 'offline_access', ...SCOPES],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    enabledJWA: { dPoPSigningAlgValues: ['ES256', 'EdDSA'] },
    ttl: { AccessToken: LIFETIMES[tokens], RefreshToken: 60, Grant: 600, Session: 600, Interaction: 600 },
    issueRefreshToken: (_ctx, client, code) => client.grantTypeAllowed('refresh_token') && code.scopes.has('offline_access'),
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    fetch: async (url) => {
      const href = String(url);
      if (href.startsWith(DOCUMENTS)) return document(href, { keys: [client.own] });
      throw new Error(`unexpected fetch of ${href}`);
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      dPoP: { enabled: true, ...(tokens === 'bound' && { nonceSecret: randomBytes(32), requireNonce: () => true }) },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => false,
        getResourceServerInfo: (_ctx, wanted) => {
          if (wanted === resource) return info;
          throw new errors.InvalidTarget();
        },
      },
    },
  });
  let last;
  provider.on('access_token.saved', (token) => { last = token; });
  provider.use(async (ctx, next) => {
    await next();
    const grant = ctx.oidc?.params?.grant_type ?? '';
    const whose = ctx.oidc?.client && `of ${ctx.oidc.client.clientId}`;
    const words = [ctx.method, ctx.path, grant, whose, '->', ctx.status, ctx.body?.error, ctx.body?.error_description];
    say(`issuer: ${words.filter((word) => word !== undefined && word !== '').join(' ')}`);
  });
  const answer = provider.callback();
  server.on('request', (request, response) => {
    const handle = request.url.startsWith('/interaction/') ? agree(provider, request, response)
      : request.url === '/administrator/revoke' ? revoke(issuer, last, response)
        : answer(request, response);
    Promise.resolve(handle).catch((error) => {
      say(`issuer: ${request.method} ${request.url} failed: ${error.stack}`);
      response.destroy();
    });
  });
  return { issuer, variables: { CLIENT_KEY: client.pem, CLIENT_SECRET: SECRET } };
}

/** A user logs in, and agrees to every request. */
async function agree(provider, request, response) {
  const { prompt, params, grantId, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') return provider.interactionFinished(request, response, { login: { accountId: 'ann' } });
  const whose = { accountId: session.accountId, clientId: params.client_id };
  const grant = (grantId && (await provider.Grant.find(grantId))) || new provider.Grant(whose);
  const { missingOIDCScope, missingResourceScopes = {} } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes)) grant.addResourceScope(resource, scopes.join(' '));
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

/** Revokes the latest access token, as its client could. */
async function revoke(issuer, token, response) {
  const body = new URLSearchParams({ token: token.jti, token_type_hint: 'access_token', client_id: token.clientId });
  const { status } = await fetch(`${issuer}/token/revocation`, { method: 'POST', body });
  response.writeHead(status).end();
}
