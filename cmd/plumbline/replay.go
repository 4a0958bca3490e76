package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/local"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

type replayCommand struct {
	machineFlags `embed:""`
	FromSequence uint64    `xor:"from" placeholder:"N" help:"First sequence of stream TRACES; default: the first message that it holds."`
	From         time.Time `xor:"from" placeholder:"TIME" help:"Instead: what the broker received at this time (2026-11-20T08:00:00Z) or later."`
	ToSequence   uint64    `placeholder:"N" help:"Last sequence; default: as far as the verifier has acknowledged."`
	Tenant       string    `default:"default" help:"Whose streams and rows."`
	JSON         bool      `help:"Print the summary as one JSON object."`

	NATS                run.NATS `embed:"" prefix:"nats-" group:"A broker of your own instead of that of a running up"`
	ClickHouseDSN       string   `name:"clickhouse-dsn" placeholder:"DSN" help:"This database instead of that of a running up, as a user who may insert."`
	MessagePoliciesFile string   `type:"path" placeholder:"FILE" help:"The policies that the verifier holds traces to; default: those of the running up."`
}

// Help is what stands below the usage.
func (*replayCommand) Help() string {
	return `Each message of the stream that the verifier has acknowledged is judged again, by this version and today's cards. What is missing is
written: its row, this verdict, its receipt, its dead letter. What is there stays as it is, and a dead letter stays one. An alert is
published for each verdict that is written, under the verdict's id. It may run while the pipeline works, and be broken off and run again.`
}

// Run replays, and tells how to go on where it is broken off.
func (c *replayCommand) Run(ctx context.Context, con *console) (err error) {
	at, err := c.endpoints(ctx)
	if err != nil {
		return err
	}
	log, err := obs.NewLogger(con.errs, obs.FormatText, "warn")
	if err != nil {
		return err
	}
	policies, err := messages.OpenPolicies(at.MessagePoliciesFile, log)
	if err != nil {
		return usageError{err}
	}
	common := run.Common{Tenant: c.Tenant, NATS: c.NATS}
	common.NATS.URL = at.NATSURL
	client, err := stream.Connect(ctx, common.Broker("plumbline replay", log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	rows, err := store.Open(ctx, store.Config{DSN: at.ServiceDSN, Tenant: c.Tenant, Stage: "replay"})
	if err != nil {
		return usageError{err}
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	replay := &verifier.Replay{
		Client: client, Store: rows, Policies: policies, Log: log, From: c.FromSequence, Since: c.From, To: c.ToSequence,
	}
	return c.replay(ctx, con, replay)
}

func (c *replayCommand) replay(ctx context.Context, con *console, replay *verifier.Replay) error {
	watch := newProgress(con.errs, "judged")
	replay.Progress = func(s *verifier.ReplaySummary) { watch.show(s.Messages) }
	summary, err := replay.Run(ctx)
	watch.clear()
	if err != nil && summary.Next > 0 {
		err = fmt.Errorf("%w\nGo on with: plumbline replay --from-sequence %d (what is there is not written again)", err, summary.Next)
	}
	if err == nil && summary.Messages == 0 {
		return fmt.Errorf("%w: the verifier has acknowledged nothing there (it is at sequence %d)", errNothing, summary.Through)
	}
	return errors.Join(err, c.print(con, &summary))
}

// endpoints are those of a running up, but for what the command line names.
func (c *replayCommand) endpoints(ctx context.Context) (*local.Endpoints, error) {
	at := new(local.Endpoints)
	if c.NATS.URL == "" || c.ClickHouseDSN == "" {
		var err error
		if at, err = c.find(ctx); err != nil {
			return nil, fmt.Errorf("%w; or name broker and database with --nats-url and --clickhouse-dsn", err)
		}
	}
	at.NATSURL = cmp.Or(c.NATS.URL, at.NATSURL)
	at.ServiceDSN = cmp.Or(c.ClickHouseDSN, at.ServiceDSN)
	at.MessagePoliciesFile = cmp.Or(c.MessagePoliciesFile, at.MessagePoliciesFile)
	return at, nil
}

func (c *replayCommand) print(con *console, s *verifier.ReplaySummary) error {
	if c.JSON {
		return writeJSON(con.out, s)
	}
	_, err := fmt.Fprintf(con.out, "judged   %d messages: %d unchanged, %d dead letters, %d removed by retention\n"+
		"written  %d rows, %d verdicts, %d receipts, %d dead letters; %d alerts published\n",
		s.Messages, s.Unchanged, s.DeadLetters, s.Expired, s.RowsWritten, s.VerdictsWritten, s.ReceiptsWritten, s.LettersWritten, s.Alerts)
	return err
}
