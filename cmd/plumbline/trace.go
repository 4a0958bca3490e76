package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/mcp"
)

type traceCommands struct {
	Get  traceGetCommand  `cmd:"" help:"Show a trace with its verdict, drift points and bundles."`
	Lint traceLintCommand `cmd:"" help:"Check traces for faults and likely mistakes, offline; with --card, judge them."`
	MCP  traceMCPCommand  `cmd:"" name:"mcp" help:"Print a trace for each tools/call of a recorded MCP session, for plumbline send."`
}

type traceGetCommand struct {
	readerFlags `embed:""`
	ID          string `arg:"" help:"The trace_id."`
	JSON        bool   `help:"Print one JSON object for each record."`
}

// Help returns the examples.
func (*traceGetCommand) Help() string {
	return examples(
		"plumbline trace get tr-1018-5",
		"plumbline trace get tr-1018-5 --json | jq .verdict",
	)
}

// traceView is everything that is known about one record.
type traceView struct {
	TraceID   string          `json:"trace_id"`
	AgentID   string          `json:"agent_id"`
	CardID    string          `json:"card_id"`
	SessionID string          `json:"session_id"`
	EventTime time.Time       `json:"event_time"`
	Received  time.Time       `json:"received_at"`
	Sequence  uint64          `json:"stream_sequence"`
	Digest    schema.Digest   `json:"digest"`
	Intact    bool            `json:"intact"` // whether the stored bytes still have this digest
	Verdict   *schema.Verdict `json:"verdict"`
	Drift     []driftView     `json:"drift"`
	Sealed    []sealedView    `json:"sealed"`
	Trace     json.RawMessage `json:"trace"`
}

// driftView is the result of drift detection for the trace.
type driftView struct {
	CardID     string   `json:"card_id"`
	Status     string   `json:"status"`
	Similarity *float64 `json:"similarity"`
	Threshold  float64  `json:"threshold"`
	Streak     uint32   `json:"streak"`
}

// sealedView is the trace's place in a bundle.
type sealedView struct {
	Path   string        `json:"path"`
	SHA256 schema.Digest `json:"sha256"`
	Part   uint32        `json:"part"`
	Row    int           `json:"row"` // id in its audit log; 0 if the bundle does not list it
	KeyID  string        `json:"key_id"`
	Copies []copyView    `json:"copies"`
}

// copyView is a known copy of a bundle.
type copyView struct {
	Destination string    `json:"destination"`
	DeliveredAt time.Time `json:"delivered_at"`
}

