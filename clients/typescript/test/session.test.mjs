import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, chmodSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Key, PlumblineError } from "../dist/index.js";
import { bounded, canonical, plain } from "../dist/values.js";
import { AGENT, Ingest, directory, nowhere, recorder } from "./ingest.mjs";

/** Returns the traces that use(recorder) records, and what was reported. */
async function recorded(t, use, options) {
  const ingest = await Ingest.start(t);
  const made = recorder(t, ingest.url, options);
  await use(made.recorder);
  assert.equal(await made.recorder.flush(), true);
  return { traces: ingest.traces, ...made };
}

test("every argument has its place", async (t) => {
  const { traces } = await recorded(t, (r) => r.session("s").record({
    action: "buy", type: "escalate", category: "escalation_trigger", target: { type: "shop", identifier: "x" }, parameters: { amount: 250 },
    alternatives: ["wait", { option_id: "A", description: "buy now", score: 0.5 }], selected: "A", reasoning: "cheap", values: ["honesty"],
    confidence: 0.75, escalation: { required: true, escalation_status: "pending" }, execution: { tool_name: "shop", cost_cents: 3 }, turn: 2,
    prior: ["tr-0"], environment: { client: "web" }, metadata: { model: "m" }, timestamp: "2026-01-31T12:30:00Z", traceId: "tr-1",
  }));
  assert.deepEqual(traces, [{
    trace_id: "tr-1", agent_id: AGENT, card_id: "ac-1", timestamp: "2026-01-31T12:30:00Z",
    action: { type: "escalate", name: "buy", category: "escalation_trigger", target: { type: "shop", identifier: "x" }, parameters: { amount: 250 } },
    decision: {
      alternatives_considered: [{ option_id: "wait", description: "wait" }, { option_id: "A", description: "buy now", score: 0.5 }],
      selected: "A", selection_reasoning: "cheap", values_applied: ["honesty"], confidence: 0.75,
    },
    escalation: { evaluated: true, required: true, escalation_status: "pending" },
    context: {
      session_id: "s", conversation_turn: 2, prior_trace_ids: ["tr-0"], environment: { client: "web" },
      metadata: { model: "m", sequence_number: 1, execution: { tool_name: "shop", cost_cents: 3 } },
    },
  }]);
});

test("invalid input is heard, counted and leaves a gap", async (t) => {
  const rude = { toJSON() { throw new RangeError("no"); } };
  const { traces, errors, warnings, recorder: r } = await recorded(t, (r) => {
    const session = r.session();
    session.record({ action: "first" });
    for (const wrong of [undefined, {}, { action: "x", type: "buy" }, { action: "x", confidence: 2 }, { action: "x", selected: "B" },
      { action: "x", alternatives: 7 }, { action: "x", values: "v" }, { action: "x".repeat(513) }, { action: "x", reasoning: "r".repeat(800 << 10) }]) {
      assert.equal(typeof session.record(wrong), "string");
    }
    session.record({ action: "last", parameters: { rude } });
  });
  assert.deepEqual(traces.map((trace) => trace.context.metadata.sequence_number), [1, 11]);
  assert.deepEqual(traces[1].action.parameters, { rude: { left_out: { error: "RangeError" } } });
  assert.deepEqual(warnings.map(([code]) => code), ["left_out"]);
  assert.deepEqual(errors.map((e) => e.kind), Array(9).fill("invalid"));
  assert.equal(r.stats().invalid, 9);
  assert.deepEqual(errors[2].faults, [{ pointer: "/action/type", message: '"buy" is none of recommend, execute, escalate, deny' }]);
  assert.deepEqual(errors[4].faults, [{ pointer: "/decision/selected", message: 'no alternative has the option_id "B"' }]);
});

test("numbers of sessions", async (t) => {
  const { traces } = await recorded(t, (r) => {
    const first = r.session("a");
    first.record({ action: "x" });
    r.session("b", { firstNumber: first.nextNumber }).record({ action: "x" });
    r.session("a", { end: false }).record({ action: "x" });
    r.session("c", { firstNumber: null }).record({ action: "x" });
    first.record({ action: "x" });
  });
  assert.deepEqual(traces.map((trace) => [trace.context.session_id, trace.context.metadata?.sequence_number]),
    [["a", 1], ["b", 2], ["a", 2], ["c", undefined], ["a", 3]]);
});

