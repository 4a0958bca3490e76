// Runs an agent of the Vercel AI SDK and keeps what its OTLP/HTTP exporter sends as JSON.
import { generateText, registerTelemetry, stepCountIs, tool } from 'ai';
import { OpenTelemetry } from '@ai-sdk/otel';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { z } from 'zod';
import { collector, conversation, model, refusal, stock } from '../local.mjs';

const sink = await collector(process.argv[2]);
const fake = await model(conversation);
const provider = new NodeTracerProvider({
  resource: detectResources({ detectors: [envDetector] }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: sink.url + '/v1/traces' }))],
});
provider.register();
registerTelemetry(new OpenTelemetry());

await generateText({
  model: createOpenAICompatible({ name: 'local', baseURL: fake.url })('scripted-1'),
  prompt: 'Reserve two kettles.',
  stopWhen: stepCountIs(5),
  tools: {
    get_stock: tool({
      description: 'Looks up the stock of an article',
      inputSchema: z.object({ sku: z.string() }),
      execute: async () => {
        trace.getActiveSpan()?.setAttribute('aap.decision.values_applied', ['honesty']);
        return stock;
      },
    }),
    reserve: tool({
      description: 'Reserves articles',
      inputSchema: z.object({ sku: z.string(), quantity: z.number() }),
      execute: async () => { throw new Error(refusal); },
    }),
  },
  telemetry: { isEnabled: true, functionId: 'kettle-agent' },
});
await provider.shutdown();
sink.close();
fake.close();
