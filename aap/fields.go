package aap

import (
	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// lookupBudget bounds the cost of looking up fields in one trace: members skipped, bytes walked
// through, and bytes of the values found, which a test reads again.
const lookupBudget = 8 << 20

// arrayCost is the cost of a byte of an array, which is read element by element.
const arrayCost = 8

// fields looks up the fields of conditions in one trace.
//
// action_type, action_name and action_category come from the action block alone. Any other
// field is looked up in three objects with members of the publisher's choice (context,
// context.metadata, action.parameters), and every value found counts. Where none of them has
// the field, it is a path from the trace's root. A path that begins with one of the trace's own
// members is always looked up there as well; otherwise a publisher could hide the member behind
// another one of the same name.
type fields struct {
	trace     *schema.Trace
	cursor    condition.Cursor
	budget    int
	exhausted bool
}

func (f *fields) reset(t *schema.Trace) {
	f.trace, f.budget, f.exhausted = t, lookupBudget, false
}

// Values implements condition.Source.
func (f *fields) Values(field *condition.Field, dst []condition.Value) []condition.Value {
	action := &f.trace.Action
	switch field.Name {
	case "action_type":
		return append(dst, condition.Text(string(action.Type)))
	case "action_name":
		return append(dst, condition.Text(action.Name))
	case "action_category":
		return append(dst, condition.Text(string(action.Category)))
	}
	before := len(dst)
	dst = f.inside(f.trace.Context.Members, field.Path, dst)
	dst = f.inside(f.trace.Context.Metadata, field.Path, dst)
	dst = f.inside(action.Parameters, field.Path, dst)
	switch field.Path[0] { // a trace's own members (AAP section 5.3)
	case "trace_id", "agent_id", "card_id", "timestamp", "action", "decision", "escalation", "context":
		return f.walk(f.trace.Raw, field.Path, dst)
	}
	if len(dst) == before {
		dst = f.inside(f.trace.Others, field.Path, dst)
	}
	return dst
}

// inside appends the value at a path inside an object with members of the publisher's choice.
func (f *fields) inside(room schema.Members, path []string, dst []condition.Value) []condition.Value {
	if !f.spend(len(room)) {
		return dst
	}
	raw, ok := room.Get(path[0])
	switch {
	case !ok:
		return dst
	case len(path) == 1:
		return f.found(raw, dst)
	}
	return f.walk(raw, path[1:], dst)
}

// walk appends the value at path inside the JSON object raw.
func (f *fields) walk(raw []byte, path []string, dst []condition.Value) []condition.Value {
	if !f.spend(len(raw)) {
		return dst
	}
	if value, ok := f.cursor.Find(raw, path); ok {
		return f.found(value, dst)
	}
	return dst
}

func (f *fields) found(raw []byte, dst []condition.Value) []condition.Value {
	cost := len(raw)
	if raw[0] == '[' {
		cost *= arrayCost
	}
	if !f.spend(cost) {
		return dst
	}
	return append(dst, condition.JSON(raw))
}

// spend subtracts cost from the budget and reports whether there was enough.
func (f *fields) spend(cost int) bool {
	f.budget -= cost
	if f.budget < 0 {
		f.exhausted = true
	}
	return !f.exhausted
}
