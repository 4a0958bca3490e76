package aivs

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Input is everything that a bundle is made from, except the key.
type Input struct {
	SessionID            string // the original, any text
	AgentID              string // may be empty
	ExportedAt           int64  // Unix seconds; set by the plan, never read from the clock
	Part                 int64  // 1..n of the session's bundles
	LastPart             bool
	TraceCount           int64 // how many rows Rows yields
	Redactions           int64 // values replaced in rows and members by the draft's rule
	OptionalRedactions   int64 // values replaced by the optional rules
	Generator            string
	GeneratorURL         string
	PreviousBundleSHA256 string // of the session's previous bundle; empty for the first

	// Rows yields the rows between open and seal, in order, without ID, SessionID and hashes. It
	// is iterated twice and must yield the same rows both times. See SliceRows.
	Rows iter.Seq2[*Row, error]

	// Members are the further files in archive order.
	Members []Member
}

// Names of members that the verifiers know.
const (
	TracesMember   = "traces.jsonl"   // line i belongs to row i+1, whose inputs_json states its trace_sha256
	VerdictsMember = "verdicts.jsonl" // only its digest is checked
)

// Member is one further file of a bundle.
type Member struct {
	Name string // relative to session_proof/, such as "cards/c1.json"
	Data []byte

	// Open replaces Data for a member that is too big for memory. It is called twice and must
	// return the same bytes both times.
	Open func() (io.ReadCloser, error)
}

// SliceRows yields rows held in memory.
func SliceRows(rows []Row) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for i := range rows {
			if !yield(&rows[i], nil) {
				return
			}
		}
	}
}

// The draft's five files and its optional sixth (sections 5.1 and 5.4).
const (
	logFile       = "audit_log.jsonl"
	manifestFile  = "manifest.json"
	keyFile       = "public_key.pem"
	signatureName = "session_sig.txt"
	verifierFile  = "verify.py"
	previousFile  = "previous_bundle_hash.txt"
)

var draftFiles = []string{logFile, manifestFile, keyFile, signatureName, verifierFile, previousFile, attestationFile}

var (
	memberName = regexp.MustCompile(`^[A-Za-z0-9_~=-][A-Za-z0-9._~=-]*(/[A-Za-z0-9_~=-][A-Za-z0-9._~=-]*)*$`)
	hexDigest  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// lastExport is the last second of the year 9999: exported_at has four digits for the year.
const lastExport = 253402300799

// check returns every fault of the input that shows without reading its rows.
func (in *Input) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if in.SessionID == "" {
		fault("session id is empty")
	}
	for _, text := range []string{in.SessionID, in.AgentID, in.Generator, in.GeneratorURL} {
		if !utf8.ValidString(text) {
			fault("%q is not valid UTF-8", text)
		}
	}
	if in.ExportedAt < 0 || in.ExportedAt > lastExport || in.Part < 1 || min(in.TraceCount, in.Redactions, in.OptionalRedactions) < 0 ||
		max(in.Part, in.TraceCount, in.Redactions, in.OptionalRedactions) > maxCost {
		fault("exported_at %d must be within years 1970 to 9999, trace_count %d and redactions %d 0 or more, part %d 1 or more, and all below 2^53",
			in.ExportedAt, in.TraceCount, in.Redactions, in.Part)
	}
	if in.PreviousBundleSHA256 != "" && !hexDigest.MatchString(in.PreviousBundleSHA256) {
		fault("previous bundle %q is not 64 lower-case hexadecimal digits", in.PreviousBundleSHA256)
	}
	if in.Rows == nil {
		fault("no rows (an empty session has an empty sequence)")
	}
	return errors.Join(append(faults, checkNames(in.Members)...)...)
}

// checkNames refuses names that could leave the directory, that collide with another name on some
// file system, or that look like one of the draft's files: some readers look for those by the
// last path element alone.
func checkNames(members []Member) (faults []error) {
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		base := m.Name[strings.LastIndexByte(m.Name, '/')+1:]
		lower := folded(m.Name)
		switch {
		case !memberName.MatchString(m.Name):
			faults = append(faults, fmt.Errorf("member name %.80q: only letters, digits and ._~=- in elements that do not begin with a dot", m.Name))
		case slices.Contains(draftFiles, strings.ToLower(base)):
			faults = append(faults, fmt.Errorf("member name %q: the bundle has its own %s", m.Name, base))
		case seen[lower]:
			faults = append(faults, fmt.Errorf("member name %q is listed twice", m.Name))
		}
		seen[lower] = true
	}
	for _, m := range members {
		if withinFile(folded(m.Name), func(folder string) bool { return seen[folder] || slices.Contains(draftFiles, folder) }) {
			faults = append(faults, fmt.Errorf("member name %q: one of its folders has the name of a file", m.Name))
		}
	}
	return faults
}

// copyTo writes the member's bytes and returns how many there are.
func (m *Member) copyTo(w io.Writer) (int64, error) {
	if m.Open == nil {
		n, err := w.Write(m.Data)
		return int64(n), err
	}
	r, err := m.Open()
	if err != nil {
		return 0, fmt.Errorf("member %s: %w", m.Name, err)
	}
	defer func() { _ = r.Close() }()
	size, err := io.Copy(w, r)
	if err != nil {
		return size, fmt.Errorf("member %s: %w", m.Name, err)
	}
	return size, nil
}
