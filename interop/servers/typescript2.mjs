// A server of the TypeScript SDK 2.x, with the features of `interop-server`. It serves both eras; over HTTP, after `http PORT` or
// `protected PORT URL ISSUER`, the legacy one without sessions.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter, requireBearerAuth } from '@modelcontextprotocol/express';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  McpServer,
  OAuthError,
  OAuthErrorCode,
  ResourceTemplate,
  completable,
  createMcpHandler,
  inputRequired,
  inputResponse,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

import * as features from './features.mjs';
import { SCOPES, metadataOf, serveProtected, verifierOf } from './protection.mjs';

const pair = z.object({ a: z.number(), b: z.number() });
const outputSchema = z.object({ result: z.number() });
const nothing = z.object({});
const numeric = (value) => ({ content: [{ type: 'text', text: String(value) }], structuredContent: { result: value } });

let grown = false;

/** Over HTTP each request has its own server, and only `notify` reaches subscribers. */
function offer(notify) {
  const capabilities = { tools: {}, logging: {}, resources: { subscribe: true } };
  const server = new McpServer({ name: 'interop-typescript2', version: '1.0.0' }, { capabilities });
  offerPrompts(server);
  offerResources(server, notify);
  offerQuestions(server);

  server.registerTool('add', { description: 'Add two numbers', inputSchema: pair, outputSchema }, ({ a, b }) => numeric(a + b));

  server.registerTool('divide', { description: 'Divide a by b', inputSchema: pair, outputSchema }, ({ a, b }) =>
    b === 0 ? { content: [{ type: 'text', text: 'b must not be 0' }], isError: true } : numeric(a / b));

  server.registerTool('echo', { description: 'Say it again', inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
    content: [{ type: 'text', text }],
  }));

  const growth = () =>
    server.registerTool('grown', { description: 'Say that it is there', inputSchema: nothing }, () => features.said('here'));
  if (grown) growth();
  server.registerTool('grow', { description: 'Add a tool', inputSchema: nothing }, () => {
    grown = true;
    growth();
    notify?.toolsChanged();
    return features.said('grown');
  });

  server.registerTool(
    'slow',
    { description: 'Take some time', inputSchema: z.object({ steps: z.int() }) },
    async ({ steps }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (let progress = 1; progress <= steps && !mcpReq.signal.aborted; progress += 1) {
        if (progressToken !== undefined) {
          await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: steps } });
        }
        await sleep(20);
      }
      return { content: [{ type: 'text', text: 'done' }] };
    },
  );
  return server;
}

function offerPrompts(server) {
  const language = completable(z.string(), features.startingWith(features.LANGUAGES)).optional();
  const argsSchema = z.object({ code: z.string(), language });
  server.registerPrompt('review', { description: 'Review code', argsSchema }, features.review);
}

const memos = new features.Memos();

function offerResources(server, notify) {
  for (const [name, mimeType] of [['greeting', 'text/plain'], ['pixel', 'image/png']]) {
    server.registerResource(name, `memo://${name}`, { mimeType }, ({ href }) => ({ contents: [memos.read(href)] }));
  }
  const complete = { topic: features.startingWith(features.TOPICS) };
  const template = new ResourceTemplate(features.TEMPLATE, { list: undefined, complete });
  server.registerResource('page', template, { mimeType: 'text/plain' }, ({ href }, { topic, page }) => ({
    contents: [memos.page(href, decodeURIComponent(topic), page)],
  }));
  for (const method of ['resources/subscribe', 'resources/unsubscribe']) server.server.setRequestHandler(method, () => ({}));
  server.registerTool('touch', { description: 'Change the greeting', inputSchema: nothing }, async () => {
    memos.touch();
    if (notify) notify.resourceUpdated('memo://greeting');
    else await server.server.sendResourceUpdated({ uri: 'memo://greeting' });
    return features.said('touched');
  });
}

function offerQuestions(server) {
  const ask = (key, request, requestState) => inputRequired({ inputRequests: { [key]: request }, requestState });

  server.registerTool('delete', { description: 'Delete', inputSchema: z.object({ project: z.string() }) }, (_args, { mcpReq }) => {
    const sure = inputResponse(mcpReq.inputResponses, 'sure');
    const name = mcpReq.requestState?.();
    if (sure.kind === 'elicit' && name) {
      return sure.content?.sure ? features.said(`deleted ${name}, counted once`) : features.refused('nothing was deleted');
    }
    const which = inputResponse(mcpReq.inputResponses, 'which');
    if (which.kind !== 'elicit') return ask('which', inputRequired.elicit(features.which));
    if (which.action !== 'accept') return features.refused('nothing was deleted');
    return ask('sure', inputRequired.elicit(features.sure(which.content.name)), which.content.name);
  });

  server.registerTool('think', { description: 'Think', inputSchema: z.object({ question: z.string() }) }, ({ question }, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'thought');
    if (answer.kind === 'sampling') return features.thought(answer.result);
    return ask('thought', inputRequired.createMessage(features.question(question)));
  });

  server.registerTool('where', { description: 'Tell the roots', inputSchema: nothing }, (_args, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'roots');
    return answer.kind === 'roots' ? features.places(answer) : ask('roots', inputRequired.listRoots());
  });

  server.registerTool('shout', { description: 'Log', inputSchema: nothing }, async (_args, { mcpReq }) => {
    await mcpReq.log('info', { msg: 'quiet' });
    await mcpReq.log('warning', { msg: 'loud' });
    return features.said('shouted');
  });
}

async function protect(port, url, issuer, answer) {
  const resourceServerUrl = new URL(url);
  const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resourceServerUrl);
  const verifier = verifierOf(issuer, url, (message) => new OAuthError(OAuthErrorCode.InvalidToken, message));
  const guard = (requiredScopes) => requireBearerAuth({ verifier, requiredScopes, resourceMetadataUrl });
  const oauthMetadata = await metadataOf(issuer);
  serveProtected(port, mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl, scopesSupported: SCOPES }), guard, answer);
}

const [transport, port, url, issuer] = process.argv.slice(2);
if (transport) {
  const handler = createMcpHandler(() => offer(handler.notify));
  const answer = toNodeHandler(handler);
  if (transport === 'protected') await protect(port, url, issuer, answer);
  else http.createServer(answer).listen(Number(port), '127.0.0.1');
} else serveStdio(() => offer());
