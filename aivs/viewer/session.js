// The session in a bundle as a person reads it: each row with its trace, and the verdict on it. Nothing here judges; what is not
// of the expected shape is left out.
"use strict";

// entriesOf returns an entry for each row of the log, also behind a fault: {number, row, readable, trace, verdict}. Its number is the
// one that a fault names; a row that is not a JSON object has no members.
function entriesOf(v) {
  const files = v.archive.files;
  const values = (files.has(LOG) ? lines(files.get(LOG)) : []).map(writtenValue), rows = values.map((value) => (value instanceof Map ? value : new Map()));
  const traces = files.has(TRACES) ? lines(files.get(TRACES)).map((line) => writtenValue(line)) : [];
  const verdicts = new Map(); // trace id -> its verdicts, in order
  for (const line of files.has("verdicts.jsonl") ? lines(files.get("verdicts.jsonl")) : []) {
    const verdict = writtenValue(line), id = textOf(memberOf(verdict, "trace_id"));
    if (id) listUnder(verdicts, id, verdict);
  }
  const byId = new Map(); // trace id -> its traces
  for (const trace of traces) {
    const id = textOf(memberOf(trace, "trace_id"));
    if (id) listUnder(byId, id, trace);
  }
  return rows.map((row, i) => {
    const id = textOf(memberOf(writtenValue(textOf(row.get("inputs_json"))), "trace_id"));
    return { number: i + 1, row, readable: values[i] instanceof Map, trace: byId.get(id)?.shift() ?? null, verdict: verdicts.get(id)?.shift() ?? null };
  });
}

// listUnder adds a value to the list of a key.
function listUnder(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}

// actionsOf returns the entries without the two that frame the log: the open row in the first place, and the seal in the last one. Any
// other row is an action, whatever it is called.
function actionsOf(entries) {
  const is = (row, type, tool) => textOf(row.get("action_type")) === type && textOf(row.get("tool_name")).startsWith(tool);
  return entries.filter(({ row }, i) => !(i === 0 && is(row, "open", OPEN)) && !(i === entries.length - 1 && is(row, "seal", CONTENT)));
}

// sessionOf returns the session that the rows name. Nothing covers an original_session_id of another generator's manifest.
const sessionOf = (v) => v.log.opening?.get("session_id") ?? textOf(memberOf(v.manifest, "session_id"));

// lines returns the lines without their ends and without blank ones, which a log does not count. A line that is too long ends them.
function lines(bytes) {
  const found = [];
  try {
    for (const line of eachLine(bytes, "")) found.push(withoutEnd(line));
  } catch (e) {
    if (!(e instanceof Fault)) throw e;
  }
  return found.filter((line) => !line.every((b) => b === 32 || b === 9 || b === 13));
}

// rowsAtFault returns the numbers of the rows that the faults name: "row 3", "rows 1-4".
function rowsAtFault(faults) {
  const numbers = new Set();
  for (const fault of faults) {
    const found = /^rows? ([0-9]+)(?:-([0-9]+))?: /.exec(fault);
    if (!found) continue;
    const from = Number(found[1]), to = Math.min(Number(found[2] ?? from), from + 100000);
    for (let n = from; n <= to; n++) numbers.add(n);
  }
  return numbers;
}

// decisionOf returns what a trace says about its decision, in texts.
function decisionOf({ row, trace, verdict }) {
  const action = memberOf(trace, "action"), decision = memberOf(trace, "decision"), escalation = memberOf(trace, "escalation");
  const execution = memberOf(memberOf(memberOf(trace, "context"), "metadata"), "execution");
  const selected = textOf(memberOf(decision, "selected")), list = (value) => (Array.isArray(value) ? value : []);
  const number = (value) => (typeof value === "bigint" ? String(value) : value instanceof Float ? value.text : "");
  const asked = memberOf(escalation, "required") === true;
  return {
    time: timeOf(trace, row),
    does: textOf(memberOf(action, "type")) || textOf(row.get("action_type")),
    name: textOf(memberOf(action, "name")) || textOf(row.get("tool_name")),
    category: textOf(memberOf(action, "category")),
    alternatives: list(memberOf(decision, "alternatives_considered")).map((a) => ({
      id: textOf(memberOf(a, "option_id")), description: textOf(memberOf(a, "description")), score: number(memberOf(a, "score")),
      chosen: selected !== "" && textOf(memberOf(a, "option_id")) === selected,
    })),
    reasoning: textOf(memberOf(decision, "selection_reasoning")),
    values: list(memberOf(decision, "values_applied")).filter((value) => typeof value === "string"),
    confidence: number(memberOf(decision, "confidence")),
    escalation: asked ? [textOf(memberOf(escalation, "reason")), textOf(memberOf(escalation, "escalation_status"))].filter(Boolean) : null,
    error: textOf(memberOf(execution, "error")) || textOf(row.get("error")),
    problems: ["violations", "findings", "warnings"].flatMap((kind) => list(memberOf(verdict, kind)).map((p) => ({
      kind: kind.slice(0, -1), type: textOf(memberOf(p, "type")), severity: textOf(memberOf(p, "severity")), description: textOf(memberOf(p, "description")),
    }))),
    judged: textOf(memberOf(verdict, "status")),
  };
}

// timeOf returns the trace's own time, or the row's.
function timeOf(trace, row) {
  const own = textOf(memberOf(trace, "timestamp")), seconds = row.get("timestamp");
  if (own) return own;
  const at = new Date(seconds instanceof Float ? seconds.value * 1000 : NaN);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

// visible replaces characters that cannot be seen, or that mislead about the order of others.
function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]/gu, (c) => (c === "\n" || c === "\t" ? c : `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`));
}
