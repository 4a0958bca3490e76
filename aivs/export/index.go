package export

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/schema"
)

// Range is what an archive is about.
type Range struct {
	Tenant  string    `json:"tenant,omitempty"`   // empty: the default one, or not known
	AgentID string    `json:"agent_id,omitempty"` // empty: every agent
	From    time.Time `json:"from,omitzero"`      // zero: from the beginning
	To      time.Time `json:"to,omitzero"`        // not included; zero: to the end
}

// Holds reports whether a bundle whose decisions lie within first and last has one in the range.
func (r *Range) Holds(first, last time.Time) bool {
	return (r.To.IsZero() || first.Before(r.To)) && !last.Before(r.From)
}

// String returns the range in words.
func (r *Range) String() string {
	text := "every agent"
	if r.AgentID != "" {
		text = fmt.Sprintf("agent %q", r.AgentID)
	}
	if r.Tenant != "" {
		text += fmt.Sprintf(" of tenant %q", r.Tenant)
	}
	if !r.From.IsZero() {
		text += ", from " + stamp(r.From) + " (included)"
	}
	if !r.To.IsZero() {
		text += ", to " + stamp(r.To) + " (not included)"
	}
	return text
}

// Times are the times of the first and the last decision of a bundle; zero if it has none.
type Times struct {
	First, Last time.Time

	actions aivs.Actions
}

// Row extends the times by a row. It ignores rows that are not decisions, and times that no clock
// shows.
func (t *Times) Row(r *aivs.Row) { t.actions.Row(r, t.action) }

func (t *Times) action(r *aivs.Row) {
	const year10000 = 253402300800
	if !(r.Timestamp >= 0 && r.Timestamp < year10000) {
		return
	}
	at := r.Time()
	if t.First.IsZero() || at.Before(t.First) {
		t.First = at
	}
	if at.After(t.Last) {
		t.Last = at
	}
}

// Bundle is one bundle to be archived.
type Bundle struct {
	Name      string       // with slashes, of the bundle within the bundle directory
	Report    *aivs.Report // the result of verifying it
	Times                  // of its decisions; those of its sealing if it has none
	InRange   bool         // false: it is there because another part of its session is in the range
	Size      int64
	Open      func() (io.ReadCloser, error)
	SideFiles []SideFile // its time stamp and its proof of inclusion

	// Page, where set, returns a page about the bundle (package aivs/report) for people.
	Page func() ([]byte, error)
}

// SideFile is a file next to a bundle: it has the bundle's name and a suffix.
type SideFile struct {
	Suffix string
	Data   []byte
}

// Missing is something of the range that is not in the archive.
type Missing struct {
	AgentID   string    `json:"agent_id"`
	SessionID string    `json:"session_id"`
	Part      int64     `json:"part,omitempty"`   // of a bundle whose file is missing
	Traces    uint64    `json:"traces,omitempty"` // how many records of the range are in no bundle
	First     time.Time `json:"first,omitzero"`
	Last      time.Time `json:"last,omitzero"`
	Why       string    `json:"why"`
}

// NotKnown is said of an archive that was made without a database.
const NotKnown = "NOT CHECKED: sessions that are held or not sealed yet. This archive was made from a directory of bundles alone."

// indexType names the form of index.json.
const indexType = "plumbline-export/1"

// Index is index.json.
type Index struct {
	Type    string       `json:"type"`
	Range   Range        `json:"range"`
	Bundles []Entry      `json:"bundles"` // by agent, session and part
	Files   []File       `json:"files"`   // every other file but the index and its signature
	Summary Summary      `json:"summary"`
	Between []aivs.Fault `json:"faults_between"` // of links between parts
	Open    []string     `json:"open"`           // sessions whose last part is not here
	Late    []string     `json:"late"`           // parts after a part that is marked as the last
	Missing []Missing    `json:"missing"`        // what of the range is not here
	// MissingKnown is false where the archive was made from a directory of bundles alone: nothing is
	// known about sessions that are held or not sealed yet.
	MissingKnown bool     `json:"missing_known"`
	NotProven    []string `json:"not_proven"`
}

// File is a file of the archive that is not a bundle.
type File struct {
	Name   string `json:"file"` // within the archive
	SHA256 string `json:"sha256"`
}