test("members that do not exist are ignored with a warning", async (t) => {
  const { traces, warnings } = await recorded(t, (r) => {
    const session = r.session();
    session.tool({ name: "search", categori: "forbidden" }, () => undefined)();
    session.record({ action: "buy", reasonin: "cheap" });
  });
  assert.deepEqual(traces.map((trace) => [trace.action.name, trace.action.category]), [["search", "bounded"], ["buy", "bounded"]]);
  assert.deepEqual(warnings.map(([code, message]) => [code, message]), [["ignored_argument", 'tool has no member "categori", and ignores it']]);
});

test("a clock that is set back", async (t) => {
  const times = [5000, 3000, 9000];
  const { traces } = await recorded(t, (r) => {
    const session = r.session();
    const clock = t.mock.method(Date, "now", () => times.shift());
    for (let i = 0; i < 3; i++) session.record({ action: "x" });
    clock.mock.restore();
  });
  assert.deepEqual(traces.map((trace) => Date.parse(trace.timestamp)), [5000, 5000, 9000]);
});

test("tools", async (t) => {
  const { traces, errors } = await recorded(t, async (r) => {
    const session = r.session("s");
    const search = session.tool({ category: "escalation_trigger", values: ["honesty"], reasoning: (p) => `look for ${p.query}` },
      async function search(query, limit = 3) {
        await undefined;
        return { found: [query, limit] };
      });
    const fails = session.tool({ name: "fails" }, ({ items }) => {
      items.length = 0;
      throw new TypeError("gone");
    });
    const slow = session.tool({ name: "slow" }, async (n) => {
      await new Promise((resolve) => setTimeout(resolve, n));
      throw new Error("late");
    });
    assert.deepEqual(await search("kettle"), { found: ["kettle", 3] });
    assert.throws(() => fails({ items: [1] }), { name: "TypeError", message: "gone" });
    const pending = slow(5);
    await search("cup", 1);
    await assert.rejects(pending, { message: "late" });
  });
  assert.deepEqual(errors, []);
  const of = (name, i = 0) => traces.filter((trace) => trace.action.name === name)[i];
  assert.deepEqual(of("search").action, { type: "execute", name: "search", category: "escalation_trigger", parameters: { query: "kettle" } });
  assert.deepEqual(of("search").context.metadata.execution, { tool_name: "search", inputs: { query: "kettle" }, outputs: { found: ["kettle", 3] } });
  assert.equal(of("search").decision.selection_reasoning, "look for kettle");
  assert.ok(of("search").context.metadata.duration_ms >= 0);
  assert.deepEqual(of("fails").context.metadata.execution, { tool_name: "fails", inputs: { items: [1] }, error: "TypeError: gone" });
  assert.equal(of("slow").context.metadata.execution.error, "Error: late");
  assert.deepEqual([of("slow"), of("search", 1)].map((trace) => trace.context.metadata.sequence_number), [3, 4]);
});

test("what a tool returns is what the caller gets", async (t) => {
  class Request extends Promise {
    headers() {
      return "own";
    }
  }
  let runs = 0;
  const query = { then: (resolve) => resolve(++runs) };
  const { traces } = await recorded(t, async (r) => {
    const session = r.session();
    const request = session.tool({ name: "request" }, (value) => new Request((resolve) => resolve(value)))(7);
    assert.equal(request.headers(), "own");
    assert.equal(await request, 7);
    assert.equal(session.tool({ name: "query" }, () => query)(), query);
    assert.equal(runs, 0, "the query ran although nobody waited for it");
    await assert.rejects(session.tool({ name: "fails" }, () => Request.reject(new Error("late")))(), { message: "late" });
    await undefined;
  });
  assert.deepEqual(traces.map(({ action, context }) => [action.name, context.metadata.execution.outputs, context.metadata.execution.error]),
    [["request", 7, undefined], ["query", null, undefined], ["fails", undefined, "Error: late"]]);
});

test("a trace with many large values and a long error", async (t) => {
  const { traces, errors } = await recorded(t, (r) => {
    const merge = r.session().tool({ name: "merge" }, ({ small }) => {
      throw new Error("é".repeat(100_000 * small));
    });
    const large = "x".repeat(120 << 10);
    assert.throws(() => merge({ a: large, b: large, c: large, d: large, small: 1 }));
  });
  assert.deepEqual(errors, []);
  const { action: { parameters }, context: { metadata: { execution } } } = traces[0];
  assert.deepEqual([parameters, parameters.small, parameters.a.left_out.bytes], [execution.inputs, 1, (120 << 10) + 2]);
  assert.match(execution.error, /^Error: éé+é…$/);
  assert.ok(Buffer.byteLength(execution.error) <= 4 << 10);
});

