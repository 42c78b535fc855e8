// A simulated browser and its user: opens a URL and follows redirects, with cookies.
//
// Usage: `node browser.mjs URL [REDIRECT]`. Exits with status 0 if the last page loads or is at REDIRECT, and prints its URL.
import { writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const MAX_REDIRECTS = 12;

/** Returns the URL of the last page. A redirect to `stopAt` is the last page, and is not loaded. */
export async function browse(url, stopAt) {
  const jars = new Map();
  for (let redirects = 0; redirects < MAX_REDIRECTS; redirects += 1) {
    if (stopAt && url.startsWith(stopAt)) return url;
    const { origin } = new URL(url);
    const jar = jars.get(origin) ?? jars.set(origin, new Map()).get(origin);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: cookie ? { cookie } : {} });
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = set.match(/^([^=]+)=([^;]*)/);
      if (value) jar.set(name, value);
      else jar.delete(name);
    }
    const location = response.headers.get('location');
    if (!location) {
      if (!response.ok) throw new Error(`${url} returned ${response.status}: ${await response.text()}`);
      return url;
    }
    url = new URL(location, url).href;
  }
  throw new Error(`more than ${MAX_REDIRECTS} redirects, the last to ${url}`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeSync(1, `${await browse(...process.argv.slice(2))}\n`);
}
