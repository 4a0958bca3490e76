package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// What a Fault is about.
const (
	FaultForm         = "form"         // the line is no entry
	FaultGap          = "gap"          // its number is not the next
	FaultHash         = "hash"         // it, or an entry before it, was changed
	FaultGenesis      = "genesis"      // GENESIS elsewhere than at 0, or 0 without it
	FaultContinuation = "continuation" // it does not continue the file before it
)

// Fault is the first thing wrong with a ledger.
type Fault struct {
	Kind    string
	Seq     uint64 // the first bad number: that which was expected there
	Line    int    // of the file, from 1
	Message string
}

// Error names the number, the line and what is wrong.
func (f *Fault) Error() string {
	return fmt.Sprintf("seq %d (line %d): %s: %s", f.Seq, f.Line, f.Kind, f.Message)
}

// Summary is what a whole ledger file turned out to be.
type Summary struct {
	Entries       uint64
	Last          Hash  // of the newest entry
	ContinuesFrom *Hash // nil: the first file of its chain
	Counts        map[Type]uint64
}

// Validator checks entries in order, recomputing the chain (section 3.2). The
// zero Validator expects a file's first entry.
type Validator struct {
	chain   Chain
	line    int
	summary Summary
}

// ResumeValidator returns a validator for the entries behind a chain that was
// checked before.
func ResumeValidator(chain Chain) *Validator {
	return &Validator{chain: chain, summary: Summary{Counts: map[Type]uint64{}}}
}

// Add checks the next line, without its line feed: first its number, then its
// hash. The error is a *Fault; the validator is of no further use then.
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

// AddEntry is Add for an entry that was read elsewhere.
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

// Chain returns the chain as far as it was checked, to append to.
func (v *Validator) Chain() Chain { return v.chain }

// Summary returns what was checked so far.
func (v *Validator) Summary() Summary {
	v.summary.Entries, v.summary.Last = v.chain.next, v.chain.last
	return v.summary
}

// MaxLineBytes bounds a line of a file: data, and the members around it.
const MaxLineBytes = MaxDataBytes + 1024

// Validate checks a whole file. before is the file that it has to continue, nil
// where none is at hand. The error is a *Fault or the reader's.
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

// Continues checks a file, whose entries were added, against the one before it
// (section 3.4); a nil one is unknown. The error is a *Fault.
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
