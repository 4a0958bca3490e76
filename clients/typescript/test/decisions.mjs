// Reads arguments of record, a JSON object a line; prints the trace and the faults of each.
import { createInterface } from "node:readline";

import { build, check } from "../dist/trace.js";
import { canonical, plain } from "../dist/values.js";

const head = { trace_id: "tr-1", agent_id: "did:web:shop.example", card_id: "ac-1" };

for await (const line of createInterface({ input: process.stdin })) {
  const { timestamp = "2026-01-31T12:30:00Z", session_id: sessionId = "s", ...fields } = JSON.parse(line);
  const trace = build({ ...head, timestamp }, sessionId, 7, fields, () => {});
  console.log(JSON.stringify({ trace: canonical(plain(trace, 64)), faults: check(trace) }));
}