test("wrong arguments throw nothing", async (t) => {
  const { traces, errors } = await recorded(t, (r) => {
    r.session("a", { firstNumber: "3" }).record({ action: "x" });
    r.session(["b"]).record({ action: "x" });
    assert.equal(typeof r.session().record({ action: "x", traceId: Object.create(null) }), "string");
  });
  assert.deepEqual(traces.map(({ context }) => [context.session_id, context.metadata?.sequence_number]), [["a", undefined], ["b", 1]]);
  assert.deepEqual(errors.map((e) => e.kind), ["invalid", "invalid"]);
  assert.match(errors[0].message, /firstNumber is 3/);
});

test("await using ends a session", { skip: Symbol.asyncDispose === undefined }, async (t) => {
  const ingest = await Ingest.start(t);
  const { recorder: r } = recorder(t, ingest.url);
  const session = r.session("s");
  session.record({ action: "x" });
  await session[Symbol.asyncDispose]();
  await r.session("open", { end: false })[Symbol.asyncDispose]();
  assert.equal(await r.flush(), true);
  assert.deepEqual(ingest.ends, [["s", 1]]);
});

test("what JSON cannot hold", () => {
  for (const [value, want] of [
    [NaN, "NaN"], [-Infinity, "-Infinity"], [2n ** 60n + 1n, String(2n ** 60n + 1n)], [10n ** 24n, 1e24], [new Set([3, 1]), [3, 1]],
    [new Map([["a", 1]]), { a: 1 }], [new Uint8Array([0, 255]), "AP8="], [new Date(0), "1970-01-01T00:00:00.000Z"], ["a\ud800b", "a\ufffdb"],
    ["\ud83d\ude00", "\u{1f600}"], [{ a: undefined, b: null, __proto__x: 1 }, { b: null, __proto__x: 1 }], [new RangeError("r"), "RangeError: r"],
  ]) assert.deepEqual(JSON.parse(canonical(plain(value))), want);
  const calls = [];
  const loop = [];
  loop.push(loop);
  assert.deepEqual(bounded(loop, () => calls.push(1)), { left_out: { levels: 32 } });
  const left = bounded("x".repeat(200 << 10), () => calls.push(1));
  assert.equal(left.left_out.bytes, (200 << 10) + 2);
  assert.equal(calls.length, 2);
});

const vectors = new URL("../../../../shared/conformance/jcs/", import.meta.url);
test("the test data of RFC 8785", { skip: !existsSync(vectors) && "it is not next to the repository" }, () => {
  const names = readdirSync(new URL("input", vectors));
  assert.ok(names.length > 5);
  for (const name of names) {
    const got = canonical(plain(JSON.parse(readFileSync(new URL(`input/${name}`, vectors), "utf8"))));
    assert.equal(got, readFileSync(new URL(`output/${name}`, vectors), "utf8").trimEnd(), name);
  }
});

test("signatures", (t) => {
  // The known answer of package schema/signature.
  const key = new Key(Buffer.from("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "hex"), "k1");
  assert.equal(Buffer.from(key.public().public_key, "base64").toString("hex"), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  assert.deepEqual(JSON.parse(key.attach('{"amount":1e+21,"ids":["b","a"],"note":"é€\\u000f","rate":0.1,"zero":0}')).signature, {
    algorithm: "Ed25519", key_id: "k1",
    value: "S4Vh3KYUhBnM7leWLyUQ6LARFrvNaiYa9u/bdcVxMroUr9MG2cKbkuibthIq55ZI6ItrkVaSXi0g+APh+CS/DA==",
  });
  const path = join(directory(t), "agent.key");
  assert.deepEqual(Key.create(path, "k1").public(), Key.load(path, "k1").public());
  assert.throws(() => Key.create(path, "k1"), { code: "EEXIST" });
  chmodSync(path, 0o644);
  assert.throws(() => Key.load(path, "k1"), /chmod 600/);
});

test("a card that cannot be registered", async (t) => {
  const { recorder: r } = recorder(t, await nowhere());
  await assert.rejects(r.registerCard({ card_id: "ac-1" }), (error) => error instanceof PlumblineError && error.kind === "unreachable");
  const loop = { card_id: "ac-1" };
  loop.loop = loop;
  for (const card of ["[]", loop]) await assert.rejects(r.registerCard(card), (error) => error instanceof PlumblineError && /card_id/.test(error.message));
});
