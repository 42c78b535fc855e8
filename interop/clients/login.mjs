// The login of the TypeScript clients, by their SDKs: what these ask of a program, in memory, and a person who agrees at once.
import { browse } from '../authorization/browser.mjs';

const REDIRECT = 'http://127.0.0.1:4711/callback';
/** How long our server does not ask again about a token. */
const CACHE_LIFETIME = 1200;

/** What an SDK calls an OAuthClientProvider. */
export class Login {
  logins = 0;

  /** With a document the client's id is a URL; else it is registered, by the SDKs for the scopes of the first login alone. */
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
    // A stream that is opened anew may send the person to log in as well.
    const { verifier } = this;
    this.answer = { verifier, parameters: new URL(await browse(url.href, REDIRECT)).searchParams };
  }

  /** Does what needs a token, and once more where the SDK has sent the person to log in. */
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

  /** What the SDK wants of the answer: the 1.x the code alone. */
  finish = (parameters) => parameters.get('code');

  /** The peer, whose every request may need a login. */
  wrap(peer, transport) {
    const methods = Object.entries(peer).filter(([, value]) => typeof value === 'function');
    const wrapped = methods.map(([name, method]) => [name, (...args) => this.run(transport, () => method(...args))]);
    return { ...peer, ...Object.fromEntries(wrapped), login: this };
  }

  /** The tokens are revoked at the issuer, and our server has forgotten what it knew of them. */
  async revoke() {
    await browse(`${process.env.ISSUER}/administrator/revoke`);
    await new Promise((resolve) => { setTimeout(resolve, CACHE_LIFETIME); });
  }
}
