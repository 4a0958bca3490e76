// The log of a bundle: audit_log.jsonl, row by row, and what its rows say about traces.jsonl (draft sections 2 and 3).
"use strict";

const TYPES = [["id", "int"], ["session_id", "str"], ["action_type", "str"], ["tool_name", "str"], ["inputs_json", "str"], ["outputs_json", "str"],
  ["cost_cents", "int"], ["error", "str"], ["timestamp", "float"], ["prev_hash", "str"], ["row_hash", "str"]];
const CONTENTS = ["inputs_json", "outputs_json", "error"];
const OPEN = "plumbline.open.";
const CONTENT = "aivs.content.sha256.";
const OPENING = [["session_id", "str"], ["agent_id", "str"], ["exported_at", "str"], ["part", "int"], ["last_part", "bool"], ["trace_count", "int"],
  ["redactions", "int"], ["optional_redactions", "int"], ["generator", "str"], ["generator_url", "str"], ["key_id", "str"],
  ["previous_bundle_hash", "str"], ["members", "list"]];
const COUNTS = ["part", "trace_count", "redactions", "optional_redactions"];
const OPTIONAL = ["optional_redactions", "agent_id", "key_id", "previous_bundle_hash"]; // absent instead of empty
const LOG = "audit_log.jsonl", TRACES = "traces.jsonl", ATTESTATION = "attestation.dsse.json", PREVIOUS = "previous_bundle_hash.txt";
const DRAFT_FILES = [LOG, "manifest.json", "public_key.pem", "session_sig.txt", "verify.py", PREVIOUS, ATTESTATION];
const LINE = 16 << 20; // bytes of a row or a trace at most
const LARGEST_WHOLE = 2n ** 53n;

// Changed is a Fault of the seal: the contents are not those sealed.
class Changed extends Fault {}

// Unlinked is the Fault of a row that is not linked to the one before, perhaps because that one was changed, and hashed again.
class Unlinked extends Fault {}

// eachLine returns the lines, each with its end, none of them too long.
function* eachLine(bytes, name) {
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(10, at), next = end < 0 ? bytes.length : end + 1;
    if (next - at > LINE) throw new Fault(name + ": " + say(Says.LONG_LINE, LINE));
    yield bytes.subarray(at, next);
    at = next;
  }
}

const withoutEnd = (line) => (line.at(-1) === 10 ? line.subarray(0, -1) : line);
const isDigest = (text) => /^[0-9a-f]{64}$/.test(text);
const encodeName = (name) => name.replaceAll("%", "%25").replaceAll(":", "%3A");

// unixSeconds returns the seconds since 1970 of YYYY-MM-DDTHH:MM:SSZ, or null.
function unixSeconds(text) {
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$/.test(text) || text < "1970") return null;
  const at = Date.parse(text);
  return Number.isNaN(at) || new Date(at).toISOString() !== text.replace("Z", ".000Z") ? null : at / 1000;
}

// parseOpening returns the contents of the open row, which have one form only.
function parseOpening(text) {
  const wrong = () => new Fault("row 1: " + Says.NOT_OPENING);
  let opening;
  try {
    opening = parseObject(text, "inputs_json");
  } catch {
    throw wrong();
  }
  for (const [name, kind] of OPENING) {
    if (kindOf(opening.get(name)) !== kind && !(OPTIONAL.includes(name) && !opening.has(name))) throw wrong();
  }
  const count = (name) => opening.get(name) ?? 0n;
  const ordered = new Map(OPENING.filter(([name]) => opening.has(name)).map(([name]) => [name, opening.get(name)]));
  if (OPTIONAL.some((name) => opening.get(name) === "" || opening.get(name) === 0n) || unixSeconds(opening.get("exported_at")) === null ||
      opening.get("part") < 1n || COUNTS.some((name) => count(name) < 0n || count(name) >= LARGEST_WHOLE) ||
      !isDigest(opening.get("previous_bundle_hash") ?? "0".repeat(64)) || !listed(opening.get("members")) ||
      ordered.size !== opening.size || pyDumps(ordered, ",", ":") !== text) {
    throw wrong();
  }
  return opening;
}

// listed reports whether a list of members is well formed: verify.py first, then plain names, none of them twice, a folder of
// another one, or one of the draft's files.
function listed(members) {
  const seen = new Set();
  for (const m of members) {
    if (!(m instanceof Map) || [...m].map(([name, v]) => name + ":" + kindOf(v)).join() !== "name:str,bytes:int,sha256:str") return false;
    if (m.get("bytes") < 0n || m.get("bytes") >= LARGEST_WHOLE || !isDigest(m.get("sha256"))) return false;
    const parts = m.get("name").split("/"), lower = m.get("name").toLowerCase();
    if (!parts.every((part) => /^[0-9A-Za-z_~=-][0-9A-Za-z._~=-]*$/.test(part))) return false;
    if (seen.has(lower) || seen.size > 0 && DRAFT_FILES.includes(parts.at(-1).toLowerCase())) return false;
    seen.add(lower);
  }
  const files = new Set([...seen, ...DRAFT_FILES]);
  return members.length > 0 && members[0].get("name") === "verify.py" && ![...seen].some((name) => withinFile(name, files));
}