// Run shows every record of the id: several if agents or contents differ.
func (c *traceGetCommand) Run(ctx context.Context, con *console) error {
	return c.read(ctx, func(s *store.Store) error {
		reports, err := s.Trace(ctx, c.ID)
		if err != nil {
			return err
		}
		if len(reports) == 0 {
			return fmt.Errorf("%w: no trace %q is stored (of tenant %s)", errNothing, c.ID, c.Tenant)
		}
		for i := range reports {
			v := viewOf(&reports[i])
			if c.JSON {
				err = writeJSON(con.out, v)
			} else {
				err = v.write(con.out)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func viewOf(r *store.TraceReport) *traceView {
	t := &r.Trace
	v := &traceView{
		TraceID: t.TraceID, AgentID: t.AgentID, CardID: t.CardID, SessionID: t.SessionID,
		EventTime: t.EventTime, Received: t.Received, Sequence: t.Sequence,
		Digest: t.Digest, Intact: schema.DigestOf(t.Raw) == t.Digest, Verdict: t.Verdict, Trace: t.Raw,
		Drift: []driftView{}, Sealed: []sealedView{},
	}
	for _, p := range r.DriftPoints {
		v.Drift = append(v.Drift, driftView{p.CardID, p.Status, p.Similarity, p.Threshold, p.Streak})
	}
	for _, b := range r.Bundles {
		place := sealedView{Path: b.Path, SHA256: b.SHA256, Part: b.Part, KeyID: b.KeyID, Copies: []copyView{}}
		for _, c := range r.Copies {
			if c.SHA256 == b.SHA256 {
				place.Copies = append(place.Copies, copyView{c.Destination, c.DeliveredAt})
			}
		}
		if i := slices.Index(b.TraceIDs, t.TraceID); i >= 0 {
			place.Row = i + 2 // ids begin with 1, the open row
		}
		v.Sealed = append(v.Sealed, place)
	}
	return v
}

// write writes the view as text, the record itself last.
func (v *traceView) write(w io.Writer) error {
	digest := v.Digest.String()
	if !v.Intact {
		digest += "  THE STORED BYTES DO NOT MATCH THIS DIGEST"
	}
	rows := [][]any{
		{"trace", v.TraceID}, {"agent", v.AgentID}, {"card", v.CardID}, {"session", v.SessionID},
		{"time", v.EventTime}, {"received", v.Received}, {"sequence", v.Sequence}, {"digest", digest},
	}
	rows = append(rows, verdictRows(v.Verdict)...)
	for _, d := range v.Drift {
		rows = append(rows, []any{"drift", fmt.Sprintf("%s, similarity %s, threshold %g, streak %d", d.Status, cell(d.Similarity), d.Threshold, d.Streak)})
	}
	for _, s := range v.Sealed {
		rows = append(rows, []any{"sealed", fmt.Sprintf("row %d of %s (part %d, sha256 %s)", s.Row, s.Path, s.Part, s.SHA256)})
		for _, c := range s.Copies {
			rows = append(rows, []any{"copied", fmt.Sprintf("to %s at %s", c.Destination, c.DeliveredAt.Format(time.RFC3339))})
		}
	}
	return writeRows(w, append(rows, []any{"record", string(v.Trace)}, nil))
}

func verdictRows(v *schema.Verdict) [][]any {
	if v == nil {
		return [][]any{{"verdict", "none yet"}}
	}
	rows := [][]any{{"verdict", fmt.Sprintf("%s, verified %t, recommended: %s, similarity %.4f", v.Status, v.Verified, v.RecommendedAction, v.SimilarityScore)}}
	for _, kind := range []struct {
		name    string
		remarks []schema.Remark
	}{{"violation", v.Violations}, {"finding", v.Findings}, {"warning", v.Warnings}} {
		for _, r := range kind.remarks {
			rows = append(rows, []any{kind.name, remarkText(r)})
		}
	}
	return rows
}

// remarkText returns a remark of a verdict as text.
func remarkText(r schema.Remark) string {
	text := r.Type
	if r.Severity != "" { // a warning has none
		text += " " + string(r.Severity)
	}
	text += ": " + r.Description
	if r.Field != "" {
		text += " (" + r.Field + ")"
	}
	return text
}

type traceMCPCommand struct {
	File    string `arg:"" help:"Transcript (gzipped or not): one line for each JSON-RPC message, in both directions, as TIME MESSAGE with an RFC 3339 time; - is standard input."`
	Agent   string `required:"" help:"agent_id of the traces."`
	Card    string `required:"" help:"card_id of the traces."`
	Session string `help:"session_id of the traces. Without it they belong to the agent's session of the day."`
	Server  string `help:"Name of the MCP server. Default: the name that it has in the transcript."`
}

// Help returns the examples.
func (*traceMCPCommand) Help() string {
	return examples("plumbline trace mcp session.log --agent did:web:buyer.example --card ac-buyer-1 | plumbline send -")
}

// Run prints a trace for each tools/call of an MCP transcript, one per line, for
// plumbline send. An unreadable line ends it; the error has the line's number.
func (c *traceMCPCommand) Run(ctx context.Context, con *console) error {
	in, err := openInput(ctx, c.File, con.in)
	if err != nil {
		return err
	}
	defer in.Close()
	session := mcp.Session{AgentID: c.Agent, CardID: c.Card, SessionID: c.Session, Server: c.Server}
	lines := newLineReader(in)
	for text, err := range lines.all {
		if err != nil {
			return fmt.Errorf("read %s: %w", nameOf(c.File), err)
		}
		if err := c.message(con.out, &session, text); err != nil {
			return fmt.Errorf("%s, line %d: %w", nameOf(c.File), lines.number, err)
		}
	}
	traces, err := session.End()
	if err != nil {
		return fmt.Errorf("%s: %w", nameOf(c.File), err)
	}
	return printTraces(con.out, traces)
}

// message converts one line of the transcript, and prints the traces that it completes.
func (c *traceMCPCommand) message(out io.Writer, session *mcp.Session, line []byte) error {
	stamp, message, _ := bytes.Cut(line, []byte(" "))
	at, err := schema.ParseTime(string(stamp))
	if err != nil {
		return fmt.Errorf("want TIME MESSAGE, with a time such as 2026-01-31T12:00:00Z: %w", err)
	}
	traces, err := session.Message(at, message)
	if err != nil {
		return err
	}
	return printTraces(out, traces)
}

func printTraces(out io.Writer, traces [][]byte) error {
	for _, raw := range traces {
		if _, err := out.Write(append(raw, '\n')); err != nil {
			return err
		}
	}
	return nil
}
