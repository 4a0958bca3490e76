package aivs

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Dialects of bundles that the verifier recognises.
const (
	DialectPlumbline = "plumbline-1"        // ours: the draft, with open and seal rows
	DialectSealed    = "aivs-00-sealed"     // the draft, with a content seal row
	DialectDraft     = "aivs-00"            // the draft as it is
	DialectNewer     = "plumbline-newer"    // ours, of a version that this code does not know
	DialectMonotonic = "aivs-monotonic-ids" // the draft's early generator: it counts the rows of all its sessions in one sequence
	DialectConduit9  = "conduit-9-field"    // the same one later: its row hash covers inputs and outputs, too
	DialectUnknown   = "unknown"
)

// What became of the signature.
const (
	SignatureValid   = "valid"
	SignatureInvalid = "invalid"
	SignatureAbsent  = "absent"
)

// Fault is one thing wrong with a bundle.
type Fault struct {
	Where   string `json:"where"` // "archive", a file's name, or "row N"
	Message string `json:"message"`
}

// Anchor is a file beside the bundle and what it shows of it (package aivs/anchor).
type Anchor struct {
	File string `json:"file"`
	Says string `json:"says"`
}

// Report is what a verification found. A bundle is verified when it has no
// fault.
type Report struct {
	Verified  bool     `json:"verified"`
	Dialect   string   `json:"dialect"`
	Faults    []Fault  `json:"faults"`
	Skipped   []string `json:"skipped"` // what this bundle gives no means to check
	SHA256    string   `json:"sha256"`  // of the .tar.gz
	SessionID string   `json:"session_id"`
	Rows      int64    `json:"rows"`
	ChainHash string   `json:"chain_hash"`
	Signature string   `json:"signature"`
	PublicKey string   `json:"public_key"` // hexadecimal; empty without a signature
	KeyID     string   `json:"key_id"`
	KeyPinned bool     `json:"key_pinned"` // it is one of the keys asked for
	Attested  bool     `json:"attested"`   // a DSSE envelope by the same key covers every file

	PreviousBundleHash string `json:"previous_bundle_hash,omitempty"` // SHA-256 of the bundle before it

	Anchors        []Anchor `json:"anchors,omitempty"` // what lies beside the bundle and was checked, by others than this package
	SignatureBytes []byte   `json:"-"`                 // the 64 bytes of a valid signature, for a time stamp

	ExportedAt time.Time `json:"-"` // by the manifest, with a valid signature; zero where it names no time

	Opening   *Opening `json:"opening"`    // what the open row says; null in other dialects
	NotProven []string `json:"not_proven"` // draft section 8.2 and AAP section 10.1
}

// Unreadable is the report on a bundle that could not be read.
func Unreadable(err error) *Report {
	r := newReport()
	r.fault(archivePlace, "%v", err)
	return r
}

func newReport() *Report {
	return &Report{Dialect: DialectUnknown, Signature: SignatureAbsent, NotProven: NotProven(), Faults: []Fault{}, Skipped: []string{}}
}

// NotProven says what no verification of a bundle shows (draft section 8.2), and
// the limits of the records themselves (AAP section 10.1).
func NotProven() []string {
	return append([]string{
		"Truthfulness: what the rows say need not have happened, and an action that was never recorded leaves no trace.",
		"Time: every time is the sender's own.",
		"Key: the bundle names the key that signed it; whose key that is must be known from elsewhere.",
	}, schema.Limitations()...)
}

// Fault adds what someone else found wrong with the bundle, or beside it.
func (r *Report) Fault(where, format string, args ...any) {
	r.fault(where, format, args...)
	r.Verified = false
}

// Skip adds what someone else had no means to check.
func (r *Report) Skip(why string) { r.skip(why) }

func (r *Report) fault(where, format string, args ...any) {
	r.Faults = append(r.Faults, Fault{Where: where, Message: fmt.Sprintf(format, args...)})
}

func (r *Report) skip(why string) {
	r.Skipped = append(r.Skipped, why)
}

// WriteText writes the report for people; text out of the bundle is quoted, so
// that it cannot steer a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "dialect    %s\nsession    %q\nrows       %d\nchain hash %s\nsignature  %s", r.Dialect, r.SessionID, r.Rows, r.ChainHash, r.Signature)
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
	if r.Verified {
		b.WriteString("PASS  the log is whole and unchanged since it was made\n")
	}
	b.WriteString("\nNot proven:\n")
	for _, s := range r.NotProven {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
