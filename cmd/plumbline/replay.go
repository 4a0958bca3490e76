package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

type replayCommand struct {
	machineFlags `embed:""`
	FromSequence uint64    `xor:"from" placeholder:"N" help:"First sequence of stream TRACES. Default: the first message in it."`
	From         time.Time `xor:"from" placeholder:"TIME" help:"Instead: messages that the broker received at this time (2026-11-20T08:00:00Z) or later."`
	ToSequence   uint64    `placeholder:"N" help:"Last sequence. Default: the last one that the verifier, or drift, has acknowledged."`
	Drift        bool      `help:"Run drift again instead: baselines, points, alerts, and alerts about loops."`
	Agent        string    `placeholder:"AGENT_ID" help:"With --drift: only this agent."`
	Tenant       string    `default:"default" help:"Tenant whose streams and rows are used."`
	JSON         bool      `help:"Print the summary as one JSON object."`

	NATS                config.NATS `embed:"" prefix:"nats-" group:"Your own broker instead of that of a running up"`
	ClickHouseDSN       string      `name:"clickhouse-dsn" placeholder:"DSN" help:"Database, with a user that may insert. Default: that of the running up."`
	MessagePoliciesFile string      `type:"path" placeholder:"FILE" help:"Policies that the verifier applies to traces. Default: those of the running up."`

	Verifier verifier.Rules `embed:"" group:"Settings of the verifier, if they differ from those of a running up"`
	Rules    drift.Rules    `embed:"" prefix:"drift-" group:"With --drift: settings of the drift service, if they differ from those of a running up"`
}

// Help returns the text below the usage.
func (*replayCommand) Help() string {
	return `Judges again each message of the stream that the verifier has acknowledged, with this version and the current cards, and writes the
rows, verdicts, receipts and dead letters that are missing. Stored results are not changed, and a dead letter stays a dead letter. For each
verdict that is written, an alert with the verdict's id is published. The command may run while the pipeline works, and may be interrupted
and run again.

With --drift, drift is computed again from the first message of the stream, with the settings of the drift service, and the results for the
selected messages are compared with the stored ones. If a stored point of an agent under a card differs (because settings or pins were
different then, or because somebody changed the point), nothing is written for that agent and card, the difference is reported, and the exit
code is 1. For the others, missing results are written, and missing alerts are published under their ids.

` + examples(
		"plumbline replay",
		"plumbline replay --from 2026-11-20T08:00:00Z",
		"plumbline replay --drift --agent did:web:buyer.example",
	)
}

// Run replays.
func (c *replayCommand) Run(ctx context.Context, con *console) (err error) {
	if c.Agent != "" && !c.Drift {
		return usagef("--agent needs --drift: only --drift can be limited to one agent")
	}
	at, err := c.servers(ctx, c.NATS.URL, c.ClickHouseDSN)
	if err != nil {
		return err
	}
	at.NATSURL = cmp.Or(c.NATS.URL, at.NATSURL)
	at.ServiceDSN = cmp.Or(c.ClickHouseDSN, at.ServiceDSN)
	at.MessagePoliciesFile = cmp.Or(c.MessagePoliciesFile, at.MessagePoliciesFile)
	log := con.logger()
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
		err = fmt.Errorf("%w\nContinue with: plumbline replay --from-sequence %d (stored results are not written again)", err, s.Next)
	}
	if err == nil && s.Messages == 0 {
		return fmt.Errorf("%w: the verifier has acknowledged nothing there (it is at sequence %d)", errNothing, s.Through)
	}
	return errors.Join(err, c.print(con, s, fmt.Sprintf("Judged again: %d messages. %d were complete, %d are dead letters, %d were removed by retention.\n",
		s.Messages, s.Unchanged, s.DeadLetters, s.Expired)+
		added(amount{s.RowsWritten, "rows"}, amount{s.VerdictsWritten, "verdicts"}, amount{s.ReceiptsWritten, "receipts"},
			amount{s.LettersWritten, "dead letters"}, amount{s.Alerts, "alerts (published)"})))
}

// drift runs drift again, and reports the differences.
func (c *replayCommand) drift(ctx context.Context, con *console, at *machine.Endpoints, replay *drift.Replay) error {
	replay.Rules = c.rules(at)
	if err := replay.Rules.Validate().Err(); err != nil {
		return err
	}
	watch := newProgress(con.errs, "measured")
	replay.Progress = watch.show
	s, err := replay.Run(ctx)
	watch.clear()
	if err != nil {
		return err
	}
	if s.Points == 0 {
		return fmt.Errorf("%w: drift has no points there", errNothing)
	}
	text := fmt.Sprintf("Computed again: %d points. %d agree with the stored ones. Agents and cards that differ: %d.\n",
		s.Points, s.Unchanged, len(s.Differing)) +
		added(amount{s.PointsWritten, "points"}, amount{s.AlertsWritten, "alerts"}, amount{s.BaselinesWritten, "baselines"},
			amount{s.LoopsWritten, "alerts about loops"})
	for i := range s.Differing {
		d := &s.Differing[i]
		text += fmt.Sprintf("DIFFERS  agent %q card %q from trace %q (sequence %d) on: %s\n", d.AgentID, d.CardID, d.TraceID, d.Sequence, d.What)
	}
	return found(c.print(con, s, text), len(s.Differing) == 0)
}

type amount struct {
	n    int
	what string
}

// added returns the line about what was missing and has been written.
func added(amounts ...amount) string {
	var parts []string
	for _, a := range amounts {
		if a.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", a.n, a.what))
		}
	}
	if parts == nil {
		return "Nothing was missing.\n"
	}
	return "Was missing and has been added: " + strings.Join(parts, ", ") + ".\n"
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
	if rules.Comparison == published.Comparison {
		rules.Comparison = cmp.Or(at.DriftComparison, published.Comparison)
	}
	if at.DriftMode != "" && rules.Mode == published.Mode {
		rules.Mode = at.DriftMode
	}
	if rules.Mode == string(aapdrift.ModePinned) && rules.Pins == "" && at.DataDir != "" {
		rules.Pins = machine.DriftPins(at.DataDir)
	}
	return rules
}

// print writes the summary as JSON, or as the given text.
func (c *replayCommand) print(con *console, summary any, text string) error {
	if c.JSON {
		return writeJSON(con.out, summary)
	}
	_, err := io.WriteString(con.out, text)
	return err
}
