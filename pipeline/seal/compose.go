package seal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/pyjson"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// Part is one part of a session. Its traces were compared with their receipts and are in order.
type Part struct {
	AgentID   string
	SessionID string
	Plan      Record
	Traces    []*store.StoredTrace
	Cards     map[string][]byte // card id -> the card as registered, for the cards that verdicts refer to
	Verdict   *schema.SessionVerdict
}

// Contents is the content of a part's bundle that depends on its traces and not on its plan.
type Contents struct {
	rows       []aivs.Row
	lines      []byte // traces.jsonl
	verdicts   []byte // verdicts.jsonl
	rules      redact.Rules
	redactions redact.Count
}

// ErrChanged says that a row's bytes and its columns disagree. See Changed.
var ErrChanged = errors.New("its bytes and its columns differ")

// Read converts the traces of a part, compared and in order, each with its verdict, to the
// contents of its bundle, and begins the verdict on the session. outputLimit bounds the outputs
// of a row in bytes (0: no bound). Values that only the optional rules hide are counted
// separately. The result does not refer to the memory of the traces.
func Read(p *Part, numbered bool, outputLimit int, rules redact.Rules) (*Contents, *session.Judge, error) {
	head := session.Head{AgentID: p.AgentID, SessionID: p.SessionID, Part: p.Plan.Part, LastPart: p.Plan.LastPart, Numbered: numbered}
	judge := session.New(head, p.Plan.Session.Carry)
	c := composer{limit: outputLimit, Contents: Contents{rules: rules}}
	c.rows = make([]aivs.Row, 0, len(p.Traces))
	size := 0 // of traces.jsonl when nothing is redacted or escaped
	for _, t := range p.Traces {
		size += len(t.Raw) + len("\n")
	}
	c.lines = make([]byte, 0, size)
	for _, t := range p.Traces {
		if err := c.add(t); err != nil {
			return nil, nil, fmt.Errorf("trace %s: %w", t.TraceID, err)
		}
		judge.Add(&c.trace, t.Verdict)
	}
	var err error
	if c.verdicts, err = c.verdictLines(p.Traces); err != nil {
		return nil, nil, err
	}
	return &c.Contents, judge, nil
}

// Compose combines the contents of a part with its plan to the input of its bundle. The manifest
// names the program that makes it, with its URL.
func Compose(p *Part, c *Contents, generator, generatorURL string) (*aivs.Input, error) {
	onSession, err := sessionMember(p.Verdict, c.rules)
	if err != nil {
		return nil, fmt.Errorf("verdict on the session: %w", err)
	}
	members := []aivs.Member{
		{Name: aivs.TracesMember, Data: c.lines},
		{Name: aivs.VerdictsMember, Data: c.verdicts},
		{Name: aivs.SessionMember, Data: onSession},
	}
	// The cards are written as they were registered: cards are public, and a card's signature covers
	// all of it.
	for _, id := range slices.Sorted(maps.Keys(p.Cards)) {
		members = append(members, aivs.Member{Name: "cards/" + durable.SafeName(id) + ".json", Data: pyjson.Line(p.Cards[id])})
	}
	return &aivs.Input{
		SessionID:            p.SessionID,
		AgentID:              p.AgentID,
		ExportedAt:           p.Plan.ExportedAt,
		Part:                 p.Plan.Part,
		LastPart:             p.Plan.LastPart,
		TraceCount:           int64(len(c.rows)),
		Redactions:           int64(c.redactions.Draft),
		OptionalRedactions:   int64(c.redactions.Optional),
		Generator:            generator,
		GeneratorURL:         generatorURL,
		PreviousBundleSHA256: p.Plan.Previous,
		Rows:                 aivs.SliceRows(c.rows),
		Members:              members,
	}, nil
}

// maxSessionMember is the size of the largest session.json that verifiers read, in bytes. They
// treat a bundle with a larger one like a bundle without a verdict.
const maxSessionMember = 256 << 10

// sessionMember returns the file of the verdict on the session. Where all listed findings make it
// larger than verifiers read, it omits the last of them, the least grave: an agent chooses the ids
// that findings repeat, and could hide its DENY otherwise. FindingCounts counts those, too. The
// verdict v, which the tables get, stays whole.
func sessionMember(v *schema.SessionVerdict, rules redact.Rules) ([]byte, error) {
	with := func(findings int) ([]byte, error) {
		bounded := *v
		bounded.Findings = v.Findings[:findings]
		text, err := json.Marshal(&bounded)
		if err == nil {
			text, _, err = rules.Record(text)
		}
		if err != nil {
			return nil, err
		}
		return append(pyjson.Line(text), '\n'), nil
	}
	fit, tooMany := 0, len(v.Findings)
	member, err := with(tooMany)
	if err != nil || len(member) <= maxSessionMember {
		return member, err
	}
	for fit+1 < tooMany {
		half := (fit + tooMany) / 2
		if member, err = with(half); err != nil {
			return nil, err
		}
		if len(member) <= maxSessionMember {
			fit = half
		} else {
			tooMany = half
		}
	}
	if member, err = with(fit); err == nil && len(member) > maxSessionMember {
		err = fmt.Errorf("it has %d bytes without a finding, and verifiers read %d", len(member), maxSessionMember)
	}
	return member, err
}

// LineDigest returns the digest of the line that a bundle has of a stored trace in traces.jsonl, which is
// the trace_sha256 of its row.
func LineDigest(stored *store.StoredTrace, rules redact.Rules) (schema.Digest, error) {
	c := composer{Contents: Contents{rules: rules}}
	return c.addLine(stored)
}

