// The sentences of a verification: those of `plumbline bundle verify` and of verify.py, word for word.
// A test compares the three lists. %d, %s and %r are filled in by say.
"use strict";

const Says = {
  // What was checked and is right.
  PASS_CHAIN: "hash chain: %d rows, each linked to the one before",
  PASS_MANIFEST: "manifest: chain hash, count and session agree with the log",
  PASS_SIGNATURE: "signature: Ed25519, by %s",
  PASS_SIGNER: "who signed: the key is one that was given with --key, or that it leads to",
  PASS_ATTESTATION: "second signature: every file is signed for by the same key",
  PASS_CONTENTS: "contents: inputs, outputs and errors are sealed by row %d",
  PASS_MEMBERS: "files: %d files are those that row 1 lists",
  PASS_TRACES: "traces: %d lines, one for each row",

  // What could not be checked. SKIP is the draft's word (section 7.2).
  SKIP: "SKIP  NOT CHECKED: %s",
  NO_SIGNER: "who signed. Get the operator's public key by another way and run again with --key.",
  NO_SIGNATURE: "the signature. The bundle is not signed: anyone can have made it.",
  NO_TRACES: "the traces. The bundle carries none.",
  NO_FILES: "files other than the log. There is no open row and no second signature, so nothing covers them.",
  NO_NUMBERS: "missing rows. The generator counts the rows of all its sessions together, so a gap shows nothing.",
  NO_BORDER: "where inputs end and outputs begin. The hash of row %d, and of others like it, does not show it.",
  NONE_AFTER: "inputs, outputs and errors after row %d, the last seal. Nothing covers them.",
  NONE_MIXED: "errors, and inputs and outputs of the rows hashed over seven fields. There is no seal row, so nothing covers them.",
  NO_ERRORS: "errors. There is no seal row, so nothing covers them.",
  NO_CONTENTS: "inputs, outputs and errors. There is no seal row, so nothing covers them.",

  // Faults of any text.
  MISSING: "missing",
  NOT_PLAIN: "not a plain file",
  TOO_LARGE: "more than %d bytes",
  LONG_LINE: "a line is longer than %d bytes",
  NOT_JSON: "not strict JSON",
  NOT_OBJECT: "not a JSON object",
  TOO_DEEP: "not strict JSON: nested deeper than %d levels",
  NOT_OURS: "not written as Plumbline writes it",
  NOT_SHA256: "not a SHA-256 in 64 lower-case hexadecimal digits",
  NOT_OF_ROW1: "changed: not what row 1 says",
  TOO_MANY: "more than %d files",
  NAMES_TWICE: "two files have the same name, or differ only in case",
  FOLDER_TOO: "a file has the name of a folder",

  // Faults of a row.
  MEMBER: "member %s is missing, of the wrong type or out of range",
  EMPTY_LINE: "an empty line stands before it",
  OTHER_ONE: "its session_id is not that of row 1",
  COLON: "a ':' in session_id, action_type or tool_name makes its hash ambiguous",
  UNLINKED: "does not follow row %d: its prev_hash is not the hash of that row",
  REHASHED: "changed: its row_hash is not the hash of its fields",
  REDIGESTED: "its inputs or outputs were changed, or redacted, after their digests were made",
  OUT_OF_ORDER: "missing or out of order (found number %d)",
  UNSEALED: "an input, output or error was changed after row %d sealed them",
  AFTER_SEAL: "comes after the seal, which must be the last row",
  LATE_OPEN: "an open row, which only row 1 may be",
  SEAL_CONTENT: "a seal row has no contents, and the time of row 1",
  SEAL_EMPTY: "a seal row has no inputs, outputs or error, since nothing covers them",
  NO_SEAL: "the last row is not a seal: rows were removed from the end",
  INPUTS: "its inputs_json is not a JSON object",
  NEWER: "%s was made by a newer version than this verifier knows",
  NOT_OPENING: "not written as Plumbline writes it, or of another session",
  KEY_ID: "its key_id is not that of public_key.pem",
  TRACE_COUNT: "its trace_count is %d, there are %d rows",
  TRACE_DIGEST: "its trace_sha256 is not that of line %d of traces.jsonl",

  // Rows compared with their traces.
  ROW_CHANGED: "changed: its %s is not that of its trace, line %d of traces.jsonl",
  ROW_MOVED: "moved: its trace is line %d of traces.jsonl, before those of rows before it",
  ROW_REPEATED: "added: it has the trace of row %d",
  ROW_ADDED: "added: no line of traces.jsonl is its trace",
  ROW_REMOVED: "the row of line %d was removed",
  MORE_ROWS: "more of them differ from their traces",

  // Faults of a file.
  LISTED: "missing, though row 1 lists it",
  UNLISTED: "not a file of this bundle: row 1 does not list it",
  FILE_CHANGED: "changed: not the file that was sealed",
  TRACE_CHANGED: "line %d was changed: it is not the trace that row %d records",
  TRACE_LINES: "%d lines for %d rows",
  VERIFIER: "not a verify.py that this version of Plumbline writes, or an earlier one",
  MANIFEST: "changed: not what row 1 says, or not written as Plumbline writes it",
  NO_MANIFEST: "session_id, chain_hash or action_count is missing",
  CHAIN_HASH: "chain_hash is %s, the log has %s",
  COUNT: "action_count is %s, the log has %d rows",
  SESSION: "session_id is %s, the rows have %s",

  // Faults of the key and of the signatures.
  LOG_CHANGED: "the log was changed after it was signed: its chain hash is not the one written here",
  UNSIGNED: "there is no signature, and one is required",
  WRONG: "the signature is wrong: it is not by the key in public_key.pem over this log",
  NOT_BASE64: "the signature is not the base64 of 64 bytes",
  EMPTY_SIGNED: "the signature or the chain_hash it is over is empty",
  TWO_LINES: "two lines %s",
  NO_KEY: "there is a signature but no key",
  NOT_KEY: "not an Ed25519 public key",
  TWO_KEYS: "the public key was replaced: the file holds two keys that differ",
  SMALL_ORDER: "a key of small order: it accepts signatures that nobody made",
  STRANGER: "signed by %s, which is not a key given with --key",
  ATTEST_MISSING: "missing, though the bundle is signed",
  ATTEST_ALONE: "the main signature is missing or wrong, so this second one cannot be trusted",
  ATTEST_OTHER: "the second signature does not match these files",
  ATTEST_KEY: "no signature in it is by the key in public_key.pem",
  ENVELOPE: "not an envelope of application/vnd.in-toto+json",
  STATEMENT: "its statement is not an in-toto statement",
  SIGNATURES: "more than %d signatures",
  SIGNED_OTHER: "%s is not the file that was signed for",
  NOT_SIGNED_FOR: "%s is not signed for",

  // The conclusions: about the bundle, then about the agent.
  NOT_INTACT: "NOT INTACT: do not rely on this bundle.",
  INTACT: "INTACT: this bundle is unchanged since it was signed.",
  SELF_INTACT: "INTACT, NOT SIGNED: this bundle agrees with itself, but anyone can have made or changed it.",
  PART_INTACT: "INTACT IN PART: the signature covers %s; nothing else in this bundle is protected.",
  ROWS: "session, action, tool, cost, time and order of the rows",
  INPUTS_TOO: "their inputs",
  OUTPUTS_TOO: "their outputs",
  ERRORS_TOO: "their errors",
  FILES_TOO: "the other files",
  ABOUT_AGENT: "It says nothing about whether the agent behaved well.",
  VERDICT: "Verdict recorded inside: %s (%s, %s).",
  NO_VERDICT: "Verdict recorded inside: none.",
  LONG_VERDICT: "Verdict recorded inside: not read, since session.json is larger than %d bytes.",
  VERDICTLESS: "Verdict recorded inside: not read, since the bundle is not intact.",

  // What no verification shows.
  NOT_PROVEN: "Not proven:",
  NOT_TRUTH: "Truthfulness: what the rows say need not have happened, and an action that was never recorded leaves no trace.",
  NOT_TIME: "Time: each decision has the time that the agent gave.",
  NOT_OWNER: "Key: the bundle names the key that signed it; whose key that is must be known from elsewhere.",
};

// say fills in a sentence: each %d and %s with the next value.
function say(sentence, ...values) {
  return sentence.replace(/%[ds]/g, () => String(values.shift()));
}
