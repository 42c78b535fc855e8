// A view on the class `App` of ext-apps. The tests bundle it into one document.
import { App } from '@modelcontextprotocol/ext-apps';

const show = (id, text) => { document.getElementById(id).textContent = text; };
const app = new App({ name: 'official', version: '1.0.0' }, { availableDisplayModes: ['inline'] });
app.ontoolinput = ({ arguments: { city } }) => show('input', city);
app.ontoolresult = ({ structuredContent: { city, celsius } }) => show('result', `${city}: ${celsius} °C`);
app.onhostcontextchanged = () => {};
app.onteardown = async () => {
  await app.sendLog({ level: 'info', data: 'the view ends' });
  return {};
};

/** The outcome of a promise, as a text. */
const outcome = (promise) => promise.then((value) => JSON.stringify(value), (error) => `${error.code}: ${error.message}`);

// The tests call these.
window.actions = {
  host: () => JSON.stringify([app.getHostVersion(), app.getHostCapabilities(), app.getHostContext()?.toolInfo?.tool.name]),
  call: (name, args) => outcome(app.callServerTool({ name, arguments: args })),
  read: (uri) => outcome(app.readServerResource({ uri })),
  list: () => outcome(app.listServerResources()),
  link: (url) => outcome(app.openLink({ url })),
  message: (text) => outcome(app.sendMessage({ role: 'user', content: [{ type: 'text', text }] })),
  context: (text) => outcome(app.updateModelContext({ content: [{ type: 'text', text }] })),
  mode: (mode) => outcome(app.requestDisplayMode({ mode })),
};
await app.connect();
show('status', 'connected');
