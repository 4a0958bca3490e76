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
	Where   string `json:"where"`            // "archive", a file's name, "row N", or "rows 1-N" where the row is not known
	Message string `json:"message"`          // one of the sentences of says.go, where verify.py can find the same fault
	Detail  string `json:"detail,omitempty"` // more about it, in the words of this reader alone
}

// Line returns the fault on one line of ASCII, as verify.py prints it.
func (f *Fault) Line() string { return onOneLine(f.Where + ": " + f.Message) }

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
	Passed    []string `json:"passed"`  // the checks of an intact bundle, with their results
	Skipped   []string `json:"skipped"` // what was not checked, or is not covered
	SHA256    string   `json:"sha256"`  // of the .tar.gz
	TarSHA256 string   `json:"tar_sha256"`
	SessionID string   `json:"session_id"`
	Rows      int64    `json:"rows"` // of a bundle that is not intact, those read before a fault was found
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

	Verdict *RecordedVerdict `json:"verdict"` // of an intact bundle of our dialect; null where none is recorded
	// VerdictOver is how many bytes of session.json are read at most, if it has more and so was not read. Then
	// nobody knows whether a verdict is recorded in it. Otherwise it is 0.
	VerdictOver int64 `json:"verdict_over,omitzero"`

	Opening   *Opening `json:"opening"`    // the content of the open row; null in other dialects
	NotProven []string `json:"not_proven"` // draft section 8.2 and AAP section 10.1
}

// Unreadable returns the report on a bundle that could not be read.
func Unreadable(err error) *Report {
	r := newReport()
	r.fault(archivePlace, err)
	return r
}

func newReport() *Report {
	return &Report{Dialect: DialectUnknown, Signature: SignatureUnchecked, NotProven: NotProven(),
		Faults: []Fault{}, Passed: []string{}, Skipped: []string{}, Covered: []string{}}
}

// NotProven returns what no verification of a bundle shows (draft section 8.2), and the limits of
// the records themselves (AAP section 10.1).
func NotProven() []string {
	return append([]string{saysNotTruth, saysNotTime, saysNotOwner}, schema.Limitations()...)
}

// Fault adds a defect of the bundle or of a file next to it.
func (r *Report) Fault(where, format string, args ...any) {
	r.fault(where, fmt.Errorf(format, args...))
}

func (r *Report) fault(where string, why error) {
	r.Faults = append(r.Faults, faultOf(where, why))
	r.Intact, r.Passed, r.Covered, r.Verdict, r.VerdictOver = false, []string{}, []string{}, nil, 0
}

// pass adds a check whose result is good.
func (r *Report) pass(sentence string, args ...any) {
	r.Passed = append(r.Passed, fmt.Sprintf(sentence, args...))
}

// Skip adds a check that could not be done.
func (r *Report) Skip(why string) { r.Skipped = append(r.Skipped, why) }

// WriteText writes the report for people. Text from the bundle is quoted, so it cannot send
// control sequences to a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	rows := strconv.FormatInt(r.Rows, 10)
	if !r.Intact && r.Rows > 0 { // the log may have more
		rows += " read before a fault was found"
	}
	fmt.Fprintf(&b, "dialect    %s\nsession    %q\nrows       %s\nchain hash %s\nsignature  %s", r.Dialect, r.SessionID, rows, r.ChainHash, r.SignatureText())
	if r.PublicKey != "" {
		fmt.Fprintf(&b, " %s (key id %s, pinned: %t)", r.PublicKey, r.KeyID, r.KeyPinned)
	}
	b.WriteByte('\n')
	for _, s := range r.Passed {
		fmt.Fprintf(&b, "PASS  %s\n", onOneLine(s))
	}
	for _, a := range r.Anchors {
		fmt.Fprintf(&b, "PASS  %s\n", onOneLine(a.File+": "+a.Says))
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "FAIL  %s\n", f.Line())
		if f.Detail != "" {
			fmt.Fprintf(&b, "      %s\n", onOneLine(f.Detail))
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, saysSkip+"\n", onOneLine(s))
	}
	fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", r.Conclusion(), r.VerdictText(), saysNotProven)
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
	signed := r.Signature == SignatureValid
	switch {
	case !r.Intact:
		return saysNotIntact
	case !signed:
		return saysSelfIntact + " " + saysAboutAgent
	case r.CoversAll():
		return saysIntact + " " + saysAboutAgent
	}
	names := map[string]string{
		CoversRows: saysRows, CoversInputs: saysInputsToo, CoversOutputs: saysOutputsToo, CoversErrors: saysErrorsToo, CoversFiles: saysFilesToo,
	}
	var covered []string
	for _, c := range r.Covered {
		covered = append(covered, names[c])
	}
	return fmt.Sprintf(saysPartIntact, strings.Join(covered, ", ")) + " " + saysAboutAgent
}

// CoversAll reports whether the bundle is intact and its signature covers every byte of it.
func (r *Report) CoversAll() bool {
	return r.Signature == SignatureValid && slices.Contains(r.Covered, CoversFiles) && slices.Contains(r.Covered, CoversErrors)
}

// VerdictText returns the sentence about the agent.
func (r *Report) VerdictText() string {
	switch {
	case !r.Intact:
		return saysVerdictless
	case r.VerdictOver > 0:
		return fmt.Sprintf(saysLongVerdict, r.VerdictOver)
	case r.Verdict == nil:
		return saysNoVerdict
	}
	v := r.Verdict
	return fmt.Sprintf(saysVerdict, strings.ToUpper(string(v.RecommendedAction)),
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