function checkFields(row, where) {
  for (const [name, kind] of TYPES) {
    const value = row.get(name);
    if (kindOf(value) !== kind || kind === "int" && (value < 0n || value >= LARGEST_WHOLE) || kind === "float" && !Number.isFinite(value.value)) {
      throw new Fault(where + ": " + say(Says.MEMBER, name));
    }
  }
}

const isOpen = (row) => row.get("action_type") === "open" && row.get("tool_name").startsWith(OPEN);
const isSeal = (row) => row.get("action_type") === "seal" && row.get("tool_name").startsWith(CONTENT);

// inputsOf returns the inputs of a row of our own dialect.
function inputsOf(row, where) {
  try {
    return parseObject(row.get("inputs_json"), "inputs_json");
  } catch {
    throw new Fault(where + ": " + Says.INPUTS);
  }
}

// digestIn returns the trace_sha256 of a row's inputs. What is no digest is that of no trace, and may be too long to keep.
function digestIn(inputs) {
  const digest = textOf(memberOf(inputs, "trace_sha256"));
  return isDigest(digest) ? digest : "";
}

// Log folds the rows.
class Log {
  rows = 0;          // so far
  prev = "";         // the hash of the row before
  session = null;    // of row 1
  links = new RunningHash();    // of the hash of each row
  contents = new RunningHash(); // of the digests of what the seal covers
  opening = null;    // of a bundle in Plumbline's own dialect
  exported = 0;      // its time, in Unix seconds
  blank = false;     // an empty line was seen
  sealed = 0;        // the row of the last content seal
  actions = 0;       // rows between open and seal
  hasTraces = false;
  traces = [];       // the digest in each action, where the bundle carries the traces
  last = 0n;         // the id before
  gap = null;        // the first id that is not its row's number: the draft's first generator counts the rows of all its sessions together
  seven = false;     // a row was hashed over seven fields,
  nine = false;      // over nine: inputs and outputs, too, or their digests
  joined = 0;        // the first row hashed over inputs and outputs as text

  async add(line) {
    const where = "row " + (this.rows + 1);
    if (line.every((b) => b === 32 || b === 9 || b === 13 || b === 10)) {
      this.blank = true;
      if (this.opening) throw new Fault(where + ": " + Says.EMPTY_LINE);
      return;
    }
    const text = utf8(line, where), row = parseObject(text, where);
    checkFields(row, where);
    this.session ??= row.get("session_id");
    this.nine ||= typeof row.get("inputs_digest") === "string" || row.has("schema_version");
    const opens = isOpen(row), own = opens || this.opening !== null;
    const id = row.get("id");
    let problem = await this.linkProblem(row, own);
    if (id !== BigInt(this.rows + 1) || id <= this.last) {
      const found = say(Says.OUT_OF_ORDER, id);
      if (problem || own || id <= this.last) problem = found;
      else this.gap ??= where + ": " + found;
    }
    if (problem === say(Says.UNLINKED, this.rows)) throw new Unlinked(where + ": " + problem);
    if (problem) throw new Fault(where + ": " + problem);
    if (isSeal(row) && row.get("tool_name") !== CONTENT + this.contents.hex()) {
      const before = this.rows > 1 ? "rows 1-" + this.rows : "row 1";
      throw new Changed(before + ": " + say(Says.UNSEALED, this.rows + 1));
    }
    if (opens && id === 1n) this.open(row);
    if (this.opening) this.checkOwn(row, text, where);
    else if (isSeal(row)) this.sealForeign(row, where);
    this.rows++;
    this.last = id;
    this.prev = row.get("row_hash");
    this.links.add(bytesOf(this.prev));
    for (const digest of await Promise.all(CONTENTS.map((name) => sha256(bytesOf(row.get(name)))))) this.contents.add(digest);
  }

  // linkProblem returns what is wrong with a row, whatever its id, and with its link to the one before.
  async linkProblem(row, own) {
    if (row.get("session_id") !== this.session) return Says.OTHER_ONE;
    if ((row.get("session_id") + row.get("action_type") + row.get("tool_name")).includes(":")) return Says.COLON;
    if (row.get("prev_hash") !== this.prev) return say(Says.UNLINKED, this.rows);
    if (await this.hashed(row) === row.get("row_hash")) {
      this.seven = true;
      return null;
    }
    return own ? Says.REHASHED : this.nineProblem(row);
  }

