// A proxy that requires credentials.
import { Server } from 'proxy-chain';

const [USER, PASSWORD] = ['moon', 'secret!'];

/** Starts the proxy. Returns its URL; `passed` is called for each request and each tunnel. */
export async function startProxy(passed) {
  const server = new Server({
    port: 0,
    host: '127.0.0.1',
    prepareRequestFunction({ request, username, password, isHttp }) {
      const isKnown = username === USER && password === PASSWORD;
      passed(isHttp ? 'a request' : 'a tunnel', isKnown ? '' : `without credentials: ${request.url}`);
      return { requestAuthentication: !isKnown };
    },
  });
  await server.listen();
  return `http://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${server.port}`;
}
