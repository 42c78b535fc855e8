// A host page on the `app-bridge` of ext-apps. The tests bundle it, and drive it through `window.host`.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  AppBridge, buildAllowAttribute, getToolUiResourceUri, isToolVisibilityAppOnly, PostMessageTransport, RESOURCE_MIME_TYPE,
} from '@modelcontextprotocol/ext-apps/app-bridge';

const client = new Client({ name: 'ext-apps-host', version: '1.0.0' }, {
  capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [RESOURCE_MIME_TYPE] } } },
  versionNegotiation: { mode: 'auto' },
});
await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', location.href)));
const { tools } = await client.listTools();

/** What the view has told the host. */
const heard = { sizes: [], opened: [], contexts: [], messages: [], initialized: 0 };
let bridge;
let frame;

/** Waits for the sandbox proxy and gives it the app. */
async function load(url, { html, meta }) {
  frame = document.createElement('iframe');
  frame.setAttribute('sandbox', 'allow-scripts allow-same-origin allow-forms');
  frame.setAttribute('allow', buildAllowAttribute(meta?.permissions));
  document.body.append(frame);
  const ready = new Promise((resolve) => { bridge.onsandboxready = resolve; });
  frame.src = url;
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  await ready;
  await bridge.sendSandboxResourceReady({ html, csp: meta?.csp, permissions: meta?.permissions });
}

window.host = {
  heard,
  revision: () => client.getNegotiatedProtocolVersion(),
  /** The tools that an agent may call. */
  forAgent: () => tools.filter((tool) => !isToolVisibilityAppOnly(tool)).map((tool) => tool.name).sort(),
  appInfo: () => bridge.getAppVersion(),

  /** Shows the app of a tool in the sandbox at `url`, and calls the tool. */
  async show(name, args, url) {
    const tool = tools.find((it) => it.name === name);
    const uri = getToolUiResourceUri(tool);
    const { contents: [page] } = await client.readResource({ uri });
    if (page.mimeType !== RESOURCE_MIME_TYPE) throw new Error(`not an app: ${page.mimeType}`);
    bridge = new AppBridge(
      client,
      { name: 'ext-apps-host', version: '1.0.0' },
      { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, updateModelContext: { text: {} }, message: { text: {} } },
      { hostContext: { theme: 'dark', displayMode: 'inline', toolInfo: { tool } } },
    );
    bridge.onsizechange = (size) => {
      heard.sizes.push(size);
      frame.style.height = `${size.height}px`;
    };
    const initialized = new Promise((resolve) => {
      bridge.oninitialized = () => {
        heard.initialized += 1;
        resolve();
      };
    });
    await load(url, { html: page.text, meta: page._meta?.ui });
    await initialized;
    await bridge.sendToolInput({ arguments: args });
    await bridge.sendToolResult(await client.callTool({ name, arguments: args }));
  },

  /** Removes the view after it has answered. */
  async close() {
    const answer = await bridge.teardownResource({});
    frame.remove();
    await bridge.close();
    return answer;
  },
};
document.title = 'ready';
