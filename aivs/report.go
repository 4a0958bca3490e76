package aivs

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// Dialects of bundles that the verifier recognises.
const (
	DialectPlumbline = "plumbline-1"        // our dialect: the draft, with open and seal rows
	DialectSealed    = "aivs-00-sealed"     // the draft, with a content seal row
	DialectDraft     = "aivs-00"            // the draft without extensions
	DialectNewer     = "plumbline-newer"    // our dialect, in a version that this code does not know
	DialectMonotonic = "aivs-monotonic-ids" // the draft's early generator: it numbers the rows of all its sessions in one sequence
	DialectConduit9  = "conduit-9-field"    // the later generator: its row hash also covers inputs and outputs
	DialectUnknown   = "unknown"
)

// Results of checking the signature.
const (
	SignatureValid     = "valid"     // valid by the key in the bundle, over the chain hash of this log
	SignatureInvalid   = "invalid"   // the signature does not verify
	SignatureAbsent    = "absent"    // the bundle is not signed
	SignatureUnchecked = "unchecked" // the verification ended at a fault before it
)

// Parts of a bundle that a valid signature can cover. Report.Covered lists those it does.
const (
	CoversRows    = "rows"    // the fields that a row hash covers, and the order of the rows
	CoversInputs  = "inputs"  // inputs_json of every row
	CoversOutputs = "outputs" // outputs_json of every row
	CoversErrors  = "errors"  // error of every row
	CoversFiles   = "files"   // every file except the log
)

// Fault is one defect of a bundle.
type Fault struct {
	Where   string `json:"where"` // "archive", a file's name, "row N", or "rows 1-N" where the row is not known
	Message string `json:"message"`
}

// Anchor is a file next to the bundle and what it shows about the bundle (package aivs/anchor).
type Anchor struct {
	File string `json:"file"`
	Says string `json:"says"`
}

// Report is the result of a verification. A bundle is intact when it has no fault. That is a
// statement about the file; the verdict recorded in it is the statement about the agent.
type Report struct {
	Intact    bool     `json:"intact"`
	Dialect   string   `json:"dialect"`
	Faults    []Fault  `json:"faults"`
	Skipped   []string `json:"skipped"` // what was not checked, or is not covered
	SHA256    string   `json:"sha256"`  // of the .tar.gz
	TarSHA256 string   `json:"tar_sha256"`
	SessionID string   `json:"session_id"`
	Rows      int64    `json:"rows"`
	ChainHash string   `json:"chain_hash"`
	Signature string   `json:"signature"`
	Covered   []string `json:"covered"`    // what the signature of an intact bundle covers
	PublicKey string   `json:"public_key"` // hexadecimal; empty without a signature
	KeyID     string   `json:"key_id"`
	KeyPinned bool     `json:"key_pinned"` // the key is one of the keys required
	Attested  bool     `json:"attested"`   // a DSSE envelope by the same key covers every file

	PreviousBundleHash string `json:"previous_bundle_hash,omitempty"` // SHA-256 of the previous bundle

	Anchors        []Anchor `json:"anchors,omitempty"` // files next to the bundle that were checked, by other packages than this one
	SignatureBytes []byte   `json:"-"`                 // the 64 bytes of a valid signature, for a time stamp

	ExportedAt time.Time `json:"-"` // from the manifest, with a valid signature; zero where it has no time

	Verdict   *RecordedVerdict `json:"verdict"`    // of an intact bundle of our dialect; null where none is recorded
	Opening   *Opening         `json:"opening"`    // the content of the open row; null in other dialects
	NotProven []string         `json:"not_proven"` // draft section 8.2 and AAP section 10.1
}

// Unreadable returns the report on a bundle that could not be read.
func Unreadable(err error) *Report {
	r := newReport()
	r.Fault(archivePlace, "%v", err)
	return r
}

func newReport() *Report {
	return &Report{Dialect: DialectUnknown, Signature: SignatureUnchecked, NotProven: NotProven(),
		Faults: []Fault{}, Skipped: []string{}, Covered: []string{}}
}

// NotProven returns what no verification of a bundle shows (draft section 8.2), and the limits of
// the records themselves (AAP section 10.1).
func NotProven() []string {
	return append([]string{
		"Truthfulness: what the rows say need not have happened, and an action that was never recorded leaves no trace.",
		"Time: every time is the sender's own.",
		"Key: the bundle names the key that signed it; whose key that is must be known from elsewhere.",
	}, schema.Limitations()...)
}

// Fault adds a defect of the bundle or of a file next to it.
func (r *Report) Fault(where, format string, args ...any) {
	r.Faults = append(r.Faults, Fault{Where: where, Message: fmt.Sprintf(format, args...)})
	r.Intact, r.Covered, r.Verdict = false, []string{}, nil
}

// Skip adds a check that could not be done.
func (r *Report) Skip(why string) { r.Skipped = append(r.Skipped, why) }

