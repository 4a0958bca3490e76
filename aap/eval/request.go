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

// loose returns a member as a generic tree, reference.Undefined where there is none.
func (r request) loose(name string) (any, error) {
	if !r.has(name) {
		return reference.Undefined{}, nil
	}
	v, err := reference.Decode(r.members[name])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// looseAll returns several members as generic trees.
func (r request) looseAll(names ...string) ([]any, error) {
	trees := make([]any, len(names))
	for i, name := range names {
		tree, err := r.loose(name)
		if err != nil {
			return nil, err
		}
		trees[i] = tree
	}
	return trees, nil
}
