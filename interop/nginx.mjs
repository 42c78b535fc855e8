// nginx as a reverse proxy with its default settings, most importantly with response buffering.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Returns the command that runs `program` on `port`, in front of the server on `target`. */
export async function startNginx(program, port, target) {
  return start(program, `
      server {
        listen 127.0.0.1:${port};
        location / {
          proxy_pass http://127.0.0.1:${target};
        }
      }`);
}

/** The same for several nodes, with the settings of the deployment guide. */
export async function startNginxForNodes(program, port, targets) {
  return start(program, `
      upstream mcp {
        ${targets.map((target) => `server 127.0.0.1:${target} max_fails=0;`).join('\n        ')}
        keepalive 32;
      }
      server {
        listen 127.0.0.1:${port};
        location / {
          proxy_pass http://mcp;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_set_header Host $host;
          proxy_buffering off;
          proxy_read_timeout 1h;
        }
      }`);
}

/**
 * The same with TLS, for HTTP/2 and HTTP/1.1. It does not buffer, accepts few concurrent requests, and closes connections after
 * some requests.
 */
export async function startNginxWithTls(program, port, target, { certificate, key }) {
  return start(program, `
      server {
        listen 127.0.0.1:${port} ssl http2;
        ssl_certificate ${certificate};
        ssl_certificate_key ${key};
        http2_max_concurrent_streams ${STREAMS};
        keepalive_requests 100;
        location / {
          proxy_pass http://127.0.0.1:${target};
          proxy_http_version 1.1;
          proxy_buffering off;
          proxy_set_header X-Front-Protocol $server_protocol;
        }
      }`);
}

/** The number of concurrent HTTP/2 requests on a connection. */
const STREAMS = 16;

async function start(program, server) {
  const home = await mkdtemp(join(tmpdir(), 'oxmcp-nginx-'));
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${home}/${name};`);
  const configuration = `
    daemon off;
    master_process off;
    pid ${home}/nginx.pid;
    error_log stderr;
    events {}
    http {
      access_log off;
      ${temporary.join('\n')}
      ${server}
    }`;
  const file = join(home, 'nginx.conf');
  await writeFile(file, configuration);
  return [program, '-p', home, '-e', 'stderr', '-c', file];
}
