package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

type checkCommand struct {
	machineFlags `embed:""`
	Deep         bool     `help:"Also compare the stored data: stream, rows, receipts, bundles, ledger and transparency log."`
	Bundles      string   `type:"path" placeholder:"DIR" help:"Directory of the bundles. Default: that of the running up, or bundles/ in the data directory."`
	Key          []string `sep:"none" placeholder:"HEX|FILE" help:"Public key that bundles must be signed with, or that leads to the key that signed. Repeatable. Default: that of the running up."`
	TSACert      string   `name:"tsa-cert-file" aliases:"tsa-cert" type:"path" placeholder:"FILE" help:"Certificates (PEM) of the time stamping authority, to check the stamps next to bundles. Default: those of the running up."`
	Limit        int      `default:"100" help:"Maximum number of differences to print; 0: all. All are counted."`
	Record       bool     `default:"true" negatable:"" help:"Write the outcome of --deep to the operator's ledger."`
	Tenant       string   `default:"default" help:"Tenant whose streams and rows are checked."`
	JSON         bool     `help:"Print one JSON object for each finding, then a summary."`

	NATS          config.NATS `embed:"" prefix:"nats-" group:"Your own broker instead of that of a running up"`
	ClickHouseDSN string      `name:"clickhouse-dsn" placeholder:"DSN" help:"Database to check. Default: that of the running up."`
	Cluster       string      `name:"clickhouse-cluster" placeholder:"NAME" help:"ClickHouse cluster that has the tables; every server of it is checked."`
}

// Help returns the examples.
func (*checkCommand) Help() string {
	return examples(
		"plumbline check",
		"plumbline check --deep",
		"plumbline check --deep --nats-url nats://nats.example:4222 --clickhouse-dsn clickhouse://user:password@db.example:9000/plumbline",
	)
}

// Run checks the settings of broker and database, and with --deep also their contents.
func (c *checkCommand) Run(ctx context.Context, con *console) (err error) {
	site, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.Client.Close(), site.Store.Close()) }()
	r := &checkReport{out: verdictWriter{con.out}, asJSON: c.JSON, limit: c.Limit, digest: sha256.New(), summary: checkSummary{Unknown: []string{}}}
	if err := r.checkSettings(ctx, site); err != nil {
		return err
	}
	if c.Deep {
		if r.summary.Deep, err = reconcile.Run(ctx, *site, r.difference); err != nil {
			return err
		}
	}
	if err := r.write(map[string]*checkSummary{"summary": &r.summary}, r.summary.text()); err != nil {
		return err
	}
	if deep := r.summary.Deep; deep != nil && c.Record {
		event, err := events.SelfCheck{StartedAt: deep.StartedAt, FinishedAt: deep.FinishedAt,
			Good: r.faults() == 0, Faults: r.faults(), SHA256: schema.Digest(r.digest.Sum(nil))}.Event()
		if err == nil {
			err = site.Client.AppendLedger(ctx, event)
		}
		if err != nil { // a reader may check, but not write
			fmt.Fprintf(con.errs, "plumbline: the outcome was not written to the ledger: %v\n", err)
		}
	}
	return found(nil, r.faults() == 0)
}

// open opens what is to be checked. The caller closes client and store.
func (c *checkCommand) open(ctx context.Context) (*reconcile.Site, error) {
	if c.Cluster != "" && !schema.PlainName(c.Cluster) {
		return nil, clusterName(c.Cluster)
	}
	// A default directory that is missing is reported as SKIPPED. One that was named is a typing
	// error, and the check must not pass without it.
	if info, err := os.Stat(c.Bundles); c.Bundles != "" && (err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("%w: --bundles: there is no directory %s: name the exporter's bundle directory", errNothing, c.Bundles)
	}
	at, err := c.servers(ctx, c.NATS.URL, c.ClickHouseDSN)
	if err != nil {
		return nil, err
	}
	if c.NATS.URL != "" {
		at.NATSURL, at.NATSMonitorURL = c.NATS.URL, c.NATS.MonitorURL
	}
	at.ClickHouseDSN = cmp.Or(c.ClickHouseDSN, at.OperatorDSN, at.ClickHouseDSN) // the operator may also read the bytes of dead letters
	at.DataDir = cmp.Or(at.DataDir, c.Data, defaultData)
	at.Bundles = cmp.Or(c.Bundles, at.Bundles, filepath.Join(at.DataDir, "bundles"))
	site := &reconcile.Site{Bundles: at.Bundles, Ledger: filepath.Join(at.DataDir, "ledger"), Log: filepath.Join(at.DataDir, "log"),
		KeyList: filepath.Join(at.DataDir, "keys", keystore.ListName), Stamps: filepath.Join(at.DataDir, "timestamps")}
	// The pinned keys are those of --key, or else the key of the running up. Keys of the data
	// directory's key list count only if a pinned key leads to them.
	if site.Pinned, err = readKeys(c.Key); err != nil {
		return nil, err
	}
	if len(c.Key) == 0 && at.PublicKey != "" {
		key, err := aivs.ParseKey(at.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("public key of the running plumbline: %w", err)
		}
		site.Pinned = []ed25519.PublicKey{key}
	}
	if site.Authorities, err = authorities(cmp.Or(c.TSACert, at.TSACertFile)); err != nil {
		return nil, err
	}
	common := config.Common{Tenant: c.Tenant, NATS: c.NATS}
	common.NATS.URL, common.NATS.MonitorURL = at.NATSURL, at.NATSMonitorURL
	if site.Client, err = stream.Connect(ctx, service.StreamConfig(&common, "plumbline check", nil)); err != nil {
		return nil, err
	}
	site.Store, err = store.Open(ctx, store.Config{DSN: at.ClickHouseDSN, Tenant: c.Tenant, Stage: "check", QueryTimeout: checkTimeout, Cluster: c.Cluster})
	if err != nil {
		return nil, errors.Join(usageError{err}, site.Client.Close())
	}
	return site, nil
}

