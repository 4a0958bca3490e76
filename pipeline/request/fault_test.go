package request

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/schema"
)

// Refusals of bodies name the place and use the terms of JSON, without names of Go.
func TestDecodingFaultsUseTermsOfJSON(t *testing.T) {
	for body, want := range map[string]string{
		`[]`:                      `"": want an object, found an array`,
		`{"agent":1}`:             `"/agent": want a string, found a number`,
		`{"inner":{"agents":{}}}`: `"/inner/agents": want an array, found an object`,
		`{"inner":{"x":null}}`:    `"/inner/x": there is no such member`,
		`{"count":1.5}`:           `"/count": want a whole number, found 1.5`,
		`{"count":"1"}`:           `"/count": want a whole number, found a string`,
		`{"last":null}`:           `<nil>`,
		`{"last":"yes"}`:          `"/last": want true or false, found a string`,
		`{"at":"now"}`:            `"/at": not an RFC 3339 time`,
		`{"agent":"a","agent":1}`: `"/agent": duplicate object member name`,
		`{"agent"`:                `"/agent": ends in the middle of a JSON value (byte 8)`,
	} {
		var into struct {
			Agent string      `json:"agent"`
			Count int         `json:"count"`
			Last  bool        `json:"last"`
			At    schema.Time `json:"at"`
			Inner struct {
				Agents []string `json:"agents"`
			} `json:"inner"`
		}
		err, got := json.Unmarshal([]byte(body), &into, json.RejectUnknownMembers(true)), "<nil>"
		if err != nil {
			fault := Unreadable("", err).Faults[0]
			got = fmt.Sprintf("%q: %s", fault.Pointer, fault.Message)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
