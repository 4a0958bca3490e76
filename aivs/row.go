package aivs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/plumbline/plumbline/aivs/pyjson"
)

// Action types of the first and the last row of a session. Other rows may have them, too: the
// draft reserves no action type. See Row.Check.
const (
	ActionOpen = "open"
	ActionSeal = "seal"
)

// ActionToolCall is the draft's default action type (section 2.2).
const ActionToolCall = "tool_call"

// Row is one line of audit_log.jsonl (draft section 3). Its fields hold decoded text, except that
// SessionID, ActionType and ToolName are in the form that is hashed (see Encode).
type Row struct {
	ID          int64 // 1..N
	SessionID   string
	ActionType  string
	ToolName    string // namespaced, such as "browser.navigate"
	InputsJSON  string // JSON, redacted
	OutputsJSON string // JSON, redacted, perhaps truncated
	CostCents   int64  // 0 or more
	Error       string // empty on success
	Timestamp   float64
	PrevHash    string // hash of the previous row; empty in the first
	RowHash     string // 64 lower-case hexadecimal digits
}

// maxCost is the largest cost that every JSON reader represents exactly.
const maxCost = 1<<53 - 1

// UnixSeconds returns t as a row's timestamp: seconds since 1970, to the microsecond. That is the
// finest step that a float64 represents exactly for present times.
func UnixSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

var encodeHashed = strings.NewReplacer("%", "%25", ":", "%3A")

// Encode escapes s for a hashed field. The row hash joins its fields with colons, so a colon
// inside a field would let two rows share one hash. Encode therefore percent-encodes '%' and ':'.
func Encode(s string) string { return encodeHashed.Replace(s) }

// appendPreimage appends the text that the row hash covers (draft section 2.1).
func (r *Row) appendPreimage(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, r.ID, 10), ':')
	dst = append(append(dst, r.SessionID...), ':')
	dst = append(append(dst, r.ActionType...), ':')
	dst = append(append(dst, r.ToolName...), ':')
	dst = append(strconv.AppendInt(dst, r.CostCents, 10), ':')
	dst = append(pyjson.AppendFloat(dst, r.Timestamp), ':')
	return append(dst, r.PrevHash...)
}

