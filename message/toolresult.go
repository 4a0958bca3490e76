package message

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

// ToolResult is what a tool answered (RFC section 2.4).
type ToolResult struct {
	ToolName string
	Seq      uint64
	Result   []byte // JSON
}

// SignToolResult returns the MAC of a tool result: over its tool's name, "|", its
// number, "|" and the canonical form (RFC 8785) of the result. A name with "|"
// in it is refused, since two results could share the bytes then.
func (k *Key) SignToolResult(r *ToolResult) (MAC, error) {
	if r.ToolName == "" || strings.Contains(r.ToolName, "|") {
		return MAC{}, fmt.Errorf("tool_name %q: want a name without |", clip(r.ToolName))
	}
	if !jsontext.Value(r.Result).IsValid() {
		return MAC{}, errors.New("result: not JSON, or a key stands twice in one object")
	}
	canonical, err := jcs.Transform(r.Result)
	if err != nil {
		return MAC{}, fmt.Errorf("result: no canonical form (RFC 8785): %w", err)
	}
	return sum(k.toolResults, func(h hash.Hash) {
		head := strconv.AppendUint(append([]byte(r.ToolName), '|'), r.Seq, 10)
		h.Write(append(head, '|'))
		h.Write(canonical)
	}), nil
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
