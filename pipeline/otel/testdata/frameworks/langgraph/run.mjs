// Runs a LangGraph agent under OpenInference's instrumentation of LangChain, and keeps what its
// OTLP/HTTP exporter sends as JSON.
import { LangChainInstrumentation } from '@arizeai/openinference-instrumentation-langchain';
import * as callbacks from '@langchain/core/callbacks/manager';
import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
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
const instrumentation = new LangChainInstrumentation({ tracerProvider: provider });
instrumentation.manuallyInstrument(callbacks);

const agent = createReactAgent({
  name: 'kettle-agent',
  llm: new ChatOpenAI({ model: 'scripted-1', apiKey: 'none', maxRetries: 0, configuration: { baseURL: fake.url } }),
  tools: [
    tool(async () => JSON.stringify(stock), {
      name: 'get_stock', description: 'Looks up the stock of an article', schema: z.object({ sku: z.string() }),
    }),
    tool(async () => { throw new Error(refusal); }, {
      name: 'reserve', description: 'Reserves articles', schema: z.object({ sku: z.string(), quantity: z.number() }),
    }),
  ],
});
await agent.invoke({ messages: [{ role: 'user', content: 'Reserve two kettles.' }] }, { metadata: { session_id: 'thread-1' } });
await provider.shutdown();
sink.close();
fake.close();
