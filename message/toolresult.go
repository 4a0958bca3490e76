package message

import (
	"crypto/hmac"
	"fmt"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/schema/canonical"
)

// ToolResult is what a tool answered (RFC section 2.4).
type ToolResult struct {
	ToolName string
	Seq      uint64
	Result   []byte // JSON
}

// Canonical returns what the MAC covers of the result: its canonical form (RFC
// 8785). The error says why it has none.
func (r *ToolResult) Canonical() ([]byte, error) {
	form, err := canonical.JSON(r.Result)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	return form, nil
}

// SignToolResult returns the MAC of a tool result: over its tool's name, "|", its
// number, "|" and its canonical form. A name with "|" in it is refused, since two
// results could share the bytes then.
//
// The RFC's formula knows no session: whoever verifies a result also asks the
// record of its session under that number.
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

// CheckToolName says what is wrong with the name of a tool.
func CheckToolName(name string) error {
	if name == "" || len(name) > MaxFieldBytes || strings.Contains(name, "|") {
		return fmt.Errorf("tool_name %q: want 1 to %d bytes without |", clip(name), MaxFieldBytes)
	}
	return nil
}

// VerifyToolResult returns nil when mac is the result's, ErrForged when not, or
// why it can have none.
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
