// The judgement on a bundle: what verify.py judges (draft section 7), in its order and in its words, and the archive around it.
// KNOWN_VERIFIERS, which the page is built with, has the SHA-256 of each verify.py that Plumbline has written.
"use strict";

const SMALL = 256 << 10;     // bytes of each of the draft's small files
const FILES = 10000 * 1280;  // of the attestation, which has a line for each of many files
const PAYLOAD = "application/vnd.in-toto+json";
const STATEMENT = "https://in-toto.io/Statement/v1";
const PREDICATE = "https://github.com/plumbline/plumbline/aivs-session/v1";
const SIGNATURES = 100;      // are tried
const GZIP_HEADER = "1f8b08000000000000ff", FORMER_GZIP_HEADER = "1f8b0800" + "00096e88" + "00ff";

// Verification is what is known about one bundle.
class Verification {
  passed = [];      // the checks, with their results
  skipped = [];     // what was not checked, or is not covered
  faults = [];      // a text for each, with its place; empty: intact
  log = new Log();
  archive = new Archive();
  key = null;       // the signer's, if the signature is right
  chain = "";       // the chain hash
  conclusion = Says.NOT_INTACT;
  verdict = Says.VERDICTLESS;

  constructor(pinned) { this.pinned = pinned; }
}

// verifyBundle judges the bytes of a .tar.gz. With a pinned key, 32 bytes, that key must have signed. It throws only where
// nothing can be judged at all, as in a browser without Ed25519.
async function verifyBundle(bytes, pinned = null) {
  const v = new Verification(pinned);
  v.sha256 = await sha256Hex(bytes);
  try {
    v.archive = await unpack(bytes);
    await judge(v);
    v.conclusion = concluded(v) + " " + Says.ABOUT_AGENT;
    v.verdict = recordedVerdict(v);
  } catch (e) {
    if (!(e instanceof Fault)) throw e;
    v.faults = e.texts;
    v.passed = [];
  }
  return v;
}

async function judge(v) {
  const files = v.archive.files;
  checkSizes(files);
  await checkLog(v);
  v.chain = await v.log.chainHash();
  const manifest = await checkManifest(v);
  const signature = await checkSignature(v);
  if (v.log.opening) await checkOwn(v, manifest, signature);
  else if (files.has(PREVIOUS) && !isDigest(stripped(read(files, PREVIOUS), " \t\r\n"))) throw new Fault(`${PREVIOUS}: ${Says.NOT_SHA256}`);
  v.whole = await checkAttestation(v) || v.log.opening !== null;
  if (v.log.opening) checkArchive(v);
  if (!v.whole) v.skipped.push(...v.log.uncovered(), Says.NO_FILES);
}

// checkSizes refuses large files of the draft, those that nothing else here reads, too.
function checkSizes(files) {
  for (const name of DRAFT_FILES.slice(1)) {
    const limit = name === ATTESTATION ? SMALL + FILES : SMALL;
    if (files.get(name)?.length > limit) throw new Fault(`${name}: ${say(Says.TOO_LARGE, limit)}`);
  }
}

// bytesIn returns the contents of a file that must be there.
function bytesIn(files, name) {
  if (!files.has(name)) throw new Fault(`${name}: ${Says.MISSING}`);
  return files.get(name);
}

// read returns a small file, with a character for each of its bytes.
function read(files, name, limit = SMALL) {
  const data = bytesIn(files, name);
  if (data.length > limit) throw new Fault(`${name}: ${say(Says.TOO_LARGE, limit)}`);
  return latin1(data);
}

function readJSON(files, name, limit = SMALL) {
  read(files, name, limit);
  const text = utf8(files.get(name), name);
  return [parseObject(text, name), text];
}

async function checkLog(v) {
  const files = v.archive.files;
  try {
    for (const line of eachLine(bytesIn(files, LOG), LOG)) await v.log.add(line);
  } catch (e) {
    if (e instanceof Changed) {
      const rows = await changedRows(files, v.log);
      throw new Fault(...(rows.length ? rows : e.texts));
    }
    if (e instanceof Unlinked) throw new Fault(...await changedRows(files, v.log), ...e.texts);
    throw e;
  }
  v.passed.push(say(Says.PASS_CHAIN, v.log.rows));
}

// changed returns a Fault that also names the rows that differ from their traces.
async function changed(v, text) { return new Fault(...await changedRows(v.archive.files, v.log), text); }

