// Certificates of a private authority, which only programs trust that are configured for it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Creates an authority and a certificate for this machine. Returns the paths of their files. */
export function makeCertificates() {
  const home = mkdtempSync(join(tmpdir(), 'oxmcp-tls-'));
  const file = (name) => join(home, name);
  const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const key = (name) => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file(name)];
  const valid = ['-days', '2'];
  openssl('req', '-x509', ...key('authority.key'), '-out', file('authority.pem'), ...valid, '-subj', '/CN=interop authority');
  openssl('req', ...key('server.key'), '-out', file('server.csr'), '-subj', '/CN=interop server');
  writeFileSync(file('server.ext'), 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n');
  const signed = ['-CA', file('authority.pem'), '-CAkey', file('authority.key'), '-CAcreateserial', '-extfile', file('server.ext')];
  openssl('x509', '-req', '-in', file('server.csr'), ...signed, '-out', file('server.pem'), ...valid);
  return { authority: file('authority.pem'), certificate: file('server.pem'), key: file('server.key') };
}

/** The TLS options of a Node server. */
export function read({ certificate, key }) {
  return { cert: readFileSync(certificate), key: readFileSync(key) };
}
