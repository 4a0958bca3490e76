// Which rows differ from their traces. It is asked once it is known that some row was changed, and answers only if the traces are
// those that row 1 lists.
"use strict";

const MOST_DIFFERENCES = 100;

// changedRows returns a text for each row and trace that differ.
async function changedRows(files, log) {
  const members = log.hasTraces ? log.opening.get("members").filter((m) => m.get("name") === TRACES) : [];
  const traces = files.get(TRACES);
  if (!traces || !members.some((m) => m.get("bytes") === BigInt(traces.length))) return [];
  const digest = await sha256Hex(traces);
  if (!members.some((m) => m.get("sha256") === digest && m.get("bytes") === BigInt(traces.length))) return [];
  try {
    return rowsAndTraces(await paired(rowsBehindOpening(files.get(LOG), log), traces));
  } catch (e) {
    if (e instanceof Fault) return [];
    throw e;
  }
}

// rowsBehindOpening returns each row with the digest that it states for its trace, null for a seal.
function rowsBehindOpening(bytes, log) {
  const found = [];
  for (const line of eachLine(bytes, LOG)) {
    const row = parseObject(utf8(line, ""), "");
    checkFields(row, "");
    const stated = digestIn(writtenValue(row.get("inputs_json")));
    found.push({ row, digest: isSeal(row) && stated === "" ? null : stated, line: 0, difference: null });
  }
  return found.slice(1);
}

// paired finds the line of each row's trace, and how the row differs from it.
async function paired(rows, traces) {
  const first = new Map(), stated = [true]; // stated[n]: a row states the digest of line n
  rows.forEach((r, i) => { if (!first.has(r.digest)) first.set(r.digest, i); });
  let number = 0;
  for (const line of eachLine(traces, TRACES)) {
    if (++number > rows.length + 100) break;
    const trace = withoutEnd(line), i = first.get(await sha256Hex(trace));
    stated.push(i !== undefined && rows[i].line === 0);
    if (stated[number]) {
      rows[i].line = number;
      rows[i].difference = difference(rows[i].row, trace);
    }
  }
  return { rows, first, stated };
}

// rowsAndTraces returns the differences. A row that was removed or added moves all those behind it, and changes none of them.
function rowsAndTraces({ rows, first, stated }) {
  const found = [];
  let following = 1;
  for (const [i, r] of rows.entries()) {
    let said = null;
    if (r.line >= following) {
      following = r.line + 1;
      if (r.difference) said = say(Says.ROW_CHANGED, r.difference, r.line);
    } else if (r.line) {
      said = say(Says.ROW_MOVED, r.line);
    } else if (r.digest === null) {
      continue;
    } else if (following < stated.length && !stated[following]) {
      stated[following] = true;
      said = say(Says.ROW_CHANGED, "inputs_json", following);
      following++;
    } else {
      said = rows[first.get(r.digest)].line ? say(Says.ROW_REPEATED, first.get(r.digest) + 2) : Says.ROW_ADDED;
    }
    if (said && found.length === MOST_DIFFERENCES) return [...found, `rows ${i + 2}-${rows.length + 1}: ${Says.MORE_ROWS}`];
    if (said) found.push(`row ${i + 2}: ${said}`);
  }
  const gone = [];
  stated.forEach((row, n) => { if (!row) gone.push(TRACES + ": " + say(Says.ROW_REMOVED, n)); });
  return found.concat(gone.slice(0, MOST_DIFFERENCES - found.length));
}

// difference returns the first field of a row that is not what its trace says, or null. Redacted values and cut outputs are not compared.
function difference(row, line) {
  const entry = writtenValue(row.get("inputs_json")), trace = writtenValue(line);
  if (!(trace instanceof Map)) return null;
  const pairs = ["trace_id", "card_id"].map((name) => ["inputs_json", memberOf(entry, name), trace.get(name)]);
  const action = trace.get("action"), execution = memberOf(memberOf(trace.get("context"), "metadata"), "execution");
  if (!(action instanceof Map) || typeof action.get("type") !== "string") return firstDifferent(pairs);
  const executed = execution instanceof Map, name = textOf(memberOf(execution, "tool_name"));
  let kind = "aap." + action.get("type"), tool = "aap." + textOf(action.get("name"));
  let inputs = emptyAsObject(action.get("parameters"));
  if (executed) {
    kind = "tool_call";
    inputs = execution.has("inputs") ? execution.get("inputs") : new Map();
    if (name) tool = name.includes(".") ? name : "tool." + name;
  }
  pairs.push(["inputs_json", memberOf(entry, "inputs"), inputs]);
  if (executed) {
    if (!row.get("outputs_json").startsWith('{"truncated":true')) {
      pairs.push(["outputs_json", writtenValue(row.get("outputs_json")), execution.has("outputs") ? execution.get("outputs") : new Map()]);
    }
    pairs.push(["error", row.get("error"), textOf(execution.get("error"))]);
  }
  pairs.push(["action_type", row.get("action_type"), encodeName(kind)], ["tool_name", row.get("tool_name"), encodeName(tool)]);
  const cost = executed ? execution.get("cost_cents") ?? (execution.has("cost_cents") ? null : 0n) : null;
  if (typeof cost === "bigint") pairs.push(["cost_cents", row.get("cost_cents"), cost]);
  const at = moment(textOf(trace.get("timestamp")));
  if (at !== null) pairs.push(["timestamp", Math.abs(at - row.get("timestamp").value) > 1e-3, false]);
  return firstDifferent(pairs);
}

// emptyAsObject returns an empty object for what Python takes as false.
function emptyAsObject(value) {
  const empty = value === undefined || value === null || value === false || value === 0n || value === "" || Array.isArray(value) && value.length === 0;
  return empty ? new Map() : value;
}

const NOTHING = Symbol("not JSON"); // equals no value

// writtenValue returns the value of JSON text or bytes, and NOTHING for what is not JSON.
function writtenValue(data) {
  try {
    return parseValue(typeof data === "string" ? data : utf8(data, ""));
  } catch {
    return NOTHING;
  }
}

function firstDifferent(pairs) {
  const written = (value) => (value === NOTHING ? "NaN" : pyDumps(value ?? null, ", ", ": ", (f) => `{"float": "${f.text}"}`));
  for (const [what, a, b] of pairs) {
    const [left, right] = [written(a), written(b)];
    if (left !== right && !(left + right).includes("[REDACTED]")) return what;
  }
  return null;
}

const memberOf = (value, name) => (value instanceof Map ? value.get(name) ?? null : null);
const textOf = (value) => (typeof value === "string" ? value : "");

// moment returns the seconds since 1970 of an RFC 3339 time, or null for one that is written in an unusual way.
function moment(stamp) {
  const found = /^(.{19})(\.[0-9]+)?(?:Z|([+-])([0-9]{2}):([0-9]{2}))$/.exec(stamp), at = found && unixSeconds(found[1] + "Z");
  if (at === null) return null;
  const offset = found[3] ? (Number(found[4]) * 3600 + Number(found[5]) * 60) * (found[3] === "+" ? 1 : -1) : 0;
  return at - offset + (found[2] ? Number("0" + found[2]) : 0);
}