async function checkManifest(v) {
  const [manifest, text] = readJSON(v.archive.files, "manifest.json"), at = "manifest.json: ";
  const [session, chain, count] = ["session_id", "chain_hash", "action_count"].map((name) => manifest.get(name) ?? null);
  if (session === null || chain === null || count === null) throw new Fault(at + Says.NO_MANIFEST);
  if (chain !== v.chain) throw await changed(v, at + say(Says.CHAIN_HASH, shown(chain), v.chain));
  if (count !== BigInt(v.log.rows)) throw await changed(v, at + say(Says.COUNT, shown(count), v.log.rows));
  if (typeof session !== "string" || v.log.session !== null && v.log.session !== session) {
    throw new Fault(at + say(Says.SESSION, shown(session), quoted(v.log.session ?? "")));
  }
  if (v.log.gap !== null && manifest.has("aivs_version") && !manifest.has("conduit_version")) throw new Fault(v.log.gap);
  v.passed.push(Says.PASS_MANIFEST);
  v.manifest = manifest;
  return text;
}

// ---- the key and the signature

// writtenKey returns the key in any form in use: SPKI PEM, a comment line, both, or bare; null where there is none.
function writtenKey(text) {
  const at = "public_key.pem: ", found = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("# Ed25519 public key:")) found.push(hexBytes(stripped(line.slice(line.indexOf(":") + 1), " \t\r"), 32));
  }
  const begin = "-----BEGIN PUBLIC KEY-----", end = "-----END PUBLIC KEY-----", from = text.indexOf(begin) + begin.length;
  if (text.includes(begin) && text.indexOf(end, from) >= 0) {
    const der = base64Bytes(text.slice(from, text.indexOf(end, from)).replace(/[ \t\n\r\v\f]/g, ""), 44);
    found.push(der && hexOf(der.subarray(0, 12)) === "302a300506032b6570032100" ? der.subarray(12) : null);
  }
  if (found.length === 0) {
    const bare = stripped(text, " \t\r\n");
    if (text.length === 32) return Uint8Array.from(text, (c) => c.charCodeAt(0));
    if (bare.length === 64 && hexBytes(bare, 32) === null) throw new Fault(at + Says.NOT_KEY);
    return hexBytes(bare, 32) ?? base64Bytes(bare, 32);
  }
  if (found.includes(null)) throw new Fault(at + Says.NOT_KEY);
  if (!found.every((key) => equalBytes(key, found[0]))) throw new Fault(at + Says.TWO_KEYS);
  return found[0];
}

function signatureLines(files) {
  const lines = new Map(), at = "session_sig.txt: ";
  if (!files.has("session_sig.txt")) return lines;
  for (const line of read(files, "session_sig.txt").split("\n")) {
    const colon = line.indexOf(":"), name = line.slice(0, colon);
    if (colon < 0 || line.startsWith("#")) continue;
    if (lines.has(name)) throw new Fault(at + say(Says.TWO_LINES, quoted(name)));
    lines.set(name, stripped(line.slice(colon + 1), " \t\r"));
  }
  const signed = lines.has("signature");
  if (signed && !lines.get("signature") || (signed || lines.has("chain_hash")) && !lines.get("chain_hash")) throw new Fault(at + Says.EMPTY_SIGNED);
  return lines;
}

// checkSignature returns the text of a valid signature, or null where the bundle is not signed.
async function checkSignature(v) {
  const files = v.archive.files, lines = signatureLines(files), at = "session_sig.txt: ";
  if (lines.has("chain_hash") && lines.get("chain_hash") !== v.chain) throw await changed(v, at + Says.LOG_CHANGED);
  if (!lines.has("signature")) {
    if (v.pinned || v.log.opening?.has("key_id")) throw await changed(v, at + Says.UNSIGNED);
    v.skipped.push(Says.NO_SIGNATURE);
    return null;
  }
  const key = writtenKey(read(files, "public_key.pem"));
  if (key !== null && smallOrder(key)) throw new Fault("public_key.pem: " + Says.SMALL_ORDER);
  if (key === null) throw new Fault("public_key.pem: " + Says.NO_KEY);
  const signature = base64Bytes(lines.get("signature"), 64);
  if (signature === null) throw new Fault(at + Says.NOT_BASE64);
  if (!await signatureHolds(key, signature, bytesOf(v.chain))) throw await changed(v, at + Says.WRONG);
  if (v.pinned && !equalBytes(key, v.pinned)) throw await changed(v, "public_key.pem: " + say(Says.STRANGER, hexOf(key)));
  v.passed.push(say(Says.PASS_SIGNATURE, hexOf(key)));
  if (v.pinned) v.passed.push(Says.PASS_SIGNER);
  else v.skipped.push(Says.NO_SIGNER);
  v.key = key;
  return lines.get("signature");
}