// Entry is one bundle of the index.
type Entry struct {
	File         string                `json:"file"` // within the archive
	SHA256       string                `json:"sha256"`
	Beside       []string              `json:"beside,omitempty"`
	AgentID      string                `json:"agent_id"`
	SessionID    string                `json:"session_id"`
	Part         int64                 `json:"part,omitempty"`
	LastPart     bool                  `json:"last_part"`
	InRange      bool                  `json:"in_range"`
	First        time.Time             `json:"first,omitzero"`
	Last         time.Time             `json:"last,omitzero"`
	SealedAt     string                `json:"sealed_at,omitempty"`
	Rows         int64                 `json:"rows"`
	Traces       int64                 `json:"traces"` // decisions, as its open row counts them
	Intact       bool                  `json:"intact"`
	Conclusion   string                `json:"conclusion"`
	Faults       []aivs.Fault          `json:"faults"`
	Skipped      []string              `json:"skipped"`
	Signature    string                `json:"signature"`
	PublicKey    string                `json:"public_key"`
	KeyExpected  bool                  `json:"key_expected"` // the key is one that was required when the archive was made
	PreviousHash string                `json:"previous_bundle_hash,omitempty"`
	Verdict      *aivs.RecordedVerdict `json:"verdict"`
	VerdictOver  int64                 `json:"verdict_over,omitzero"` // session.json has more bytes than so many, and was not read
}

// Summary counts.
type Summary struct {
	Bundles   int            `json:"bundles"`
	Intact    int            `json:"intact"`
	NotIntact int            `json:"not_intact"`
	Outside   int            `json:"outside"` // of all bundles: outside the range, here because of another part of their session
	Sessions  int            `json:"sessions"`
	Traces    int64          `json:"traces"`
	Verdicts  map[string]int `json:"verdicts"` // by recommended action
	Missing   int            `json:"missing"`
}

// Good reports whether every bundle is intact, their links agree, and nothing of the range is known
// to be missing.
func (x *Index) Good() bool {
	return x.Summary.NotIntact == 0 && len(x.Between) == 0 && len(x.Missing) == 0
}

// index returns the index of the archive. It sorts the bundles.
func (a *Archive) index() *Index {
	slices.SortStableFunc(a.Bundles, func(p, q Bundle) int {
		x, y := opening(&p), opening(&q)
		return cmp.Or(cmp.Compare(x.AgentID, y.AgentID), cmp.Compare(p.Report.SessionID, q.Report.SessionID), cmp.Compare(x.Part, y.Part), cmp.Compare(p.Name, q.Name))
	})
	slices.SortStableFunc(a.Missing, func(p, q Missing) int {
		return cmp.Or(cmp.Compare(p.AgentID, q.AgentID), cmp.Compare(p.SessionID, q.SessionID), cmp.Compare(p.Part, q.Part), cmp.Compare(p.Why, q.Why))
	})
	x := &Index{Type: indexType, Range: a.Range, Bundles: []Entry{}, Missing: append([]Missing{}, a.Missing...), MissingKnown: a.MissingKnown,
		Summary: Summary{Bundles: len(a.Bundles), Verdicts: map[string]int{}, Missing: len(a.Missing)}, NotProven: aivs.NotProven()}
	var good []aivs.Located
	for i := range a.Bundles {
		b := &a.Bundles[i]
		e := entryOf(b)
		x.Bundles = append(x.Bundles, e)
		x.Summary.count(&e)
		if b.Report.Intact {
			good = append(good, aivs.Located{Path: e.File, Report: b.Report})
		}
	}
	collection := aivs.CheckCollection(good)
	x.Between, x.Open, x.Late, x.Summary.Sessions = collection.Faults, collection.Open, collection.Late, collection.Sessions
	return x
}

// opening returns the open row of a bundle, an empty one where it has none.
func opening(b *Bundle) *aivs.Opening {
	if b.Report.Opening == nil {
		return new(aivs.Opening)
	}
	return b.Report.Opening
}

func entryOf(b *Bundle) Entry {
	r, o := b.Report, opening(b)
	e := Entry{
		File: bundleFolder + b.Name, SHA256: r.SHA256, AgentID: o.AgentID, SessionID: r.SessionID, Part: o.Part, LastPart: o.LastPart,
		InRange: b.InRange, First: b.First, Last: b.Last, SealedAt: o.ExportedAt, Rows: r.Rows, Traces: o.TraceCount,
		Intact: r.Intact, Conclusion: r.Conclusion(), Faults: r.Faults, Skipped: r.Skipped,
		Signature: r.Signature, PublicKey: r.PublicKey, KeyExpected: r.KeyPinned, PreviousHash: r.PreviousBundleHash, Verdict: r.Verdict, VerdictOver: r.VerdictOver,
	}
	for _, f := range b.SideFiles {
		e.Beside = append(e.Beside, e.File+f.Suffix)
	}
	return e
}

func (s *Summary) count(e *Entry) {
	if !e.InRange {
		s.Outside++
	}
	if !e.Intact {
		s.NotIntact++
		return
	}
	s.Intact++
	s.Traces += e.Traces
	if e.Verdict != nil {
		s.Verdicts[string(e.Verdict.RecommendedAction)]++
	}
}

