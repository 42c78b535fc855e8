// nginx as it is in front of many a server: all that it does by itself it does, above all to keep answers back until it
// has enough of them.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Returns the command that runs `program` on `port`, in front of the server on `target`. */
export async function startNginx(program, port, target) {
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
      server {
        listen 127.0.0.1:${port};
        location / {
          proxy_pass http://127.0.0.1:${target};
        }
      }
    }`;
  const file = join(home, 'nginx.conf');
  await writeFile(file, configuration);
  return [program, '-p', home, '-e', 'stderr', '-c', file];
}