// ---- our own dialect: every byte is accounted for

const former = (v) => KNOWN_VERIFIERS[v.script] ?? { known: false, attested: true, formerGzip: false };

async function checkOwn(v, manifest, signature) {
  const { log, archive: { files } } = v, opening = log.opening;
  if (log.sealed !== log.rows) throw new Fault(`row ${log.rows}: ${Says.NO_SEAL}`);
  if (ownManifest(v) !== manifest) throw new Fault("manifest.json: " + Says.MANIFEST);
  await checkForms(v, signature);
  const previous = opening.get("previous_bundle_hash");
  if (files.has(PREVIOUS) !== (previous !== undefined) || previous !== undefined && read(files, PREVIOUS) !== previous) {
    throw new Fault(`${PREVIOUS}: ${Says.NOT_OF_ROW1}`);
  }
  v.script = files.has("verify.py") ? await sha256Hex(files.get("verify.py")) : "";
  if (v.script && !former(v).known) throw new Fault("verify.py: " + Says.VERIFIER);
  for (const member of opening.get("members")) await checkMember(v, member);
  const expected = new Set([...DRAFT_FILES, ...opening.get("members").map((m) => m.get("name"))]);
  for (const name of [...files.keys()].sort()) {
    if (!expected.has(name)) throw new Fault(`${name}: ${Says.UNLISTED}`);
  }
  v.passed.push(say(Says.PASS_CONTENTS, log.sealed), say(Says.PASS_MEMBERS, opening.get("members").length));
  await checkTraces(v);
}

function ownManifest(v) {
  const o = v.log.opening;
  const want = [["session_id", v.log.session], ["exported_at", o.get("exported_at")], ["action_count", BigInt(v.log.rows)], ["chain_hash", v.chain],
    ["aivs_version", "1.0"], ["generator", o.get("generator")], ["generator_url", o.get("generator_url")], ["original_session_id", o.get("session_id")]];
  for (const name of ["agent_id", "trace_count", "redactions", "optional_redactions", "part", "last_part", "previous_bundle_hash", "key_id"]) {
    if (o.has(name)) want.push([name, o.get(name)]);
  }
  return "{\n" + want.map(([name, value]) => `  ${pyString(name)}: ${pyDumps(value)}`).join(",\n") + "\n}\n";
}

// checkForms demands the one form that the two files of the signature have.
async function checkForms(v, signature) {
  const files = v.archive.files;
  let signed = "# Ed25519 signing not available\n", pem = "# No signing key configured\n";
  if (signature !== null) {
    signed = `signature:${signature}\n`;
    const body = read(files, "public_key.pem").split("\n")[1] ?? "";
    if (base64Bytes(body, 44) === null) throw new Fault("public_key.pem: " + Says.NOT_OURS);
    pem = `-----BEGIN PUBLIC KEY-----\n${body}\n-----END PUBLIC KEY-----\n# Ed25519 public key: ${hexOf(v.key)}\n`;
    if (v.log.opening.get("key_id") !== (await sha256Hex(v.key)).slice(0, 16)) throw await changed(v, "row 1: " + Says.KEY_ID);
  }
  if (read(files, "session_sig.txt") !== `chain_hash:${v.chain}\n${signed}`) throw new Fault("session_sig.txt: " + Says.NOT_OURS);
  if (read(files, "public_key.pem") !== pem) throw new Fault("public_key.pem: " + Says.NOT_OURS);
}

async function checkMember(v, member) {
  const name = member.get("name"), data = v.archive.files.get(name);
  if (!data) throw new Fault(`${name}: ${Says.LISTED}`);
  if (BigInt(data.length) === member.get("bytes") && await sha256Hex(data) === member.get("sha256")) return;
  const bad = name === TRACES ? await badTrace(v) : 0;
  throw new Fault(`${name}: ` + (bad ? say(Says.TRACE_CHANGED, bad, bad + 1) : Says.FILE_CHANGED));
}

// badTrace returns the first line of traces.jsonl that is not its row's trace, or 0.
async function badTrace(v) {
  let n = 0;
  for (const line of eachLine(v.archive.files.get(TRACES), TRACES)) {
    if (++n > v.log.traces.length) return 0;
    if (line.at(-1) !== 10 || await sha256Hex(withoutEnd(line)) !== v.log.traces[n - 1]) return n;
  }
  return 0;
}

