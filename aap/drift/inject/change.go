package inject

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/schema"
)

// Family is what a change alters.
type Family string

// The families. Of the first six a detector is required to find 95 %: see Required.
const (
	Actions     Family = "actions"
	Values      Family = "values"
	Escalations Family = "escalations"
	Denials     Family = "denials"
	Cost        Family = "cost"
	Errors      Family = "errors"
	Text        Family = "text"
	Confidence  Family = "confidence"
	Agent       Family = "agent" // all of an agent's behaviour at once
)

// Required reports whether changes of this family count for the share that must be found.
func (f Family) Required() bool {
	switch f {
	case Actions, Values, Escalations, Denials, Cost, Errors:
		return true
	}
	return false
}

// Change is one change of an agent's behaviour.
type Change struct {
	Name    string
	Family  Family
	Does    string   // what it does to a trace, in one sentence
	Touches []string // JSON pointers: nothing outside these members changes

	alter   func(r *record, in *Setting)
	prepare func(r *record, in *Setting) // see Prepare; nil for most
	lacks   func(in *Setting) string     // why the setting does not allow the change; nil or "" where it does
}

// Lacks says what a recording lacks for the change, or returns "".
func (c *Change) Lacks(in *Setting) string {
	if c.lacks == nil {
		return ""
	}
	return c.lacks(in)
}

// Prepares reports whether the whole recording must be prepared before the change can be put into
// it: confidence can be flattened only where there is one. The unchanged twin is prepared, too.
func (c *Change) Prepares(in *Setting) bool { return c.prepare != nil && !in.confident }

// Prepare returns t as the change needs it; t itself where Prepares is false.
func (c *Change) Prepare(in *Setting, t *schema.Trace) (*schema.Trace, error) {
	if !c.Prepares(in) {
		return t, nil
	}
	return c.edit(t, 0, in, c.prepare)
}

// Apply returns t with the change; t itself if the change leaves it as it is. n is the trace's
// place in its recording, from 0: the changes of family Agent put the n-th trace of the other
// agent there.
func (c *Change) Apply(in *Setting, t *schema.Trace, n int) (*schema.Trace, error) {
	return c.edit(t, n, in, c.alter)
}

func (c *Change) edit(t *schema.Trace, n int, in *Setting, alter func(*record, *Setting)) (*schema.Trace, error) {
	r := &record{Trace: t, raw: t.Raw, n: n, seed: fmt.Sprintf("%s/%d/%s", c.Name, in.seed, t.AgentID)}
	alter(r, in)
	if r.err == nil && bytes.Equal(r.raw, t.Raw) {
		return t, nil
	}
	changed := (*schema.Trace)(nil)
	if r.err == nil {
		changed, r.err = schema.Admit(t.AgentID, r.raw)
	}
	if r.err != nil {
		return nil, fmt.Errorf("put %q into trace %q: %w", c.Name, t.TraceID, r.err)
	}
	return changed, nil
}

// record is a trace that is being altered: the trace as it was, and its text as it will be.
type record struct {
	*schema.Trace
	raw  []byte
	n    int
	seed string
	err  error // the first one
}

// draw returns a number in [0, 1) that follows from change, seed, agent and trace.
func (r *record) draw() float64 {
	sum := sha256.Sum256([]byte(r.seed + "/" + r.TraceID))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// hit reports whether the trace is among the given share of all.
func (r *record) hit(share float64) bool { return r.draw() < share }

// put sets the member at a path to a value, and adds the objects of the path that are missing.
func (r *record) put(value any, path ...string) {
	raw, ok := value.([]byte)
	if r.err != nil {
		return
	}
	if !ok {
		if raw, r.err = json.Marshal(value); r.err != nil {
			return
		}
	}
	r.raw, r.err = putAt(r.raw, raw, path)
}

func putAt(object, value []byte, path []string) ([]byte, error) {
	if len(path) > 1 {
		_, inner, err := schema.CutMember(object, path[0])
		if err != nil {
			return nil, err
		}
		if inner == nil || string(inner) == "null" {
			inner = []byte("{}")
		}
		if value, err = putAt(inner, value, path[1:]); err != nil {
			return nil, err
		}
	}
	return schema.PutMember(object, path[0], value)
}

// cut removes a member of the record.
func (r *record) cut(name string) {
	if r.err == nil {
		r.raw, _, r.err = schema.CutMember(r.raw, name)
	}
}

// take copies the member at a path from another trace, or removes it where that one has none. Only
// a member of the record itself is removed; inside an object the member stays as it is.
func (r *record) take(from *schema.Trace, path ...string) {
	value, err := memberAt(from.Raw, path)
	switch {
	case r.err != nil:
	case err != nil:
		r.err = err
	case value != nil:
		r.put(value, path...)
	case len(path) == 1:
		r.cut(path[0])
	}
}

// memberAt returns the raw value at a path, nil where there is none.
func memberAt(object []byte, path []string) (value []byte, err error) {
	value = object
	for _, name := range path {
		if value == nil || value[0] != '{' {
			return nil, nil
		}
		if _, value, err = schema.CutMember(value, name); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// round2 rounds to two decimals, which is how agents write a confidence.
func round2(x float64) float64 { return math.Round(100*x) / 100 }