// settingFinding is a setting of the broker or the database with which the guarantees of
// docs/GUARANTEES.md do not hold.
type settingFinding struct {
	Kind    string `json:"kind"`   // "setting"
	Of      string `json:"of"`     // broker, database
	Object  string `json:"object"` // stream TRACES, table traces, …
	Setting string `json:"setting"`
	Found   string `json:"found"`
	Wanted  string `json:"wanted"`
	Why     string `json:"why"`
	Remedy  string `json:"remedy"`
}

// checkSettings compares the settings of broker and database with what the guarantees need.
func (r *checkReport) checkSettings(ctx context.Context, site *reconcile.Site) error {
	broker, err := site.Client.Inspect(ctx)
	if err != nil {
		return err
	}
	r.summary.Unknown = append(r.summary.Unknown, broker.Unknown...)
	for _, w := range broker.Weaknesses {
		if err := r.weakness(&settingFinding{"setting", "broker", w.Object, w.Setting, w.Found, w.Wanted, w.Why(), w.Remedy}); err != nil {
			return err
		}
	}
	database, err := site.Store.Inspect(ctx)
	if err != nil {
		return err
	}
	r.summary.Unknown = append(r.summary.Unknown, database.Unknown...)
	for _, w := range database.Weaknesses {
		if err := r.weakness(&settingFinding{"setting", "database", w.Object, w.Setting, w.Found, w.Wanted, w.Why, w.Remedy}); err != nil {
			return err
		}
	}
	return nil
}

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
	return r.write(f, fmt.Sprintf("WEAK     %s: %s: %s is %s, want %s: %s; %s\n",
		f.Of, printable(f.Object), f.Setting, printable(f.Found), f.Wanted, f.Why, f.Remedy))
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

func (s *checkSummary) text() string {
	var b bytes.Buffer
	for _, unknown := range s.Unknown {
		fmt.Fprintf(&b, "UNKNOWN  %s\n", unknown)
	}
	if s.Deep != nil {
		c := &s.Deep.Counts
		fmt.Fprintf(&b, "stream   %d messages: %d traces, %d copies, %d dead letters, %d requested ends; %d verdicts, %d alerts, %d receipts, %d repeated\n",
			c.Messages, c.Traces, c.Copies, c.DeadLetters, c.Ends, c.Verdicts, c.Alerts, c.Receipts, c.Repeated)
		fmt.Fprintf(&b, "drift    %d messages with a point, %d not measured yet\n", c.Points, c.Unmeasured)
		fmt.Fprintf(&b, "bundles  %d in %d sessions, %d files, %d verified, %d traces\n", c.Bundles, c.Sessions, c.Files, c.Verified, c.Sealed)
		fmt.Fprintf(&b, "ledger   %d entries, %d rows, %d events, %d claims\n", c.LedgerEntries, c.LedgerRows, c.LedgerEvents, c.Claims)
		fmt.Fprintf(&b, "log      %d leaves, %d proofs, %d heads at other destinations\n", c.Leaves, c.Proofs, c.Heads)
		fmt.Fprintf(&b, "keys     %d listed; %d time stamps\n", c.Keys, c.Stamps)
		fmt.Fprintf(&b, "not counted as differences: %d under way, %d removed by retention, %d older than the stream\n", c.UnderWay, c.Expired, c.Unstreamed)
		for _, what := range s.Deep.Skipped {
			fmt.Fprintf(&b, "SKIPPED  %s\n", what)
		}
	}
	if s.Weak+len(s.Unknown) == 0 {
		b.WriteString("OK: all settings are safe.\n")
	} else {
		fmt.Fprintf(&b, "settings: %d weak, %d unknown\n", s.Weak, len(s.Unknown))
	}
	switch {
	case s.Deep == nil:
	case s.Deep.Differences == 0 && len(s.Deep.Skipped) > 0:
		b.WriteString("OK: no differences, but what is SKIPPED was not compared.\n")
	case s.Deep.Differences == 0:
		b.WriteString("OK: the stored data agrees everywhere.\n")
	default:
		fmt.Fprintf(&b, "stored data: %d differences", s.Deep.Differences)
		if left := s.Deep.Differences - s.Printed; left > 0 {
			fmt.Fprintf(&b, ", %d of them not printed (--limit 0 prints all)", left)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