// text returns the index for people.
func (x *Index) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	s := &x.Summary
	line("Sealed bundles of %s", x.Range.String())
	line("This list is a summary. The bundles are the evidence: python3 -I verify_all.py compares them with it (README.txt).")
	line("")
	line("%s of %s: %d intact, %d not intact. %s in the intact ones%s.", counted(s.Bundles, "bundle"), counted(s.Sessions, "session"), s.Intact, s.NotIntact, counted(int(s.Traces), "decision"), x.beyond())
	if s.Outside > 0 {
		line("%s outside the range, with all decisions in it: another part of the session is in the range.", counted(s.Outside, "bundle"))
	}
	line("Recorded verdicts: %d PROCEED, %d REVIEW, %d DENY.", s.Verdicts[string(schema.Proceed)], s.Verdicts[string(schema.Review)], s.Verdicts[string(schema.Deny)])
	line("")
	line("Not in this archive")
	switch {
	case !x.MissingKnown:
		line("  %s", NotKnown)
	case len(x.Missing)+s.Bundles == 0:
		line("  Nothing, and nothing is in it: the operator's database has no record of the range. Is the agent's id the right one?")
	case len(x.Missing) == 0:
		line("  Nothing: according to the operator's database, every record of the range that is stored there is in a bundle of this archive.")
	}
	for i := range x.Missing {
		line("  %s", x.Missing[i].text())
	}
	line("")
	line("Links between the bundles")
	for _, f := range x.Between {
		line("  FAIL  %s: %s", quoted(f.Where), quoted(f.Message))
	}
	for _, late := range x.Late {
		line("  LATE  %s", quoted(late))
	}
	for _, session := range x.Open {
		line("  OPEN  %s: its last part is not here, or is not sealed yet", quoted(session))
	}
	if s.Sessions > 0 && s.NotIntact+len(x.Between)+len(x.Late)+len(x.Open) == 0 {
		line("  Every session that is here is complete: parts from 1 to the last, each linked to the one before.")
	}
	for i := range x.Bundles {
		b.WriteString("\n" + x.Bundles[i].text())
	}
	line("\nNot proven:")
	for _, sentence := range x.NotProven {
		line("  %s", sentence)
	}
	return b.String()
}

func (e *Entry) text() string {
	word, _, _ := strings.Cut(e.Conclusion, ":")
	verdict := "none"
	if e.VerdictOver > 0 {
		verdict = fmt.Sprintf("not read: session.json is larger than %d bytes", e.VerdictOver)
	}
	if e.Verdict != nil {
		verdict = strings.ToUpper(string(e.Verdict.RecommendedAction))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", word, quoted(e.File))
	if !e.Intact {
		if e.SessionID != "" {
			fmt.Fprintf(&b, "  it says of itself that it is of agent %s, session %s, part %d\n", quoted(e.AgentID), quoted(e.SessionID), e.Part)
		}
		fmt.Fprintf(&b, "  sha256 %s\n", e.SHA256)
		for _, f := range e.Faults {
			fmt.Fprintf(&b, "  FAIL  %s: %s\n", quoted(f.Where), quoted(f.Message))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "  agent %s, session %s, part %d (last: %t), recorded verdict %s\n", quoted(e.AgentID), quoted(e.SessionID), e.Part, e.LastPart, verdict)
	fmt.Fprintf(&b, "  decisions from %s to %s, by the agent's clock\n", stamp(e.First), stamp(e.Last))
	fmt.Fprintf(&b, "  sealed %s, by the operator's clock\n", sealed(e.SealedAt))
	signer := "nobody"
	switch {
	case e.KeyExpected:
		signer = e.PublicKey + ", a key that was required when this archive was made, or one that it leads to"
	case e.PublicKey != "":
		signer = e.PublicKey + "; whose key that is was not checked"
	}
	fmt.Fprintf(&b, "  sha256 %s\n  signed by %s\n", e.SHA256, signer)
	if !e.InRange {
		b.WriteString("  outside the range: another part of its session is in it\n")
	}
	return b.String()
}

func (m *Missing) text() string {
	text := fmt.Sprintf("agent %s, session %s: ", quoted(m.AgentID), quoted(m.SessionID))
	if m.Traces > 0 {
		text += fmt.Sprintf("%s in no bundle, from %s to %s: ", counted(int(m.Traces), "record"), stamp(m.First), stamp(m.Last))
	}
	return text + quoted(m.Why)
}

// beyond says that decisions outside the range are counted, if there are any.
func (x *Index) beyond() string {
	for i := range x.Bundles {
		e := &x.Bundles[i]
		if e.Intact && (e.First.Before(x.Range.From) || !x.Range.To.IsZero() && !e.Last.Before(x.Range.To)) {
			return ", with those of their sessions that are outside the range"
		}
	}
	return ""
}

// sealed returns the time of sealing as the open row states it, for people.
func sealed(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return quoted(cmp.Or(text, "unknown"))
	}
	return stamp(at)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format("2006-01-02 15:04:05.999999999 UTC")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// quoted returns a text of others as it is if it is printable ASCII, otherwise in quotes.
func quoted(text string) string {
	for _, r := range text {
		if r < ' ' || r > '~' {
			return fmt.Sprintf("%+q", text)
		}
	}
	return text
}
