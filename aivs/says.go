package aivs

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/plumbline/plumbline/aivs/pyjson"
)

// The sentences of a verification. `plumbline bundle verify`, `plumbline bundle report` and
// verify.py use the same ones: class Says of verify.py has each of them under the same name, and a
// test compares the two lists. A place ("row 3", "manifest.json") precedes a fault: "row 3: changed: …".
const (
	// What was checked and is right.
	saysPassChain       = "hash chain: %d rows, each linked to the one before"
	saysPassManifest    = "manifest: chain hash, count and session agree with the log"
	saysPassSignature   = "signature: Ed25519, by %s"
	saysPassSigner      = "who signed: the key is one that was given with --key, or that it leads to"
	saysPassAttestation = "second signature: every file is signed for by the same key"
	saysPassContents    = "contents: inputs, outputs and errors are sealed by row %d"
	saysPassMembers     = "files: %d files are those that row 1 lists"
	saysPassTraces      = "traces: %d lines, one for each row"

	// What could not be checked. SKIP is the draft's word (section 7.2).
	saysSkip        = "SKIP  NOT CHECKED: %s"
	saysNoSigner    = "who signed. Get the operator's public key by another way and run again with --key."
	saysNoSignature = "the signature. The bundle is not signed: anyone can have made it."
	saysNoTraces    = "the traces. The bundle carries none."
	saysNoFiles     = "files other than the log. There is no open row and no second signature, so nothing covers them."
	saysNoNumbers   = "missing rows. The generator counts the rows of all its sessions together, so a gap shows nothing."
	saysNoBorder    = "where inputs end and outputs begin. The hash of row %d, and of others like it, does not show it."
	saysNoneAfter   = "inputs, outputs and errors after row %d, the last seal. Nothing covers them."
	saysNoneMixed   = "errors, and inputs and outputs of the rows hashed over seven fields. There is no seal row, so nothing covers them."
	saysNoErrors    = "errors. There is no seal row, so nothing covers them."
	saysNoContents  = "inputs, outputs and errors. There is no seal row, so nothing covers them."

	// Faults of any text.
	saysMissing    = "missing"
	saysNotPlain   = "not a plain file"
	saysTooLarge   = "more than %d bytes"
	saysLongLine   = "a line is longer than %d bytes"
	saysNotJSON    = "not strict JSON"
	saysNotObject  = "not a JSON object"
	saysTooDeep    = "not strict JSON: nested deeper than %d levels"
	saysNotOurs    = "not written as Plumbline writes it"
	saysNotSHA256  = "not a SHA-256 in 64 lower-case hexadecimal digits"
	saysNotOfRow1  = "changed: not what row 1 says"
	saysTooMany    = "more than %d files"
	saysNamesTwice = "two files have the same name, or differ only in case"
	saysFolderToo  = "a file has the name of a folder"

	// Faults of a row.
	saysMember      = "member %s is missing, of the wrong type or out of range"
	saysEmptyLine   = "an empty line stands before it"
	saysOtherOne    = "its session_id is not that of row 1"
	saysColon       = "a ':' in session_id, action_type or tool_name makes its hash ambiguous"
	saysUnlinked    = "does not follow row %d: its prev_hash is not the hash of that row"
	saysRehashed    = "changed: its row_hash is not the hash of its fields"
	saysRedigested  = "its inputs or outputs were changed, or redacted, after their digests were made"
	saysOutOfOrder  = "missing or out of order (found number %d)"
	saysUnsealed    = "an input, output or error was changed after row %d sealed them"
	saysAfterSeal   = "comes after the seal, which must be the last row"
	saysLateOpen    = "an open row, which only row 1 may be"
	saysSealContent = "a seal row has no contents, and the time of row 1"
	saysSealEmpty   = "a seal row has no inputs, outputs or error, since nothing covers them"
	saysNoSeal      = "the last row is not a seal: rows were removed from the end"
	saysInputs      = "its inputs_json is not a JSON object"
	saysNewer       = "%s was made by a newer version than this verifier knows"
	saysNotOpening  = "not written as Plumbline writes it, or of another session"
	saysKeyID       = "its key_id is not that of public_key.pem"
	saysTraceCount  = "its trace_count is %d, there are %d rows"
	saysTraceDigest = "its trace_sha256 is not that of line %d of traces.jsonl"

	// Rows compared with their traces.
	saysRowChanged  = "changed: its %s is not that of its trace, line %d of traces.jsonl"
	saysRowMoved    = "moved: its trace is line %d of traces.jsonl, before those of rows before it"
	saysRowRepeated = "added: it has the trace of row %d"
	saysRowAdded    = "added: no line of traces.jsonl is its trace"
	saysRowRemoved  = "the row of line %d was removed"
	saysMoreRows    = "more of them differ from their traces"

	// Faults of a file.
	saysListed       = "missing, though row 1 lists it"
	saysUnlisted     = "not a file of this bundle: row 1 does not list it"
	saysFileChanged  = "changed: not the file that was sealed"
	saysTraceChanged = "line %d was changed: it is not the trace that row %d records"
	saysTraceLines   = "%d lines for %d rows"
	saysVerifier     = "not a verify.py that this version of Plumbline writes, or an earlier one"
	saysManifest     = "changed: not what row 1 says, or not written as Plumbline writes it"
	saysNoManifest   = "session_id, chain_hash or action_count is missing"
	saysChainHash    = "chain_hash is %s, the log has %s"
	saysCount        = "action_count is %s, the log has %d rows"
	saysSession      = "session_id is %s, the rows have %s"

	// Faults of the key and of the signatures.
	saysLogChanged    = "the log was changed after it was signed: its chain hash is not the one written here"
	saysUnsigned      = "there is no signature, and one is required"
	saysWrong         = "the signature is wrong: it is not by the key in public_key.pem over this log"
	saysNotBase64     = "the signature is not the base64 of 64 bytes"
	saysEmptySigned   = "the signature or the chain_hash it is over is empty"
	saysTwoLines      = "two lines %s"
	saysNoKey         = "there is a signature but no key"
	saysNotKey        = "not an Ed25519 public key"
	saysTwoKeys       = "the public key was replaced: the file holds two keys that differ"
	saysSmallOrder    = "a key of small order: it accepts signatures that nobody made"
	saysStranger      = "signed by %s, which is not a key given with --key"
	saysAttestMissing = "missing, though the bundle is signed"
	saysAttestAlone   = "the main signature is missing or wrong, so this second one cannot be trusted"
	saysAttestOther   = "the second signature does not match these files"
	saysAttestKey     = "no signature in it is by the key in public_key.pem"
	saysEnvelope      = "not an envelope of application/vnd.in-toto+json"
	saysStatement     = "its statement is not an in-toto statement"
	saysSignatures    = "more than %d signatures"
	saysSignedOther   = "%s is not the file that was signed for"
	saysNotSignedFor  = "%s is not signed for"

	// The conclusions: about the bundle, then about the agent.
	saysNotIntact   = "NOT INTACT: do not rely on this bundle."
	saysIntact      = "INTACT: this bundle is unchanged since it was signed."
	saysSelfIntact  = "INTACT, NOT SIGNED: this bundle agrees with itself, but anyone can have made or changed it."
	saysPartIntact  = "INTACT IN PART: the signature covers %s; nothing else in this bundle is protected."
	saysRows        = "session, action, tool, cost, time and order of the rows"
	saysInputsToo   = "their inputs"
	saysOutputsToo  = "their outputs"
	saysErrorsToo   = "their errors"
	saysFilesToo    = "the other files"
	saysAboutAgent  = "It says nothing about whether the agent behaved well."
	saysVerdict     = "Verdict recorded inside: %s (%s, %s)."
	saysNoVerdict   = "Verdict recorded inside: none."
	saysLongVerdict = "Verdict recorded inside: not read, since session.json is larger than %d bytes."
	saysVerdictless = "Verdict recorded inside: not read, since the bundle is not intact."

	// What no verification shows.
	saysNotProven = "Not proven:"
	saysNotTruth  = "Truthfulness: what the rows say need not have happened, and an action that was never recorded leaves no trace."
	saysNotTime   = "Time: each decision has the time that the agent gave."
	saysNotOwner  = "Key: the bundle names the key that signed it; whose key that is must be known from elsewhere."
)