async function checkTraces(v) {
  const { log } = v, count = log.opening.get("trace_count");
  if (count !== BigInt(log.actions)) throw new Fault("row 1: " + say(Says.TRACE_COUNT, count, log.actions));
  if (!log.hasTraces) {
    v.skipped.push(Says.NO_TRACES);
    return;
  }
  const bad = await badTrace(v);
  if (bad) throw new Fault(`row ${bad + 1}: ` + say(Says.TRACE_DIGEST, bad));
  const lines = [...eachLine(v.archive.files.get(TRACES), TRACES)].length;
  if (lines !== log.traces.length) throw new Fault("traces.jsonl: " + say(Says.TRACE_LINES, lines, log.traces.length));
  v.passed.push(say(Says.PASS_TRACES, lines));
}

// ownFiles returns the names of the files before the attestation, in their one order.
function ownFiles(v) {
  const o = v.log.opening;
  return [...DRAFT_FILES.slice(0, 5), ...(o.has("previous_bundle_hash") ? [PREVIOUS] : []), ...o.get("members").slice(1).map((m) => m.get("name"))];
}

// checkArchive demands the one archive that Plumbline writes of these files.
function checkArchive(v) {
  const { archive } = v, attested = archive.files.has(ATTESTATION) ? [ATTESTATION] : [];
  if ([...archive.files.keys()].join("\0") !== [...ownFiles(v), ...attested].join("\0")) {
    throw new Fault(ARCHIVE + "repacked after it was made: files are missing, or not in the order that Plumbline writes");
  }
  if (!archive.canonical) {
    throw new Fault(ARCHIVE + "repacked after it was made: its entries, their order or their headers are not those that Plumbline writes");
  }
  if (archive.header !== (former(v).formerGzip ? FORMER_GZIP_HEADER : GZIP_HEADER)) {
    throw new Fault(ARCHIVE + "compressed again after it was made: its gzip header is not the one that Plumbline writes");
  }
  if (archive.packed > archive.unpacked + (archive.unpacked >> 12) + 1024) {
    throw new Fault(ARCHIVE + `compressed again after it was made: ${archive.packed} bytes hold an archive of ${archive.unpacked}`);
  }
}

// ---- the attestation: a DSSE envelope around an in-toto statement

const inEnvelope = (text) => new Fault(`${ATTESTATION}: ${text}`);

// checkAttestation reports whether the same key signed for every other file.
async function checkAttestation(v) {
  const { log, archive: { files } } = v;
  if (!files.has(ATTESTATION)) {
    if (log.opening && v.key && former(v).attested) throw inEnvelope(Says.ATTEST_MISSING);
    return false;
  }
  if (v.key === null) throw inEnvelope(Says.ATTEST_ALONE);
  const payload = await envelopePayload(v);
  if (log.opening) {
    if (!equalBytes(payload, bytesOf(await ownStatement(v)))) throw inEnvelope(Says.ATTEST_OTHER);
  } else {
    await checkSubjects(files, payload);
  }
  v.passed.push(Says.PASS_ATTESTATION);
  return true;
}

// ownStatement returns the statement over these files as Plumbline writes it, not in ASCII.
async function ownStatement(v) {
  const o = v.log.opening, write = (text) => JSON.stringify(text);
  const subjects = await Promise.all(ownFiles(v).map(async (name) =>
    `{"name":${write(ROOT + name)},"digest":{"sha256":"${await sha256Hex(bytesIn(v.archive.files, name))}"}}`));
  const about = `{"session_id":${write(v.log.session)},"action_count":${v.log.rows},"chain_hash":"${v.chain}",` +
    `"previous_bundle_hash":"${o.get("previous_bundle_hash") ?? ""}"}`;
  return `{"_type":"${STATEMENT}","subject":[${subjects.join(",")}],"predicateType":"${PREDICATE}","predicate":${about}}`;
}

// typedMember returns a member of an object, the given value where it is missing or null, undefined where it is of another type.
function typedMember(value, name, absent) {
  const found = value instanceof Map ? value.get(name) ?? null : undefined;
  if (found === null) return absent;
  return kindOf(found) === kindOf(absent) ? found : undefined;
}

const eitherAlphabet = (text) => (typeof text === "string" ? text.replaceAll("-", "+").replaceAll("_", "/") : "");

