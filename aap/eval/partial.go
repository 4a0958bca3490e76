package eval

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// fields returns the trace for a condition. A condition is also meaningful for traces that
// section 5 does not allow. For JSON that is not a valid trace, it returns only the members
// that a condition can look up.
func (r request) fields() (*schema.Trace, error) {
	trace, err := r.trace()
	var refusal *schema.Refusal
	if errors.As(err, &refusal) && refusal.Reason == schema.ReasonInvalidTrace {
		return partialTrace(r.members["trace"])
	}
	return trace, err
}

func partialTrace(raw []byte) (*schema.Trace, error) {
	root, err := membersOf(raw)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	action := root.object("action")
	context := root.object("context")
	return &schema.Trace{
		Raw: raw,
		Action: schema.Action{
			Type: schema.ActionType(action.text("type")), Name: action.text("name"), Category: schema.Category(action.text("category")),
			Parameters: schema.Members(action.object("parameters")),
		},
		Context: schema.Context{Members: schema.Members(context), Metadata: schema.Members(context.object("metadata"))},
		Others:  schema.Members(root),
	}, nil
}

// loose holds the members of an object of unknown form.
type loose schema.Members

// membersOf reads an object as strict JSON.
func membersOf(raw []byte) (loose, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.Join(errors.New("not a JSON object"), err)
	}
	var members loose
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		member := schema.Member{Name: name.String()}
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		member.Value = bytes.Clone(value)
		members = append(members, member)
	}
	_, err := decoder.ReadToken()
	return members, err
}

// object returns the object member called name, empty where there is none.
func (l loose) object(name string) loose {
	value, _ := schema.Members(l).Get(name)
	members, err := membersOf(value)
	if err != nil {
		return nil
	}
	return members
}

// text returns the text member called name, empty where there is none.
func (l loose) text(name string) string {
	value, ok := schema.Members(l).Get(name)
	if !ok || value[0] != '"' {
		return ""
	}
	plain, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(plain)
}
