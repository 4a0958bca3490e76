// What a run of a framework needs on this machine: a model that answers from a script, and a
// collector that keeps the one OTLP request that the framework's own exporter sends.
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';

const listen = server => new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`)));

function body(request) {
  return new Promise(resolve => {
    const parts = [];
    request.on('data', part => parts.push(part));
    request.on('end', () => resolve(Buffer.concat(parts)));
  });
}

// model serves answers one after the other, whatever it is asked.
export async function model(answers) {
  let next = 0;
  const server = createServer(async (request, response) => {
    await body(request);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answers[next++]));
  });
  return { url: await listen(server), close: () => server.close() };
}

// collector writes each OTLP/HTTP body into a file, as it arrived.
export async function collector(file) {
  const server = createServer(async (request, response) => {
    const sent = await body(request);
    if (request.url === '/v1/traces') writeFileSync(file, sent);
    response.setHeader('content-type', request.headers['content-type']);
    response.end(request.headers['content-type'] === 'application/json' ? '{}' : '');
  });
  return { url: await listen(server), close: () => server.close() };
}

// chat is one answer of an OpenAI-compatible model: text, or calls of tools.
export function chat(id, text, ...calls) {
  return {
    id, object: 'chat.completion', created: 1790000000, model: 'scripted-1',
    choices: [{
      index: 0, finish_reason: calls.length ? 'tool_calls' : 'stop',
      message: {
        role: 'assistant', content: text,
        ...(calls.length && { tool_calls: calls.map(([call, name, args]) => ({ id: call, type: 'function', function: { name, arguments: JSON.stringify(args) } })) }),
      },
    }],
    usage: { prompt_tokens: 40, completion_tokens: 12, total_tokens: 52 },
  };
}

// The conversation of all three runs: a look-up, a reservation that fails, and an answer.
export const conversation = [
  chat('answer-1', '', ['call-1', 'get_stock', { sku: 'kettle-7' }]),
  chat('answer-2', '', ['call-2', 'reserve', { sku: 'kettle-7', quantity: 2 }]),
  chat('answer-3', 'Two kettles are in stock, but they could not be reserved.'),
];
export const stock = { sku: 'kettle-7', available: 2 };
export const refusal = 'the warehouse does not answer';
