// The prompts, resources and answers of the TypeScript servers as plain data, equal to those of `interop-server`.

export const LANGUAGES = ['go', 'python', 'rust'];
export const TOPICS = ['tea', 'teak', 'tulip'];
export const TEMPLATE = 'memo://pages/{topic}/{page}';

export const startingWith = (values) => (typed) => values.filter((value) => value.startsWith(typed));

export const said = (text) => ({ content: [{ type: 'text', text }] });
export const refused = (text) => ({ ...said(text), isError: true });

export const review = ({ code, language }) => ({
  messages: [{ role: 'user', content: { type: 'text', text: `Review this ${language ?? 'unknown'} code: ${code}` } }],
});

/** The tool `touch` changes the greeting. */
export class Memos {
  greeting = 'hello';

  read(uri) {
    if (uri === 'memo://greeting') return { uri, mimeType: 'text/plain', text: this.greeting };
    if (uri === 'memo://pixel') return { uri, mimeType: 'image/png', blob: Buffer.from([0, 255, 127]).toString('base64') };
    return undefined;
  }

  page(uri, topic, page) {
    return { uri, mimeType: 'text/plain', text: `page ${page} of ${topic}` };
  }

  touch() {
    this.greeting = 'hello again';
  }
}

/** The two questions of the tool `delete`. */
export const which = {
  message: 'Which project shall be deleted?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
};
export const sure = (name) => ({
  message: `Really delete ${name} with 3 files?`,
  requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] },
});

export const question = (text) => ({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens: 100 });
export const thought = ({ content }) => said(`the model says: ${[content].flat()[0].text}`);
export const places = ({ roots }) => said(roots.map(({ uri }) => uri).join('\n'));