type composer struct {
	Contents
	reader
	limit int
	clean bool   // the rules hide nothing in the trace
	input []byte // inputs_json of the row; the memory is used again
}

// add converts one trace to its row and its line of traces.jsonl.
func (c *composer) add(stored *store.StoredTrace) error {
	digest, err := c.addLine(stored)
	if err != nil {
		return err
	}
	row, err := c.row(&c.trace, digest)
	if err != nil {
		return err
	}
	c.rows = append(c.rows, row)
	return nil
}

// addLine adds the line of traces.jsonl of one trace, and returns its digest.
func (c *composer) addLine(stored *store.StoredTrace) (digest schema.Digest, err error) {
	if !c.admits(stored) {
		return digest, ErrChanged
	}
	redacted := c.trace.Raw
	if c.clean = c.rules.Clean(redacted); !c.clean {
		var n redact.Count
		if redacted, n, err = c.rules.Signed(redacted); err != nil {
			return digest, err
		}
		c.redactions.Add(n)
	}
	line := pyjson.Line(redacted)
	c.lines = append(append(c.lines, line...), '\n')
	digest = c.trace.Digest
	if !bytes.Equal(line, c.trace.Raw) {
		digest = schema.DigestOf(line)
	}
	return digest, nil
}

// row converts a trace, whose line has the digest line, to its row of the audit log.
func (c *composer) row(t *schema.Trace, line schema.Digest) (aivs.Row, error) {
	execution := &t.Context.Execution
	inputs, err := c.inputs(t, line)
	if err != nil {
		return aivs.Row{}, fmt.Errorf("inputs: %w", err)
	}
	var outputs string
	if c.clean {
		outputs = redact.Truncate(execution.Outputs, c.limit)
	} else if outputs, _, err = c.rules.Outputs(execution.Outputs, c.limit); err != nil { // what is redacted in both row and line counts once: the line counted it
		return aivs.Row{}, fmt.Errorf("outputs: %w", err)
	}
	actionType := "aap." + string(t.Action.Type)
	if execution.Present {
		actionType = aivs.ActionToolCall
	}
	return aivs.Row{
		ActionType:  actionType,
		ToolName:    c.toolName(t),
		InputsJSON:  inputs,
		OutputsJSON: outputs,
		CostCents:   execution.CostCents,
		Error:       c.redactedText(strings.Clone(execution.Error)),
		Timestamp:   aivs.UnixSeconds(t.Timestamp),
	}, nil
}

// inputs returns the inputs_json of a row: the link to its trace, and the redacted inputs of the
// tool or, where there is no execution, parameters of the action.
func (c *composer) inputs(t *schema.Trace, line schema.Digest) (string, error) {
	raw := t.Context.Execution.Inputs
	if !t.Context.Execution.Present {
		var err error
		if raw, err = object(t.Action.Parameters); err != nil {
			return "", err
		}
	}
	if raw == nil {
		raw = []byte("{}")
	}
	if !c.clean {
		var err error
		if raw, _, err = c.rules.Inputs(raw); err != nil {
			return "", err
		}
	}
	var err error
	b := append(c.input[:0], `{"trace_id":`...)
	if b, err = jsontext.AppendQuote(b, c.redactedText(t.TraceID)); err != nil {
		return "", err
	}
	b = append(b, `,"card_id":`...)
	if b, err = jsontext.AppendQuote(b, c.redactedText(t.CardID)); err != nil {
		return "", err
	}
	b = append(b, `,"trace_sha256":"`...)
	b = hex.AppendEncode(b, line[:])
	b = append(b, `","inputs":`...)
	b = append(append(b, raw...), '}')
	c.input = b
	return string(pyjson.Line(b)), nil
}

// redactedText redacts a text of a trace. The count is dropped: the trace's line counted it.
func (c *composer) redactedText(text string) string {
	if c.clean {
		return text
	}
	hidden, _ := c.rules.Text(text)
	return hidden
}

func object(members schema.Members) (b []byte, err error) {
	b = []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = jsontext.AppendQuote(b, m.Name); err != nil {
			return nil, err
		}
		b = append(append(b, ':'), m.Value...)
	}
	return append(b, '}'), nil
}

// toolName returns the tool's namespaced name, redacted. A name without a namespace gets one.
func (c *composer) toolName(t *schema.Trace) string {
	tool := c.redactedText(t.Context.Execution.ToolName)
	switch {
	case tool == "":
		return "aap." + c.redactedText(t.Action.Name)
	case strings.Contains(tool, "."):
		return strings.Clone(tool)
	default:
		return "tool." + tool
	}
}

// verdictLines writes the verdicts of the traces in their order, one line each. Where a value was
// redacted, they omit the digest of the unredacted trace.
func (c *composer) verdictLines(traces []*store.StoredTrace) ([]byte, error) {
	lines := make([]byte, 0, len(traces)<<10) // a verdict is about this long
	for _, t := range traces {
		if t.Verdict == nil {
			continue
		}
		verdict := *t.Verdict
		if c.redactions != (redact.Count{}) {
			verdict.Metadata.TraceDigest = schema.Digest{}
		}
		start := len(lines)
		var err error
		if lines, err = verdict.AppendJSON(lines); err != nil {
			return nil, fmt.Errorf("verdict on trace %s: %w", t.TraceID, err)
		}
		redacted, _, err := c.rules.Record(lines[start:]) // it may repeat a text of the trace
		if err != nil {
			return nil, fmt.Errorf("verdict on trace %s: %w", t.TraceID, err)
		}
		lines = append(append(lines[:start], pyjson.Line(redacted)...), '\n') // in most cases the same bytes in the same place
	}
	return lines, nil
}