// AppendJSON appends the row as one ASCII JSON object without line break: the
// draft's members in the draft's order, spaced as Python's json.dumps does.
func (r *Row) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"id": `...), r.ID, 10)
	dst = pyjson.AppendString(append(dst, `, "session_id": `...), r.SessionID)
	dst = pyjson.AppendString(append(dst, `, "action_type": `...), r.ActionType)
	dst = pyjson.AppendString(append(dst, `, "tool_name": `...), r.ToolName)
	dst = pyjson.AppendString(append(dst, `, "inputs_json": `...), r.InputsJSON)
	dst = pyjson.AppendString(append(dst, `, "outputs_json": `...), r.OutputsJSON)
	dst = strconv.AppendInt(append(dst, `, "cost_cents": `...), r.CostCents, 10)
	dst = pyjson.AppendString(append(dst, `, "error": `...), r.Error)
	dst = pyjson.AppendFloat(append(dst, `, "timestamp": `...), r.Timestamp)
	dst = pyjson.AppendString(append(dst, `, "prev_hash": `...), r.PrevHash)
	dst = pyjson.AppendString(append(dst, `, "row_hash": `...), r.RowHash)
	return append(dst, '}')
}

// Time returns the row's timestamp to the microsecond, in UTC. It is only for timestamps of the years
// 1970 to 9999.
func (r *Row) Time() time.Time { return time.UnixMicro(int64(math.Floor(r.Timestamp*1e6 + 0.5))).UTC() }

// Check returns an error if a caller's row must not be in a bundle.
func (r *Row) Check() error {
	var faults []error
	if r.ActionType == "" || r.ToolName == "" {
		faults = append(faults, errors.New("action type and tool name must not be empty"))
	}
	if r.ActionType == ActionSeal && strings.HasPrefix(r.ToolName, sealTool) ||
		r.ActionType == ActionOpen && strings.HasPrefix(r.ToolName, openFamily) {
		faults = append(faults, fmt.Errorf("an %q row of tool %q would be taken for the bundle's own", r.ActionType, r.ToolName))
	}
	if r.CostCents < 0 || r.CostCents > maxCost {
		faults = append(faults, fmt.Errorf("cost of %d cents is not within 0..%d", r.CostCents, int64(maxCost)))
	}
	if math.IsNaN(r.Timestamp) || math.IsInf(r.Timestamp, 0) {
		faults = append(faults, errors.New("timestamp is not finite"))
	}
	for _, text := range []string{r.ActionType, r.ToolName, r.InputsJSON, r.OutputsJSON, r.Error} {
		if !utf8.ValidString(text) {
			faults = append(faults, errors.New("text is not valid UTF-8"))
			break
		}
	}
	return errors.Join(faults...)
}

// Actions tells the actions of a log from the rows that frame it: the open row, and a content seal in
// the last place. Any other row is an action, whatever it is called: a reader who left it out would not
// see what the agent did.
type Actions struct {
	seal *Row // the row before, if it may be the last one
}

// Row takes the rows of a log in order, and calls take with each action.
func (a *Actions) Row(r *Row, take func(*Row)) {
	if a.seal != nil {
		take(a.seal)
		a.seal = nil
	}
	switch {
	case r.ID == 1 && isOpening(r):
	case isSeal(r):
		kept := *r
		a.seal = &kept
	default:
		take(r)
	}
}

// Chain computes the draft's hash chain over rows (section 2). The zero Chain is not usable; see
// NewChain.
type Chain struct {
	rows    int64
	prev    string
	links   hash.Hash // of all row hashes as text: the chain hash
	content hash.Hash // of the digests of inputs, outputs, errors: the seal
	scratch []byte
}

// NewChain returns a chain without rows.
func NewChain() *Chain {
	return &Chain{links: sha256.New(), content: sha256.New(), scratch: make([]byte, 0, 512)}
}

// Link makes r the chain's next row: it sets ID, PrevHash and RowHash.
func (c *Chain) Link(r *Row) {
	r.ID = c.rows + 1
	r.PrevHash = c.prev
	r.RowHash = c.hash(r)
	c.append(r)
}

// hash returns the row hash of draft section 2.1 over the row's own PrevHash, and over further
// fields, which some dialects have.
func (c *Chain) hash(r *Row, further ...string) string {
	c.scratch = r.appendPreimage(c.scratch[:0])
	for _, field := range further {
		c.scratch = append(append(c.scratch, ':'), field...)
	}
	sum := sha256.Sum256(c.scratch)
	c.scratch = hex.AppendEncode(c.scratch[:0], sum[:])
	return string(c.scratch)
}

// append adds a row whose RowHash is already correct.
func (c *Chain) append(r *Row) {
	c.rows++
	c.prev = r.RowHash
	c.scratch = append(c.scratch[:0], r.RowHash...)
	c.links.Write(c.scratch)
	for _, text := range [3]string{r.InputsJSON, r.OutputsJSON, r.Error} {
		c.scratch = append(c.scratch[:0], text...)
		sum := sha256.Sum256(c.scratch)
		c.scratch = append(c.scratch[:0], sum[:]...)
		c.content.Write(c.scratch)
	}
}

// Rows returns the number of rows linked.
func (c *Chain) Rows() int64 { return c.rows }

// Hash returns the chain hash of draft section 2.4 in hexadecimal digits: SHA-256 of the
// concatenated hexadecimal row hashes, or of "empty" when there are no rows.
func (c *Chain) Hash() string {
	if c.rows == 0 {
		return hexSHA256([]byte("empty"))
	}
	return hex.EncodeToString(c.links.Sum(nil))
}

// Content returns the digest that a seal row states: SHA-256 over the raw SHA-256 digests of
// inputs_json, outputs_json and error of every row so far.
func (c *Chain) Content() string { return hex.EncodeToString(c.content.Sum(nil)) }

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
