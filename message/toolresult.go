package message

import (
	"crypto/hmac"
	"fmt"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// ToolResult is the result of a tool call (RFC section 2.4).
type ToolResult struct {
	ToolName string
	Seq      uint64
	Result   []byte // JSON
}

// Canonical returns the form of the result that the MAC covers: its canonical form (RFC 8785).
// The error says why the result has none.
func (r *ToolResult) Canonical() ([]byte, error) {
	form, err := schema.Canonical(r.Result)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	return form, nil
}

// SignToolResult returns the MAC of a tool result. It covers the tool's name, "|", the result's
// number, "|" and the canonical form. A name that contains "|" is refused, since two results
// could then share the same bytes.
//
// The RFC's formula does not cover the session. A verifier must therefore also compare the
// result with the record of that number in its session.
func (k *Key) SignToolResult(r *ToolResult) (MAC, error) {
	if err := CheckToolName(r.ToolName); err != nil {
		return MAC{}, err
	}
	form, err := r.Canonical()
	if err != nil {
		return MAC{}, err
	}
	return k.toolResults.sum(func(b []byte) []byte {
		b = append(append(b, r.ToolName...), '|')
		b = append(strconv.AppendUint(b, r.Seq, 10), '|')
		return append(b, form...)
	}), nil
}

// CheckToolName returns an error for an invalid tool name.
func CheckToolName(name string) error {
	if name == "" || len(name) > MaxFieldBytes || strings.Contains(name, "|") {
		return fmt.Errorf("tool_name %q: want 1 to %d bytes without |", clip(name), MaxFieldBytes)
	}
	return nil
}

// VerifyToolResult returns nil when mac is the result's MAC and ErrForged when it is not. Any
// other error says why the result can have no MAC.
func (k *Key) VerifyToolResult(r *ToolResult, mac MAC) error {
	want, err := k.SignToolResult(r)
	if err != nil {
		return err
	}
	if !hmac.Equal(want[:], mac[:]) {
		return ErrForged
	}
	return nil
}
