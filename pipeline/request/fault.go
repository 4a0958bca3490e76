package request

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/schema"
)

// Unreadable returns the answer to a body without the required form. form says which form that
// is, or where it is described.
func Unreadable(form string, err error) *problem.Problem {
	p := problem.New(http.StatusBadRequest, schema.ReasonInvalidJSON, "the body cannot be read: see the faults; %s", form)
	p.Faults = []schema.Fault{decodingFault(err)}
	return p
}

// decodingFault describes a decoding error in terms of JSON, because publishers need not know Go.
func decodingFault(err error) schema.Fault {
	if at, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return schema.Fault{Pointer: string(at.JSONPointer), Message: schema.SyntaxMessage(at)}
	}
	at, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return schema.Fault{Message: err.Error()}
	}
	fault := schema.Fault{Pointer: string(at.JSONPointer)}
	switch {
	case errors.Is(err, json.ErrUnknownName):
		fault.Message = "there is no such member"
	case at.Err != nil && !errors.Is(err, strconv.ErrSyntax) && !errors.Is(err, strconv.ErrRange):
		fault.Message = at.Err.Error()
	default:
		found := schema.KindName(at.JSONKind)
		if at.JSONKind == '0' && len(at.JSONValue) > 0 && len(at.JSONValue) < 32 {
			found = string(at.JSONValue)
		}
		fault.Message = fmt.Sprintf("want %s, found %s", nameOf(at.GoType), found)
	}
	return fault
}

// nameOf returns the JSON name of a type.
func nameOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	default:
		return "an object"
	}
}
