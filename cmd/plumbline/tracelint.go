package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

type traceLintCommand struct {
	File string `arg:"" help:"File of traces, one JSON object a line, or of one trace over several lines; gzipped or not; - is standard input."`
	Card string `placeholder:"FILE" help:"Judge the traces by the cards in this file (JSON objects)."`
	JSON bool   `help:"Print one JSON object for each trace."`
}

// Help returns the examples.
func (*traceLintCommand) Help() string {
	return examples(
		"plumbline trace lint examples/trace.json",
		"plumbline trace lint examples/session.jsonl --card examples/card.json",
		"plumbline trace lint - --json < traces.jsonl",
	)
}

// lintedTrace is the result of lint for one trace.
type lintedTrace struct {
	File     string           `json:"file"`
	Line     int              `json:"line"` // on which the trace begins
	TraceID  string           `json:"trace_id"`
	Status   string           `json:"status"`
	Faults   []schema.Fault   `json:"faults"`
	Warnings []schema.Warning `json:"warnings"`
	Verdict  *schema.Verdict  `json:"verdict,omitempty"` // with --card, of a valid trace

	raw []byte
}

// tracer examines the traces of one input.
type tracer struct {
	decoder schema.Decoder
	judge   *aap.Judge
	cards   map[string]*aap.Compiled // by card_id; nil without --card
	now     time.Time
	garbage int                       // lines that are not JSON, before any that is
	seen    map[[2]string][]seenTrace // by agent_id and trace_id
}

// maxGarbage is after how many lines an input counts as no file of traces.
const maxGarbage = 10

// seenTrace is an earlier trace of the input.
type seenTrace struct {
	line   int
	digest schema.Digest
}

// Run examines traces as ingest does, and with --card judges them as the verifier does. Warnings
// alone are no failure; a fault, a violation or a finding is.
func (c *traceLintCommand) Run(ctx context.Context, con *console) error {
	if c.File == "-" && c.Card == "-" {
		return usagef("standard input cannot be both the traces and the cards: name a file for one of them")
	}
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		return err
	}
	t := &tracer{judge: judge, now: time.Now(), seen: map[[2]string][]seenTrace{}}
	t.decoder.Warn = true
	if c.Card != "" {
		if t.cards, err = readCards(ctx, c.Card, con.in); err != nil {
			return err
		}
	}
	in, err := openInput(ctx, c.File, con.in)
	if err != nil {
		return err
	}
	defer in.Close()
	examined, bad := 0, 0
	err = eachTrace(in, func(number int, raw []byte) error {
		o := t.examine(number, raw)
		o.File = nameOf(c.File)
		if t.garbage == maxGarbage {
			return fmt.Errorf("the first %d lines are not JSON: want one JSON object a line, such as examples/session.jsonl", maxGarbage)
		}
		examined++
		if o.bad() {
			bad++
		}
		if c.JSON {
			return writeJSON(con.out, o)
		}
		return o.write(con.out)
	})
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", nameOf(c.File), err)
	case examined == 0:
		return fmt.Errorf("%w: %s has no trace: write one JSON object a line", errNothing, nameOf(c.File))
	}
	return found(nil, bad == 0)
}

// readCards returns the compiled cards of a file by their ids.
func readCards(ctx context.Context, file string, stdin io.Reader) (map[string]*aap.Compiled, error) {
	cards := map[string]*aap.Compiled{}
	err := eachCardOf(ctx, file, stdin, func(o *cardOutcome, raw []byte) error {
		card, err := aap.Register(raw)
		if err != nil {
			return fmt.Errorf("%s, card %d: %w\nSee all faults with: plumbline card lint %s", o.File, o.Number, err, file)
		}
		cards[card.Card.CardID] = card
		return nil
	})
	return cards, err
}

// eachTrace calls f with each trace of an input and the number of its first line. An input that
// is one JSON object over several lines is one trace; otherwise every line is one.
func eachTrace(in io.Reader, f func(number int, raw []byte) error) error {
	buffered := bufio.NewReaderSize(in, schema.MaxTraceBytes+1)
	start, err := buffered.Peek(schema.MaxTraceBytes + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	document := bytes.TrimLeft(start, " \t\r\n")
	number := 1 + bytes.Count(start[:len(start)-len(document)], []byte{'\n'})
	if document = bytes.TrimRight(document, " \t\r\n"); err != nil && ofSeveralLines(document) {
		return f(number, document)
	}
	lines := newLineReader(buffered)
	for text, err := range lines.all {
		if err != nil {
			return fmt.Errorf("line %d: %w", lines.number, err)
		}
		if err := f(lines.number, text); err != nil {
			return err
		}
	}
	return nil
}

// ofSeveralLines reports whether a text looks like one JSON value over several lines, not like an
// object a line. The value itself may have errors.
func ofSeveralLines(text []byte) bool {
	first, rest, several := bytes.Cut(text, []byte{'\n'})
	switch {
	case !several || json.Valid(first):
		return false
	case first[0] == '{':
		return !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte{'{'})
	}
	return first[0] == '['
}

