// Against a real ingest, whose address is PLUMBLINE_TEST_URL. With PLUMBLINE_TEST_STOP, records until that
// file exists, which gives whoever started this test the time to kill ingest. PLUMBLINE_TEST_RESULT is
// where it writes what it has recorded.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Key, Recorder } from "../dist/index.js";
import { directory } from "./ingest.mjs";

const { PLUMBLINE_TEST_URL: url, PLUMBLINE_TEST_STOP: stop, PLUMBLINE_TEST_RESULT: result } = process.env;

const [agentId, cardId] = ["did:web:typescript.example", "ac-typescript"];

const card = (key) => ({
  aap_version: "0.1.0", card_id: cardId, agent_id: agentId, issued_at: "2026-01-01T00:00:00Z", expires_at: "2099-01-01T00:00:00Z",
  principal: { type: "human", relationship: "delegated_authority" }, values: { declared: ["honesty"] },
  autonomy_envelope: { bounded_actions: ["search", "compare"], escalation_triggers: [], forbidden_actions: [] },
  audit_commitment: { trace_format: "ap-trace-v1", retention_days: 90, queryable: false, tamper_evidence: "signed" },
  extensions: { plumbline: { keys: [key.public()] } },
});

test("nothing is lost or doubled while ingest is killed", { skip: !url && "PLUMBLINE_TEST_URL is not set: there is no ingest" }, async (t) => {
  const key = new Key(randomBytes(32), "k1");
  const errors = [];
  const warnings = [];
  const recorder = new Recorder({
    agentId, cardId, url, key, spool: result ? `${result}.spool` : directory(t), onError: (e) => errors.push(e), onWarning: (...w) => warnings.push(w),
  });
  assert.equal(await recorder.registerCard(card(key)), "registered");
  assert.equal(await recorder.registerCard(card(key)), "unchanged");
  const recorded = [];
  const began = performance.now();
  while (stop ? !existsSync(stop) : recorded.length < 8) {
    assert.ok(performance.now() - began < 300_000, `nobody made the file ${stop}`);
    const session = recorder.session();
    const search = session.tool({ values: ["honesty"], reasoning: "the user asked" }, async function search(query, price) {
      await sleep(10);
      return { found: query, price };
    });
    let last;
    for (let i = 0; i < 20; i++) {
      await search("kettle é€😀", i / 7);
      last = session.record({ action: "compare", values: ["honesty"], alternatives: ["a", "b"], selected: "b", confidence: 0.5 });
    }
    session.end();
    recorded.push({ session_id: session.sessionId, traces: session.nextNumber - 1, last });
  }
  assert.equal(await recorder.close(60_000), true, String(errors));
  const stats = recorder.stats();
  assert.equal(stats.recorded, 40 * recorded.length);
  assert.equal(stats.accepted + stats.duplicate, stats.recorded);
  assert.deepEqual(errors.filter((e) => e.kind !== "unreachable"), []);
  assert.deepEqual(warnings, []);
  if (result) writeFileSync(result, JSON.stringify({ agent_id: agentId, sessions: recorded }));
});
