package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// checkTimeout bounds one query of a comparison, which reads all stored rows.
const checkTimeout = 6 * time.Hour

// checkSummary is the last line of the report.
type checkSummary struct {
	Weak    int                `json:"weak"`    // settings
	Unknown []string           `json:"unknown"` // settings that could not be checked, with the reason
	Printed int                `json:"printed"` // of the differences
	Deep    *reconcile.Summary `json:"deep"`    // null without --deep
}

// checkReport prints findings as they occur, as text or as JSON. In both cases it computes
// the digest of the JSON form.
type checkReport struct {
	out     io.Writer
	asJSON  bool
	limit   int
	digest  hash.Hash
	summary checkSummary
}

func newCheckReport(out io.Writer, asJSON bool, limit int) *checkReport {
	return &checkReport{out: out, asJSON: asJSON, limit: limit, digest: sha256.New(), summary: checkSummary{Unknown: []string{}}}
}

// write writes v as JSON, or the text if the output is for people.
func (r *checkReport) write(v any, text string) error {
	var line bytes.Buffer
	if err := writeJSON(&line, v); err != nil {
		return err
	}
	r.digest.Write(line.Bytes())
	if r.asJSON {
		text = line.String()
	}
	_, err := io.WriteString(r.out, text)
	return err
}

// weakness reports a setting that weakens the guarantees.
func (r *checkReport) weakness(f *settingFinding) error {
	r.summary.Weak++
	return r.write(f, f.text())
}

// difference reports a difference, up to the limit.
func (r *checkReport) difference(d *reconcile.Difference) error {
	if r.limit > 0 && r.summary.Printed >= r.limit {
		return nil
	}
	r.summary.Printed++
	return r.write(d, "DIFFERS  "+d.String()+"\n")
}

// faults returns the number of findings.
func (r *checkReport) faults() int {
	n := r.summary.Weak
	if r.summary.Deep != nil {
		n += r.summary.Deep.Differences
	}
	return n
}

// conclude writes the summary.
func (r *checkReport) conclude() error {
	return r.write(map[string]*checkSummary{"summary": &r.summary}, r.summary.text())
}

func (s *checkSummary) text() string {
	var b bytes.Buffer
	for _, unknown := range s.Unknown {
		fmt.Fprintf(&b, "UNKNOWN  %s\n", unknown)
	}
	if s.Deep != nil {
		compared(&b, s.Deep)
	}
	fmt.Fprintf(&b, "settings: %d weak, %d unknown\n", s.Weak, len(s.Unknown))
	if s.Deep == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "kept: %d differences", s.Deep.Differences)
	if left := s.Deep.Differences - s.Printed; left > 0 {
		fmt.Fprintf(&b, ", %d of them not printed (--limit 0 prints all)", left)
	}
	return b.String() + "\n"
}

// compared says what was compared.
func compared(w *bytes.Buffer, s *reconcile.Summary) {
	c := &s.Counts
	fmt.Fprintf(w, "stream   %d messages: %d traces, %d copies, %d dead letters; %d verdicts, %d alerts, %d receipts, %d repeated\n",
		c.Messages, c.Traces, c.Copies, c.DeadLetters, c.Verdicts, c.Alerts, c.Receipts, c.Repeated)
	fmt.Fprintf(w, "drift    %d points, %d traces not measured yet\n", c.Points, c.Unmeasured)
	fmt.Fprintf(w, "bundles  %d in %d sessions, %d files, %d verified, %d traces\n", c.Bundles, c.Sessions, c.Files, c.Verified, c.Sealed)
	fmt.Fprintf(w, "ledger   %d entries, %d rows, %d events, %d claims\n", c.LedgerEntries, c.LedgerRows, c.LedgerEvents, c.Claims)
	fmt.Fprintf(w, "log      %d leaves, %d proofs, %d heads kept elsewhere\n", c.Leaves, c.Proofs, c.Heads)
	fmt.Fprintf(w, "keys     %d listed; %d time stamps\n", c.Keys, c.Stamps)
	fmt.Fprintf(w, "not counted as differences: %d under way, %d removed by retention, %d older than the stream\n", c.UnderWay, c.Expired, c.Unstreamed)
	for _, what := range s.Skipped {
		fmt.Fprintf(w, "SKIPPED  %s\n", what)
	}
}

// record writes the outcome into the operator's ledger.
func record(ctx context.Context, client *stream.Client, r *checkReport) error {
	outcome := events.SelfCheck{StartedAt: r.summary.Deep.StartedAt, FinishedAt: r.summary.Deep.FinishedAt,
		Good: r.faults() == 0, Faults: r.faults(), SHA256: schema.Digest(r.digest.Sum(nil))}
	event, err := outcome.Event()
	if err != nil {
		return err
	}
	return client.AppendLedger(ctx, event)
}