// WriteText writes the report for people. Text from the bundle is quoted, so it cannot send
// control sequences to a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "dialect    %s\nsession    %q\nrows       %d\nchain hash %s\nsignature  %s", r.Dialect, r.SessionID, r.Rows, r.ChainHash, r.SignatureText())
	if r.PublicKey != "" {
		fmt.Fprintf(&b, " %s (key id %s, pinned: %t)", r.PublicKey, r.KeyID, r.KeyPinned)
	}
	b.WriteByte('\n')
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "FAIL  %q: %s\n", f.Where, f.Message)
	}
	for _, a := range r.Anchors {
		fmt.Fprintf(&b, "PASS  %q: %s\n", a.File, a.Says)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "SKIP  %s\n", s)
	}
	fmt.Fprintf(&b, "\n%s\n%s\n\nNot proven:\n", r.Conclusion(), r.VerdictText())
	for _, s := range r.NotProven {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// SignatureText returns the result of checking the signature as a sentence.
func (r *Report) SignatureText() string {
	switch {
	case r.Signature == SignatureUnchecked:
		return "not checked (stopped at the first fault)"
	case r.Signature == SignatureValid && !r.Intact:
		return "valid over the rows, but the bundle is not intact"
	}
	return r.Signature
}

// Conclusion returns one sentence about the bundle: whether it is intact and, where the signature
// does not cover all of it, what it does cover. verify.py has the same sentences.
func (r *Report) Conclusion() string {
	const aboutAgent = "It says nothing about whether the agent behaved well."
	signed := r.Signature == SignatureValid
	switch {
	case !r.Intact:
		return "NOT INTACT: do not rely on this bundle."
	case !signed:
		return "INTACT, NOT SIGNED: this bundle agrees with itself, but anyone can have made or changed it. " + aboutAgent
	case slices.Contains(r.Covered, CoversFiles) && slices.Contains(r.Covered, CoversErrors):
		return "INTACT: this bundle is unchanged since it was signed. " + aboutAgent
	}
	names := map[string]string{
		CoversRows:   "session, action, tool, cost, time and order of the rows",
		CoversInputs: "their inputs", CoversOutputs: "their outputs", CoversErrors: "their errors", CoversFiles: "the other files",
	}
	var covered []string
	for _, c := range r.Covered {
		covered = append(covered, names[c])
	}
	return "INTACT IN PART: the signature covers " + strings.Join(covered, ", ") + "; nothing else in this bundle is protected. " + aboutAgent
}

// VerdictText returns the sentence about the agent.
func (r *Report) VerdictText() string {
	switch {
	case !r.Intact:
		return "Verdict recorded inside: not read, since the bundle is not intact."
	case r.Verdict == nil:
		return "Verdict recorded inside: none."
	}
	v := r.Verdict
	return fmt.Sprintf("Verdict recorded inside: %s (%s, %s).", strings.ToUpper(string(v.RecommendedAction)),
		counted(v.Violations, "violation"), counted(v.Findings, "finding"))
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// SessionMember is the member that holds the verdict on the session.
const SessionMember = "session.json"

// RecordedVerdict is what the pipeline concluded about the agent when it sealed the session, with
// the figures of session.json. It is the operator's statement, not a result of verifying the
// bundle.
type RecordedVerdict struct {
	RecommendedAction schema.Recommendation `json:"recommended_action"`
	Verified          bool                  `json:"verified"`   // of AAP section 7.4: no violation
	Traces            int64                 `json:"traces"`     // of this part
	Violations        int64                 `json:"violations"` // of all traces
	Findings          int64                 `json:"findings"`   // of all traces and of the session
}

// parseVerdict reads session.json; nil for anything but a verdict on a session.
func parseVerdict(text []byte) *RecordedVerdict {
	var s struct {
		Action   *schema.Recommendation `json:"recommended_action"`
		Verified *bool                  `json:"verified"`
		Traces   *struct {
			Total      jsontext.Value            `json:"total"`
			Violations map[string]jsontext.Value `json:"violations"`
			Findings   map[string]jsontext.Value `json:"findings"`
		} `json:"traces"`
		Counts map[string]jsontext.Value `json:"finding_counts"`
	}
	if checkDepth(text) != nil || json.Unmarshal(text, &s) != nil || s.Action == nil || s.Verified == nil || s.Traces == nil {
		return nil
	}
	switch *s.Action {
	case schema.Proceed, schema.Review, schema.Deny:
	default:
		return nil
	}
	return &RecordedVerdict{RecommendedAction: *s.Action, Verified: *s.Verified, Traces: count(s.Traces.Total),
		Violations: total(s.Traces.Violations), Findings: total(s.Traces.Findings) + total(s.Counts)}
}

func total(counts map[string]jsontext.Value) (sum int64) {
	for _, n := range counts {
		sum += count(n)
	}
	return sum
}

// count returns the value of a JSON integer within 31 bits, 0 for anything else.
func count(value jsontext.Value) int64 {
	n, err := strconv.ParseUint(string(value), 10, 31)
	if err != nil {
		return 0
	}
	return int64(n)
}