// examine admits and judges one trace.
func (t *tracer) examine(number int, raw []byte) *lintedTrace {
	o := &lintedTrace{Line: number, Status: lintValid, Faults: []schema.Fault{}, Warnings: []schema.Warning{}, raw: raw}
	var trace schema.Trace
	err := t.decoder.Admit(&trace, "", raw)
	o.TraceID = strings.Clone(trace.TraceID)
	if err != nil {
		o.Status, o.Faults = lintFaulty, []schema.Fault{{Message: err.Error()}}
		if refusal, ok := errors.AsType[*schema.Refusal](err); ok {
			o.Faults = refusal.Faults
			switch first := &o.Faults[0]; {
			case strings.HasPrefix(first.Message, schema.Truncated):
				first.Message += ": put each trace on one line (jq -c)"
			case first.Pointer == "" && raw[0] == '[':
				first.Message = "this is an array: write one JSON object per line, not an array (jq -c '.[]')"
			}
			if refusal.Reason == schema.ReasonInvalidJSON && len(t.seen) == 0 {
				t.garbage++
			}
		}
		return o
	}
	t.garbage = 0
	o.Warnings = append(o.Warnings, t.decoder.Warnings()...)
	t.compare(o, &trace)
	if t.cards == nil {
		return o
	}
	o.Verdict = new(schema.Verdict)
	if card := t.cards[trace.CardID]; card != nil {
		t.judge.Verify(&trace, card, aap.Facts{Received: t.now}, t.now, o.Verdict)
		return o
	}
	t.judge.Unknown(&trace, t.now, o.Verdict)
	o.Warnings = append(o.Warnings, schema.Warning{Code: schema.WarnUnknownCard, Pointer: "/card_id",
		Message: fmt.Sprintf("the cards that were given do not include %q: the trace is not judged", schema.Clip(trace.CardID, schema.MaxIDBytes))})
	return o
}

// compare warns if an earlier trace has the same id.
func (t *tracer) compare(o *lintedTrace, trace *schema.Trace) {
	key := [2]string{strings.Clone(trace.AgentID), o.TraceID}
	before := t.seen[key]
	if i := slices.IndexFunc(before, func(s seenTrace) bool { return s.digest == trace.Digest }); i >= 0 {
		o.Warnings = append(o.Warnings, schema.Warning{Code: "duplicate", Pointer: "/trace_id",
			Message: fmt.Sprintf("is the same trace as that of line %d: it is stored once", before[i].line)})
		return
	}
	if len(before) > 0 {
		o.Warnings = append(o.Warnings, schema.Warning{Code: schema.WarnConflict, Pointer: "/trace_id",
			Message: fmt.Sprintf("the trace of line %d has this trace_id and other contents: both are stored and judged; give each trace an id of its own", before[0].line)})
	}
	t.seen[key] = append(before, seenTrace{o.Line, trace.Digest})
}

// bad reports whether the trace is refused, or has a violation or a finding.
func (o *lintedTrace) bad() bool {
	return o.Status == lintFaulty || o.Verdict != nil && len(o.Verdict.Violations)+len(o.Verdict.Findings) > 0
}

// write prints the result as text: a line for the trace, and one for each remark with the line
// that it is about.
func (o *lintedTrace) write(w io.Writer) error {
	out := lineWriter{w: w}
	if o.Status == lintFaulty {
		for _, fault := range o.Faults {
			out.result(o.File, o.lineOf(fault.Pointer), o.Status, o.TraceID, []schema.Fault{fault})
		}
		return out.err
	}
	verdict := ""
	if o.Verdict != nil {
		verdict = ": " + string(o.Verdict.RecommendedAction)
		if o.Verdict.Status != schema.StatusJudged {
			verdict = ": not judged"
		}
	}
	out.printf("%s:%d: %s %s%s\n", o.File, o.Line, o.Status, printable(o.TraceID), verdict)
	for _, warning := range o.Warnings {
		out.printf("%s:%d: warning: %s (%s)\n", o.File, o.lineOf(warning.Pointer), placed(warning.Pointer, warning.Message), warning.Code)
	}
	if v := o.Verdict; v != nil {
		o.remarks(&out, "violation", v.Violations)
		o.remarks(&out, "finding", v.Findings)
		o.remarks(&out, "warning", v.Warnings)
	}
	return out.err
}

// remarks prints one list of a verdict.
func (o *lintedTrace) remarks(out *lineWriter, kind string, remarks []schema.Remark) {
	for _, r := range remarks {
		out.printf("%s:%d: %s: %s\n", o.File, o.Line, kind, printable(remarkText(r)))
	}
}

// lineOf returns the line of the value at a pointer; of a member that is missing, the line of the
// object that lacks it.
func (o *lintedTrace) lineOf(pointer string) int {
	decoder := jsontext.NewDecoder(bytes.NewReader(o.raw))
	line := o.Line
	for longest := -1; ; {
		if _, err := decoder.ReadToken(); err != nil {
			return line
		}
		at := string(decoder.StackPointer())
		if len(at) > longest && (at == pointer || strings.HasPrefix(pointer, at+"/")) {
			longest = len(at)
			line = o.Line + bytes.Count(o.raw[:decoder.InputOffset()], []byte{'\n'})
		}
	}
}
