// The login of the TypeScript clients with their SDKs: an in-memory provider, and a user who agrees at once.
import { browse } from '../authorization/browser.mjs';

const REDIRECT = 'http://127.0.0.1:4711/callback';
/** How long our server caches the introspection of a token. */
const CACHE_LIFETIME = 1200;

/** The `OAuthClientProvider` of an SDK. */
export class Login {
  logins = 0;

  /** With a document, the client's ID is a URL; otherwise the SDK registers the client, only for the scopes of the first login. */
  constructor(hasDocument) {
    this.clientMetadataUrl = hasDocument ? 'https://client.example/public.json' : undefined;
  }

  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: 'interop client',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  clientInformation = () => this.client;
  saveClientInformation = (client) => { this.client = client; };
  tokens = () => this.kept;
  saveTokens = (tokens) => { this.kept = tokens; };
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => { this.verifier = verifier; };
  discoveryState = () => this.discovered;
  saveDiscoveryState = (discovered) => { this.discovered = discovered; };
  invalidateCredentials = (what) => { if (what === 'all' || what === 'tokens') this.kept = undefined; };

  async redirectToAuthorization(url) {
    this.logins += 1;
    // A reopened stream may require a login, too.
    const { verifier } = this;
    this.answer = { verifier, parameters: new URL(await browse(url.href, REDIRECT)).searchParams };
  }

  /** Runs an operation that needs a token, and again after a login if the SDK requires one. */
  async run(transport, work) {
    try {
      return await work();
    } catch (error) {
      const { answer } = this;
      if (!answer) throw error;
      this.answer = undefined;
      this.verifier = answer.verifier;
      await transport().finishAuth(this.finish(answer.parameters));
      return work();
    }
  }

  /** The argument for the SDK: for 1.x only the code. */
  finish = (parameters) => parameters.get('code');

  /** Wraps a peer: each of its requests may need a login. */
  wrap(peer, transport) {
    const methods = Object.entries(peer).filter(([, value]) => typeof value === 'function');
    const wrapped = methods.map(([name, method]) => [name, (...args) => this.run(transport, () => method(...args))]);
    return { ...peer, ...Object.fromEntries(wrapped), login: this };
  }

  /** Revokes the tokens at the issuer, and waits until our server no longer caches them. */
  async revoke() {
    await browse(`${process.env.ISSUER}/administrator/revoke`);
    await new Promise((resolve) => { setTimeout(resolve, CACHE_LIFETIME); });
  }
}
