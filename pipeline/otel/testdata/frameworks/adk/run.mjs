// Runs an agent of Google's Agent Development Kit with a model that answers from a script, and
// keeps what its OTLP/HTTP exporter sends as JSON.
import { BaseLlm, FunctionTool, InMemoryRunner, LlmAgent } from '@google/adk';
import { trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { z } from 'zod';
import { collector, conversation, refusal, stock } from '../local.mjs';

const sink = await collector(process.argv[2]);
const provider = new NodeTracerProvider({
  resource: detectResources({ detectors: [envDetector] }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: sink.url + '/v1/traces' }))],
});
provider.register();

// Scripted gives the answers of the conversation in the form of ADK's models.
class Scripted extends BaseLlm {
  #next = 0;
  constructor() { super({ model: 'scripted-1' }); }
  async *generateContentAsync() {
    const { choices: [{ message, finish_reason: reason }], usage } = conversation[this.#next++];
    const parts = (message.tool_calls ?? []).map(call => ({ functionCall: { id: call.id, name: call.function.name, args: JSON.parse(call.function.arguments) } }));
    yield {
      content: { role: 'model', parts: message.content ? [{ text: message.content }] : parts },
      finishReason: reason === 'stop' ? 'STOP' : undefined,
      usageMetadata: { promptTokenCount: usage.prompt_tokens, candidatesTokenCount: usage.completion_tokens, totalTokenCount: usage.total_tokens },
    };
  }
  connect() { throw new Error('there is no live connection'); }
}

const agent = new LlmAgent({
  name: 'kettle_agent',
  description: 'Reserves kettles',
  model: new Scripted(),
  tools: [
    new FunctionTool({
      name: 'get_stock', description: 'Looks up the stock of an article', parameters: z.object({ sku: z.string() }),
      execute: () => {
        trace.getActiveSpan()?.setAttributes({
          'aap.decision.alternatives_considered': JSON.stringify([
            { option_id: 'get_stock', description: 'look the stock up', score: 0.9 },
            { option_id: 'reserve', description: 'reserve at once', score: 0.4, flags: ['unverified'] },
          ]),
          'aap.decision.selected': 'get_stock',
          'aap.decision.selection_reasoning': 'A reservation without stock would fail.',
          'aap.decision.values_applied': ['honesty'],
          'aap.decision.confidence': 0.9,
        });
        return stock;
      },
    }),
    new FunctionTool({
      name: 'reserve', description: 'Reserves articles', parameters: z.object({ sku: z.string(), quantity: z.number() }),
      execute: () => { throw new Error(refusal); },
    }),
  ],
});
const runner = new InMemoryRunner({ agent, appName: 'kettles' });
const session = await runner.sessionService.createSession({ appName: 'kettles', userId: 'ann' });
const stream = runner.runAsync({ userId: 'ann', sessionId: session.id, newMessage: { role: 'user', parts: [{ text: 'Reserve two kettles.' }] } });
for await (const event of stream) {
  void event; // a runner works as its events are read
}
await provider.shutdown();
sink.close();
