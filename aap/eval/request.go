package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aap/reference"
	"github.com/plumbline/plumbline/schema"
)

// request is one line of input, with its members not yet decoded.
type request struct {
	members map[string]json.RawMessage
	op      string
	now     time.Time
}

// parse reads a line. now is the time of judgement if the request has no time of its own. parse
// returns the readable part even with an error.
func parse(line []byte, now time.Time) (request, error) {
	r := request{now: now}
	if !bytes.HasPrefix(line, []byte("{")) {
		return r, errors.New("not a JSON object")
	}
	if err := json.Unmarshal(line, &r.members); err != nil {
		return r, fmt.Errorf("not a JSON object: %w", err)
	}
	if err := r.decode("op", &r.op); err != nil {
		return r, err
	}
	if !r.has("now") {
		return r, nil
	}
	named := schema.Time{Time: now}
	err := r.decode("now", &named)
	r.now = named.Time
	return r, err
}

func (r request) has(name string) bool {
	_, ok := r.members[name]
	return ok
}

// decode reads a required member into target.
func (r request) decode(name string, target any) error {
	raw, ok := r.members[name]
	if !ok {
		return fmt.Errorf("%s: missing", name)
	}
	err := json.Unmarshal(raw, target)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: a JSON %s, where a %v is needed", name, wrong.Value, wrong.Type)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// trees returns members as generic trees, reference.Undefined where there is none.
func (r request) trees(names []string) ([]any, error) {
	trees := make([]any, len(names))
	for i, name := range names {
		trees[i] = reference.Undefined{}
		if !r.has(name) {
			continue
		}
		var err error
		if trees[i], err = reference.Decode(r.members[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return trees, nil
}

// fields returns the trace for a condition. A condition is also meaningful for traces that
// section 5 does not allow. For JSON that is not a valid trace, it returns only the members
// that a condition can look up.
func (r request) fields() (*schema.Trace, error) {
	trace, err := r.trace()
	var refusal *schema.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != schema.ReasonInvalidTrace {
		return trace, err
	}
	raw := r.members["trace"]
	root, err := schema.DecodeMembers(raw)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	object := func(of schema.Members, name string) schema.Members {
		value, _ := of.Get(name)
		members, err := schema.DecodeMembers(value)
		if err != nil {
			return nil // absent, or no object
		}
		return members
	}
	action, context := object(root, "action"), object(root, "context")
	text := func(name string) (text string) {
		if value, ok := action.Get(name); ok && json.Unmarshal(value, &text) != nil {
			return "" // no text
		}
		return text
	}
	return &schema.Trace{
		Raw: raw,
		Action: schema.Action{
			Type: schema.ActionType(text("type")), Name: text("name"), Category: schema.Category(text("category")),
			Parameters: object(action, "parameters"),
		},
		Context: schema.Context{Members: context, Metadata: object(context, "metadata")},
		Others:  root,
	}, nil
}
