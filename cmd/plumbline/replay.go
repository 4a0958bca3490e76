package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

type replayCommand struct {
	machineFlags `embed:""`
	FromSequence uint64    `xor:"from" placeholder:"N" help:"First sequence of stream TRACES; default: the first message that it holds."`
	From         time.Time `xor:"from" placeholder:"TIME" help:"Instead: what the broker received at this time (2026-11-20T08:00:00Z) or later."`
	ToSequence   uint64    `placeholder:"N" help:"Last sequence; default: as far as the verifier, or drift, has acknowledged."`
	Drift        bool      `help:"Run drift again instead: baselines, points and alerts."`
	Agent        string    `placeholder:"AGENT_ID" help:"With --drift: of this agent alone."`
	Tenant       string    `default:"default" help:"Whose streams and rows."`
	JSON         bool      `help:"Print the summary as one JSON object."`

	NATS                config.NATS `embed:"" prefix:"nats-" group:"A broker of your own instead of that of a running up"`
	ClickHouseDSN       string      `name:"clickhouse-dsn" placeholder:"DSN" help:"This database instead of that of a running up, as a user who may insert."`
	MessagePoliciesFile string      `type:"path" placeholder:"FILE" help:"The policies that the verifier holds traces to; default: those of the running up."`

	Verifier verifier.Rules `embed:"" group:"The settings of the verifier, where they are not those of a running up"`
	Rules    drift.Rules    `embed:"" prefix:"drift-" group:"With --drift: the settings of the drift service, where they are not those of a running up"`
}

// Help returns the text below the usage.
func (*replayCommand) Help() string {
	return `Each message of the stream that the verifier has acknowledged is judged again, by this version and today's cards. What is missing is
written: its row, this verdict, its receipt, its dead letter. What is there stays as it is, and a dead letter stays one. An alert is
published for each verdict that is written, under the verdict's id. It may run while the pipeline works, and be broken off and run again.

With --drift the stream is folded again from its first message on, by the settings of the drift service, and what comes of the messages named
is compared with what is stored. Of an agent under a card where a stored point is another than the one found, nothing is written: that
is told, and the exit code is 1. It is so where settings or pins were others then, or somebody changed a point. What is missing of the
others is written, alerts under their ids, and published.`
}

// Run replays.
func (c *replayCommand) Run(ctx context.Context, con *console) (err error) {
	if c.Agent != "" && !c.Drift {
		return usagef("--agent: only --drift can be of one agent")
	}
	at, err := c.endpoints(ctx)
	if err != nil {
		return err
	}
	log, err := obs.NewLogger(con.errs, obs.FormatText, "warn")
	if err != nil {
		return err
	}
	common := config.Common{Tenant: c.Tenant, NATS: c.NATS}
	common.NATS.URL = at.NATSURL
	client, err := stream.Connect(ctx, service.StreamConfig(&common, "plumbline replay", log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	rows, err := store.Open(ctx, store.Config{DSN: at.ServiceDSN, Tenant: c.Tenant, Stage: "replay"})
	if err != nil {
		return usageError{err}
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if c.Drift {
		return c.drift(ctx, con, at, &drift.Replay{
			Client: client, Store: rows, Log: log, Agent: c.Agent, From: c.FromSequence, Since: c.From, To: c.ToSequence,
		})
	}
	return c.judge(ctx, con, at, &verifier.Replay{
		Client: client, Store: rows, Rules: c.Verifier, Log: log, From: c.FromSequence, Since: c.From, To: c.ToSequence,
	})
}

// judge judges again. If it is interrupted, it reports how to continue.
func (c *replayCommand) judge(ctx context.Context, con *console, at *machine.Endpoints, replay *verifier.Replay) (err error) {
	if replay.Rules == verifier.DefaultRules() {
		replay.Rules = thresholds(at).Verifier()
	}
	if err := replay.Rules.Validate().Err(); err != nil {
		return err
	}
	if replay.Policies, err = messages.OpenPolicies(at.MessagePoliciesFile, false, replay.Log); err != nil {
		return usageError{err}
	}
	watch := newProgress(con.errs, "judged")
	replay.Progress = func(s *verifier.ReplaySummary) { watch.show(s.Messages) }
	s, err := replay.Run(ctx)
	watch.clear()
	if err != nil && s.Next > 0 {
		err = fmt.Errorf("%w\nGo on with: plumbline replay --from-sequence %d (what is there is not written again)", err, s.Next)
	}
	if err == nil && s.Messages == 0 {
		return fmt.Errorf("%w: the verifier has acknowledged nothing there (it is at sequence %d)", errNothing, s.Through)
	}
	return errors.Join(err, c.print(con, s, fmt.Sprintf("judged   %d messages: %d unchanged, %d dead letters, %d removed by retention\n"+
		"written  %d rows, %d verdicts, %d receipts, %d dead letters; %d alerts published\n",
		s.Messages, s.Unchanged, s.DeadLetters, s.Expired, s.RowsWritten, s.VerdictsWritten, s.ReceiptsWritten, s.LettersWritten, s.Alerts)))
}

// drift runs drift again, and reports the differences.
func (c *replayCommand) drift(ctx context.Context, con *console, at *machine.Endpoints, replay *drift.Replay) error {
	replay.Rules = c.rules(at)
	if err := replay.Rules.Validate().Err(); err != nil {
		return err
	}
	watch := newProgress(con.errs, "folded")
	replay.Progress = watch.show
	s, err := replay.Run(ctx)
	watch.clear()
	if err != nil {
		return err
	}
	if s.Points == 0 {
		return fmt.Errorf("%w: drift has found nothing there", errNothing)
	}
	text := fmt.Sprintf("found    %d points: %d unchanged; %d agents under their cards differ\n"+
		"written  %d points, %d alerts, %d baselines\n",
		s.Points, s.Unchanged, len(s.Differing), s.PointsWritten, s.AlertsWritten, s.BaselinesWritten)
	for i := range s.Differing {
		d := &s.Differing[i]
		text += fmt.Sprintf("DIFFERS  agent %q card %q from trace %q sequence %d on: %s\n", d.AgentID, d.CardID, d.TraceID, d.Sequence, d.What)
	}
	if err := c.print(con, s, text); err != nil {
		return err
	}
	if len(s.Differing) > 0 {
		return errFoundBad
	}
	return nil
}

// thresholds returns those of a running up.
func thresholds(at *machine.Endpoints) machine.Thresholds {
	return cmp.Or(at.Thresholds, machine.PublishedThresholds())
}

// rules returns those of the command line, or those of a running up if it has none.
func (c *replayCommand) rules(at *machine.Endpoints) drift.Rules {
	rules, published := c.Rules, drift.DefaultRules()
	if rules.SimilarityThreshold == published.SimilarityThreshold && rules.Sustained == published.Sustained {
		rules = thresholds(at).Drift(rules)
	}
	if at.DriftMode != "" && rules.Mode == published.Mode {
		rules.Mode = at.DriftMode
	}
	if rules.Mode == string(aapdrift.ModePinned) && rules.Pins == "" && at.DataDir != "" {
		rules.Pins = machine.DriftPins(at.DataDir)
	}
	return rules
}

// endpoints returns the endpoints of a running up, overridden by the command line.
func (c *replayCommand) endpoints(ctx context.Context) (*machine.Endpoints, error) {
	at := new(machine.Endpoints)
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

// print writes the summary as JSON, or as the given text.
func (c *replayCommand) print(con *console, summary any, text string) error {
	if c.JSON {
		return writeJSON(con.out, summary)
	}
	_, err := io.WriteString(con.out, text)
	return err
}