// saying is a fault in one of the sentences above, with a cause that each reader words for itself.
type saying struct {
	sentence string
	cause    error // may be nil
}

func said(sentence string, args ...any) error {
	return &saying{sentence: fmt.Sprintf(sentence, args...)}
}

func (s *saying) Error() string {
	if s.cause == nil {
		return s.sentence
	}
	return s.sentence + ": " + s.cause.Error()
}

func (s *saying) Unwrap() error { return s.cause }

// faultOf returns the fault at a place for an error of a check.
func faultOf(where string, why error) Fault {
	s, ok := errors.AsType[*saying](why)
	f := Fault{Where: where}
	switch {
	case !ok:
		f.Message = why.Error()
	case s.cause == nil:
		f.Message = s.sentence
	default:
		f.Message, f.Detail = s.sentence, s.cause.Error()
	}
	for _, text := range []*string{&f.Where, &f.Message, &f.Detail} { // a name in the archive need not be UTF-8, and JSON must be
		*text = strings.ToValidUTF8(*text, "\ufffd")
	}
	return f
}

// quoted returns a text of the bundle as verify.py quotes it: a JSON string in ASCII, of at most 80
// characters.
func quoted(text string) string {
	if runes := []rune(strings.ToValidUTF8(text, "\ufffd")); len(runes) > 80 {
		text = string(runes[:80])
	}
	return string(pyjson.AppendString(nil, strings.ToValidUTF8(text, "\ufffd")))
}

// onOneLine returns a text for a terminal, as verify.py prints it: every character that is not
// printable ASCII is written as an escape of JSON.
func onOneLine(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r >= ' ' && r <= '~' {
			b.WriteByte(byte(r))
			continue
		}
		if r > utf8.MaxRune {
			r = utf8.RuneError
		}
		escaped := pyjson.AppendString(nil, string(r))
		b.Write(escaped[1 : len(escaped)-1])
	}
	return b.String()
}