async function envelopePayload(v) {
  const [envelope, text] = readJSON(v.archive.files, ATTESTATION, SMALL + FILES);
  const text64 = typedMember(envelope, "payload", ""), kind = typedMember(envelope, "payloadType", ""), signatures = typedMember(envelope, "signatures", []);
  if (text64 === undefined || kind === undefined || signatures === undefined) throw inEnvelope(Says.ENVELOPE);
  if (signatures.length > SIGNATURES) throw inEnvelope(say(Says.SIGNATURES, SIGNATURES));
  const payload = base64Bytes(eitherAlphabet(text64));
  if (payload === null || kind !== PAYLOAD) throw inEnvelope(Says.ENVELOPE);
  const message = concat([bytesOf(`DSSEv1 ${PAYLOAD.length} ${PAYLOAD} ${payload.length} `), payload]);
  for (const entry of signatures) {
    const sig = memberOf(entry, "sig"), signature = base64Bytes(eitherAlphabet(sig), 64);
    if (signature === null || !await signatureHolds(v.key, signature, message)) continue;
    const keyid = (await sha256Hex(v.key)).slice(0, 16);
    const form = `{"payloadType":"${PAYLOAD}","payload":${pyString(text64)},"signatures":[{"keyid":"${keyid}","sig":${pyString(sig)}}]}\n`;
    if (v.log.opening && form !== text) throw inEnvelope(Says.NOT_OURS);
    return payload;
  }
  throw inEnvelope(Says.ATTEST_KEY);
}

// checkSubjects checks that the statement of another generator lists every file once.
async function checkSubjects(files, payload) {
  let statement;
  try {
    statement = parseObject(utf8(payload, ""), "");
  } catch {
    throw inEnvelope(Says.STATEMENT);
  }
  const entries = typedMember(statement, "subject", []), covered = new Set();
  const pairs = (entries ?? []).map((entry) => {
    const subject = entry === null ? new Map() : entry, digest = typedMember(subject, "digest", new Map());
    return [typedMember(subject, "name", ""), digest && typedMember(digest, "sha256", "")];
  });
  if (typedMember(statement, "_type", "") !== STATEMENT || entries === undefined || pairs.flat().includes(undefined)) throw inEnvelope(Says.STATEMENT);
  for (const [subject, digest] of pairs) {
    const name = subject.startsWith(ROOT) ? subject.slice(ROOT.length) : subject;
    if (!files.has(name) || covered.has(name) || await sha256Hex(files.get(name)) !== digest) throw inEnvelope(say(Says.SIGNED_OTHER, quoted(subject)));
    covered.add(name);
  }
  for (const name of [...files.keys()].sort()) {
    if (name !== ATTESTATION && !covered.has(name)) throw inEnvelope(say(Says.NOT_SIGNED_FOR, quoted(name)));
  }
}

// ---- the conclusion

function concluded(v) {
  if (v.key === null) return Says.SELF_INTACT;
  return v.whole ? Says.INTACT : say(Says.PART_INTACT, v.log.covered().join(", "));
}

// recordedVerdict says what session.json of our own dialect concludes about the agent.
function recordedVerdict(v) {
  let verdict = new Map();
  if (v.log.opening && v.archive.files.get("session.json")?.length > SMALL) return say(Says.LONG_VERDICT, SMALL);
  try {
    if (v.log.opening && v.archive.files.has("session.json")) [verdict] = readJSON(v.archive.files, "session.json");
  } catch (e) {
    if (!(e instanceof Fault)) throw e;
  }
  const action = memberOf(verdict, "recommended_action"), traces = memberOf(verdict, "traces");
  if (!["proceed", "review", "deny"].includes(action) || typeof memberOf(verdict, "verified") !== "boolean" || !(traces instanceof Map)) return Says.NO_VERDICT;
  const maps = [memberOf(traces, "violations"), memberOf(traces, "findings"), memberOf(verdict, "finding_counts")];
  if (maps.some((m) => m !== null && !(m instanceof Map))) return Says.NO_VERDICT;
  const sum = (m) => [...(m ?? new Map()).values()].reduce((n, c) => n + (typeof c === "bigint" && c >= 0n && c < 2n ** 31n ? Number(c) : 0), 0);
  const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  return say(Says.VERDICT, action.toUpperCase(), counted(sum(maps[0]), "violation"), counted(sum(maps[1]) + sum(maps[2]), "finding"));
}
