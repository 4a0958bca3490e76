package ledger

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
)

// The kinds of faults.
const (
	FaultForm         = "form"         // the line is not an entry
	FaultGap          = "gap"          // the number is not the next one
	FaultHash         = "hash"         // this entry or an earlier one was changed
	FaultGenesis      = "genesis"      // GENESIS at another place than 0, or entry 0 of another type
	FaultContinuation = "continuation" // it does not continue the previous file
)

// Fault is the first fault of a ledger.
type Fault struct {
	Kind    string
	Seq     uint64 // the first bad number: the one that was expected there
	Line    int    // of the file, from 1
	Message string
}

// Error returns the number, the line and the fault.
func (f *Fault) Error() string {
	return fmt.Sprintf("seq %d (line %d): %s: %s", f.Seq, f.Line, f.Kind, f.Message)
}

// Summary describes a whole ledger file.
type Summary struct {
	Entries       uint64
	Last          Hash  // of the newest entry
	ContinuesFrom *Hash // nil for the first file of a chain
	Counts        map[Type]uint64
}

// Validator checks entries in order and recomputes the chain (section 3.2). The zero Validator
// expects a file's first entry.
type Validator struct {
	chain   Chain
	line    int
	summary Summary
}

// ResumeValidator returns a validator for the entries after a chain that was already checked.
func ResumeValidator(chain Chain) *Validator {
	return &Validator{chain: chain, summary: Summary{Counts: map[Type]uint64{}}}
}

// Add checks the next line, without its line feed: first its number, then its hash. The error
// is a *Fault; the validator cannot be used after it.
func (v *Validator) Add(line []byte) (*Entry, error) {
	e, err := ParseLine(line)
	if err != nil {
		v.line++
		return nil, v.fault(FaultForm, "%v", err)
	}
	if err := v.AddEntry(e); err != nil {
		return nil, err
	}
	return e, nil
}

// AddEntry is Add for an entry that is already parsed.
func (v *Validator) AddEntry(e *Entry) (err error) {
	v.line++
	if e.Seq != v.chain.next {
		return v.fault(FaultGap, "expected seq %d, found %d", v.chain.next, e.Seq)
	}
	if want := HashEntry(v.chain.last, e.Seq, e.Type, e.Data); e.Hash != want {
		return v.fault(FaultHash, "hash is %s, recomputed %s", e.Hash, want)
	}
	if (e.Type == Genesis) != (e.Seq == 0) {
		return v.fault(FaultGenesis, "type %s: entry 0 is %s, and no other", e.Type, Genesis)
	}
	if e.Seq == 0 {
		if v.summary.ContinuesFrom, err = e.ContinuesFrom(); err != nil {
			return v.fault(FaultContinuation, "%v", err)
		}
		v.summary.Counts = map[Type]uint64{}
	}
	v.chain = Resume(e)
	v.summary.Counts[e.Type]++
	return nil
}

func (v *Validator) fault(kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Seq: v.chain.next, Line: v.line, Message: fmt.Sprintf(format, args...)}
}

// Chain returns the chain of the checked entries. It can be appended to.
func (v *Validator) Chain() Chain { return v.chain }

// Summary returns the summary of the entries checked so far.
func (v *Validator) Summary() Summary {
	v.summary.Entries, v.summary.Last = v.chain.next, v.chain.last
	return v.summary
}

// MaxLineBytes bounds a line of a file: data, and the members around it.
const MaxLineBytes = MaxDataBytes + 1024

// Validate checks a whole file. before is the previous file, which this one must continue; it
// is nil where the previous file is unavailable. The error is a *Fault or that of the reader.
func Validate(r io.Reader, before *Summary) (Summary, error) {
	var v Validator
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), MaxLineBytes)
	for lines.Scan() {
		entry, err := v.Add(lines.Bytes())
		if err == nil && entry.Seq == 0 {
			err = v.Continues(before)
		}
		if err != nil {
			return v.Summary(), err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		v.line++
		return v.Summary(), v.fault(FaultForm, "a line of more than %d bytes", MaxLineBytes)
	} else if err != nil {
		return v.Summary(), fmt.Errorf("read ledger: %w", err)
	}
	if v.chain.next == 0 {
		v.line++
		return v.Summary(), v.fault(FaultForm, "no entry at all")
	}
	return v.Summary(), nil
}

// Continues checks a file, whose entries were added, against the previous one (section 3.4);
// nil means that the previous one is unknown. The error is a *Fault.
func (v *Validator) Continues(before *Summary) error {
	from := v.summary.ContinuesFrom
	if before == nil || from != nil && *from == before.Last {
		return nil
	}
	found := "nothing"
	if from != nil {
		found = from.String()
	}
	return &Fault{Kind: FaultContinuation, Seq: 0, Line: 1,
		Message: fmt.Sprintf("the file before ends with %s, this one continues from %s", before.Last, found)}
}

// Python is a verifier of ledger files that needs only Python's standard library, for readers
// who do not trust Plumbline's programs.
//
//go:embed verify_ledger.py
var Python []byte