  hashed(row, ...further) {
    const fields = [row.get("id"), row.get("session_id"), row.get("action_type"), row.get("tool_name"), row.get("cost_cents"),
      pyFloat(row.get("timestamp").value), this.prev, ...further];
    return sha256Hex(bytesOf(fields.join(":")));
  }

  // nineProblem checks a row hash that is not the draft's against those over nine fields.
  async nineProblem(row) {
    const texts = [row.get("inputs_json"), row.get("outputs_json")];
    const digests = await Promise.all(texts.map((text) => (text ? sha256Hex(bytesOf(text)) : "")));
    const stated = ["inputs_digest", "outputs_digest"].map((name) => (typeof row.get(name) === "string" ? row.get(name) : null));
    if (!stated.includes(null)) {
      if (await this.hashed(row, ...stated) === row.get("row_hash")) {
        this.nine = true;
        return stated.join() === digests.join() ? null : Says.REDIGESTED;
      }
    } else if (stated[0] === null && stated[1] === null) {
      if (await this.hashed(row, ...digests) === row.get("row_hash")) {
        this.nine = true;
        return null;
      }
      if (await this.hashed(row, ...texts) === row.get("row_hash")) {
        this.nine = true;
        this.joined ||= this.rows + 1;
        return null;
      }
    }
    return Says.REHASHED;
  }

  open(row) {
    if (row.get("tool_name") !== OPEN + "1") throw new Fault("row 1: " + say(Says.NEWER, quoted(row.get("tool_name"))));
    const opening = parseOpening(row.get("inputs_json"));
    this.exported = unixSeconds(opening.get("exported_at"));
    if (row.get("session_id") !== encodeName(opening.get("session_id")) || this.blank || !this.frames(row)) {
      throw new Fault("row 1: " + Says.NOT_OPENING);
    }
    this.opening = opening;
    this.hasTraces = opening.get("members").some((m) => m.get("name") === TRACES);
  }

  // frames reports whether a row has what open and seal rows have: no results, and the time of the export.
  frames(row) {
    return row.get("outputs_json") === "{}" && row.get("error") === "" && row.get("cost_cents") === 0n && row.get("timestamp").value === this.exported;
  }

  // sealForeign demands of the seal of another generator that it has no contents: a seal covers those of the rows before it.
  sealForeign(row, where) {
    const nothing = (name) => ["", "{}"].includes(row.get(name));
    if (!nothing("inputs_json") || !nothing("outputs_json") || row.get("error") !== "") throw new Fault(where + ": " + Says.SEAL_EMPTY);
    this.sealed = this.rows + 1;
  }

  // checkOwn checks what our own dialect demands beyond the draft.
  checkOwn(row, text, where) {
    if (this.sealed) throw new Fault(where + ": " + Says.AFTER_SEAL);
    if ([...row.keys()].join() !== TYPES.map(([name]) => name).join() || pyDumps(row) + "\n" !== text) throw new Fault(where + ": " + Says.NOT_OURS);
    if (this.rows > 0 && isOpen(row)) throw new Fault(where + ": " + Says.LATE_OPEN);
    if (isSeal(row)) {
      if (row.get("inputs_json") !== "{}" || !this.frames(row)) throw new Fault(where + ": " + Says.SEAL_CONTENT);
      this.sealed = Number(row.get("id"));
    } else if (this.rows > 0) {
      this.actions++;
      if (this.hasTraces) this.traces.push(digestIn(inputsOf(row, where)));
    }
  }

  async chainHash() { return this.rows ? this.links.hex() : sha256Hex(bytesOf("empty")); }

  // covered says in words what a signature over the chain hash covers of a log that is not ours.
  covered() {
    if (this.rows > 0 && this.sealed === this.rows) return [Says.ROWS, Says.INPUTS_TOO, Says.OUTPUTS_TOO, Says.ERRORS_TOO];
    return this.nine && !this.seven && !this.joined ? [Says.ROWS, Says.INPUTS_TOO, Says.OUTPUTS_TOO] : [Says.ROWS];
  }

  // uncovered returns what neither rows nor manifest of such a log give a means to check.
  uncovered() {
    const found = [];
    if (this.gap !== null) found.push(Says.NO_NUMBERS);
    if (this.joined) found.push(say(Says.NO_BORDER, this.joined));
    if (this.rows > 0 && this.sealed === this.rows) return found;
    if (this.sealed) found.push(say(Says.NONE_AFTER, this.sealed));
    else if (this.nine && this.seven) found.push(Says.NONE_MIXED);
    else found.push(this.nine ? Says.NO_ERRORS : Says.NO_CONTENTS);
    return found;
  }
}
