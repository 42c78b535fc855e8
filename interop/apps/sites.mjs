// The sites of the tests: a page, a proxy to a server, a sandbox on another origin, and origins that record what arrives.
import http from 'node:http';

/** Starts an HTTP server on a free port of this machine, and returns its origin. */
async function listen(handler) {
  const server = http.createServer(handler);
  server.on('upgrade', (request, socket) => {
    handler(request);
    socket.destroy();
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => server.closeAllConnections() ?? server.close() };
}

/** An origin that records the paths of all requests that arrive, and allows every page to read its answers. */
export async function recorder() {
  const paths = [];
  const site = await listen((request, response) => {
    paths.push(request.url);
    response?.writeHead(200, { 'access-control-allow-origin': '*', 'content-type': 'text/plain' }).end('arrived');
  });
  return { ...site, paths };
}

/** A page at `/`, its script, and a proxy at `/mcp` to the server at `port`. */
export async function page(script, port) {
  const forward = (request, response) => {
    const { host: _host, origin: _origin, ...headers } = request.headers;
    const to = http.request({ host: '127.0.0.1', port, path: '/mcp', method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    to.on('error', () => response.destroy());
    request.pipe(to);
  };
  return listen((request, response) => {
    if (request.url === '/mcp') return forward(request, response);
    if (request.url === '/host.js') return response.writeHead(200, { 'content-type': 'text/javascript' }).end(script);
    return response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><script type="module" src="host.js"></script><body></body>');
  });
}

/** The sandbox proxy of oxmcp-apps for the page at `host`, with a policy that allows nothing external. */
export async function sandbox(proxy, host) {
  const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";
  const headers = { 'content-type': 'text/html', 'content-security-policy': policy };
  return listen((_, response) => response?.writeHead(200, headers).end(proxy.replace('HOST_ORIGIN', host)));
}

/** A page that shows another in a frame. */
export async function framing(url) {
  return listen((_, response) => response?.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><iframe src="${url}"></iframe>`));
}
