// The page of the host: shows views in frames, and pipes messages between them and the program.
const find = (id) => document.getElementById(id);
const token = location.hash.slice(1);
history.replaceState(null, "", "/");

const send = (path, body) => fetch(`/api/${path}`, {
  method: "POST",
  headers: { "x-token": token, "content-type": typeof body === "string" ? "text/plain" : "application/json" },
  body: typeof body === "string" ? body : JSON.stringify(body ?? {}),
});

const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

const log = (text) => {
  const list = find("log");
  list.append(element("li", text.slice(0, 500)));
  while (list.children.length > 50) list.firstChild.remove();
};

/** Asks the user about a request of a view. */
async function ask(key, { number, kind, link }) {
  const accept = confirm(`The app asks the host to do this: ${kind.slice(0, 1000)}`);
  if (accept && link) open(link, "_blank", "noopener,noreferrer");
  await send(`views/${key}/decide`, { number, accept });
}

/** Reads the messages for a view, one in each line, until the view is removed. */
async function receive({ key, url }, frame, section) {
  const response = await send(`views/${key}/events`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.post) frame.contentWindow.postMessage(JSON.parse(message.post), new URL(url).origin);
      if (message.height) frame.style.height = `${Math.min(message.height, 2000)}px`;
      if (message.note) log(message.note);
      if (message.ask) await ask(key, message.ask);
      if (message.unmount) section.remove();
    }
  }
}

async function openView(tool, text) {
  find("problem").textContent = "";
  const response = await send("open", { tool, arguments: JSON.parse(text || "{}") });
  if (!response.ok) throw new Error(await response.text());
  const view = await response.json();
  const section = element("section", null);
  const header = element("header", null);
  const close = element("button", "Close");
  close.addEventListener("click", () => send(`views/${view.key}/close`));
  header.append(element("strong", tool), close);
  const frame = element("iframe", null, {
    sandbox: "allow-scripts allow-same-origin allow-forms", allow: view.allow, title: tool,
  });
  frame.classList.toggle("border", view.border !== false);

  // One request at a time keeps the messages in order.
  let last = Promise.resolve();
  addEventListener("message", ({ source, origin, data }) => {
    if (source !== frame.contentWindow || origin !== new URL(view.url).origin) return;
    const message = JSON.stringify(data);
    last = last.then(() => send(`views/${view.key}/message`, message));
  });
  section.append(header, frame);
  find("views").prepend(section);
  const received = receive(view, frame, section);
  frame.src = view.url;
  await received;
}

const report = (error) => { find("problem").textContent = error.message; };

async function start() {
  const response = await send("tools");
  if (!response.ok) throw new Error("Open the URL that the program has printed: it contains a secret.");
  for (const { name, description } of await response.json()) {
    const form = element("form", null);
    const input = element("input", null, { value: "{}", "aria-label": `arguments of ${name}`, name: "arguments" });
    form.append(element("strong", name, { title: description ?? "" }), input, element("button", "Call"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      openView(name, input.value).catch(report);
    });
    const item = element("li", null);
    item.append(form);
    find("tools").append(item);
  }
}

start().catch(report);
