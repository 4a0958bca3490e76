package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/aap/drift/inject"
	"github.com/plumbline/plumbline/aap/drift/trial"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/schema"
)

type driftEvalCommand struct {
	Paths     []string `arg:"" name:"path" help:"Files of recorded traces, one JSON object a line, gzipped or not; or directories with files traces*.jsonl and cards*.jsonl."`
	Cards     []string `placeholder:"FILE" help:"Files with the agents' cards (JSON objects, gzipped or not), beside those of the directories."`
	Rule      string   `enum:"published,default,both" default:"both" help:"The detector: published is the rule of AAP section 8.2, default that of the service (${enum})."`
	Ends      string   `enum:"last,marked" default:"last" help:"Where a session ends: last takes its last trace as an end mark, marked only traces that have one (${enum})."`
	Orders    int      `default:"40" help:"Number of permuted orders beside the recorded one: whole sessions exchange their starting times."`
	Split     string   `enum:"tune,aside,all" default:"all" help:"The half of the agents to try, by the SHA-256 of their names (${enum})."`
	MinTraces int      `default:"250" help:"Leave out agents with fewer traces."`
	Seed      uint64   `default:"1" help:"Another seed gives other permutations and alters other traces."`
	JSON      bool     `help:"Print one JSON object."`
	SVG       string   `name:"svg" placeholder:"FILE" help:"Also draw the share of changes found over the delay, as SVG."`
}

// Help returns the examples.
func (*driftEvalCommand) Help() string {
	return "It runs drift detectors over recorded traces, puts changes into them at a known place, and shows false alarms, " +
		"the share of changes found, and after how many traces. docs/DRIFT.md describes it.\n\n" + examples(
		"plumbline drift eval recordings/ --svg found.svg",
		"plumbline drift eval traces.jsonl.gz --cards cards.jsonl --orders 10 --min-traces 100",
		"plumbline drift eval recordings/ --split aside --json | jq .results",
	)
}

// Run reads the recordings and tries the rules on them.
func (c *driftEvalCommand) Run(ctx context.Context, con *console) error {
	switch {
	case c.Orders < 0:
		return usagef("--orders %d: want 0 or more", c.Orders)
	case c.MinTraces < 1:
		return usagef("--min-traces %d: want 1 or more", c.MinTraces)
	case slices.Contains(c.Paths, "-") && slices.Contains(c.Cards, "-"):
		return usagef("standard input cannot be both the traces and the cards: name a file for one of them")
	}
	recordings, repeated, err := c.recordings(ctx, con)
	if err != nil {
		return err
	}
	watch, mu, done := newProgress(con.errs, "orders tried"), sync.Mutex{}, 0
	options := trial.Options{
		Rules: c.rules(), Changes: inject.Library(), Orders: c.Orders, Seed: c.Seed, Split: trial.Half(c.Split), LeastTraces: c.MinTraces, MarkEnds: c.Ends == "last",
		Progress: func() {
			mu.Lock()
			defer mu.Unlock()
			done++
			watch.show(done)
		},
	}
	report, err := trial.Run(ctx, recordings, options)
	watch.clear()
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	if repeated > 0 {
		fmt.Fprintf(con.errs, "%d lines repeat a trace_id of their agent and are not used\n", repeated)
	}
	if err := c.judgesAny(report); err != nil {
		return err
	}
	if c.SVG != "" {
		if err := durable.WriteFile(c.SVG, foundChart(report).svg(), 0o644); err != nil {
			return fmt.Errorf("write the drawing: %w", err)
		}
	}
	if c.JSON {
		return writeJSON(con.out, report)
	}
	return writeTrial(con.out, report)
}

// rules returns the detectors to try.
func (c *driftEvalCommand) rules() (rules []trial.Rule) {
	if c.Rule != "default" {
		rules = append(rules, trial.Published())
	}
	if c.Rule != "published" {
		rules = append(rules, trial.Default())
	}
	return rules
}

// judgesAny returns an error that lists why each recording is left out, if all are.
func (c *driftEvalCommand) judgesAny(report *trial.Report) error {
	var why []string
	for _, s := range report.Series {
		if s.LeftOut == "" {
			return nil
		}
		why = append(why, fmt.Sprintf("\n%s: %s", printable(s.AgentID), s.LeftOut))
	}
	return fmt.Errorf("%w: every recording is left out; --min-traces and --split say which are tried:%s", errNothing, strings.Join(why, ""))
}

// recordings reads the traces of each agent under each card, in order of time. repeated counts the
// lines with a trace_id that the agent had before.
func (c *driftEvalCommand) recordings(ctx context.Context, con *console) (all []inject.Recording, repeated int, err error) {
	traces, cardFiles, err := recordedFiles(c.Paths, c.Cards)
	if err != nil {
		return nil, 0, err
	}
	cards := map[string]*schema.Card{}
	for _, file := range cardFiles {
		compiled, err := readCards(ctx, file, con.in)
		if err != nil {
			return nil, 0, err
		}
		for id, card := range compiled {
			cards[id] = card.Card
		}
	}
	places, seen := map[[2]string]int{}, map[[2]string]bool{}
	for _, file := range traces {
		err := eachRecorded(ctx, file, con.in, func(number int, t *schema.Trace) error {
			card := cards[t.CardID]
			if card == nil {
				return fmt.Errorf("%w: %s:%d: no card %q is given, which trace %q names: add its file with --cards",
					errNothing, nameOf(file), number, schema.Clip(t.CardID, schema.MaxIDBytes), schema.Clip(t.TraceID, schema.MaxIDBytes))
			}
			id := [2]string{t.AgentID, t.TraceID}
			if seen[id] {
				repeated++
				return nil
			}
			seen[id] = true
			series := [2]string{t.AgentID, t.CardID}
			at, known := places[series]
			if !known {
				at = len(all)
				places[series] = at
				all = append(all, inject.Recording{Card: card})
			}
			all[at].Traces = append(all[at].Traces, t)
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	if len(all) == 0 {
		return nil, 0, fmt.Errorf("%w: there is no trace in %s", errNothing, strings.Join(traces, ", "))
	}
	for i := range all {
		slices.SortStableFunc(all[i].Traces, func(a, b *schema.Trace) int { return a.Timestamp.Compare(b.Timestamp) })
	}
	return all, repeated, nil
}

// recordedFiles returns the files of traces and of cards. A directory has both.
func recordedFiles(paths, cards []string) (traces, allCards []string, err error) {
	allCards = slices.Clone(cards)
	for _, path := range paths {
		switch info, err := os.Stat(path); {
		case path != "-" && err != nil: // before cards are missed that the directory would have
			return nil, nil, fmt.Errorf("%w: %w", errNothing, err)
		case path == "-" || !info.IsDir():
			traces = append(traces, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errNothing, err)
		}
		before := len(traces)
		for _, entry := range entries {
			name := entry.Name()
			switch lines := strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".jsonl"); {
			case lines && strings.HasPrefix(name, "traces"):
				traces = append(traces, filepath.Join(path, name))
			case lines && strings.HasPrefix(name, "cards"):
				allCards = append(allCards, filepath.Join(path, name))
			}
		}
		if len(traces) == before {
			return nil, nil, fmt.Errorf("%w: %s has no file traces*.jsonl or traces*.jsonl.gz: name the files of traces instead", errNothing, path)
		}
	}
	if len(allCards) == 0 {
		return nil, nil, fmt.Errorf("%w: there are no cards: give the file of the agents' cards with --cards", errNothing)
	}
	return traces, allCards, nil
}

// eachRecorded calls f with each trace of a file. A trace that ingest would refuse is an error.
func eachRecorded(ctx context.Context, file string, stdin io.Reader, f func(number int, t *schema.Trace) error) error {
	in, err := openInput(ctx, file, stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	err = eachTrace(in, func(number int, raw []byte) error {
		t, err := schema.Admit("", raw)
		if err != nil {
			return fmt.Errorf("%s:%d: %w\nSee all faults with: plumbline trace lint %s", nameOf(file), number, err, file)
		}
		return f(number, t)
	})
	if err != nil && !errors.Is(err, errNothing) {
		return fmt.Errorf("read traces: %w", err)
	}
	return err
}

// writeTrial prints the report as tables.
func writeTrial(w io.Writer, r *trial.Report) error {
	found := fmt.Sprintf("Changes found, in the recorded and in %d permuted orders: found/tried (median delay in traces)", r.Orders)
	ends := "Sessions end where a trace says so, or when they are idle for 30 minutes."
	if r.Marked {
		ends = "The last trace of each session counts as its end mark."
	}
	_, err := fmt.Fprintf(w, "%s\n\n", ends)
	return errors.Join(err,
		section(w, "Recordings: false alarms in the recorded order, and per 10,000 traces in permuted ones", recordedRows(r)),
		section(w, "False alarms: no trace is changed", alarmRows(r)),
		section(w, found, foundRows(r)))
}

func recordedRows(r *trial.Report) [][]any {
	head := []any{"agent", "half", "traces", "sessions"}
	for _, a := range r.Series[0].Alarms {
		head = append(head, a.Rule)
	}
	rows := [][]any{head}
	for _, s := range r.Series {
		row := []any{s.AgentID, string(s.Half), s.Traces, s.Sessions}
		for _, a := range s.Alarms {
			cell := fmt.Sprintf("%d, %s", a.Natural.Alarms, rateText(a.Permuted))
			switch {
			case s.LeftOut != "":
				cell = "left out: " + s.LeftOut
			case a.Natural.Traces == 0: // all belong to the baseline
				cell = "judges none"
			}
			if row = append(row, cell); s.LeftOut != "" {
				break
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func alarmRows(r *trial.Report) [][]any {
	rows := [][]any{{"half", "rule", "agents", "recorded order", "permuted orders", "per 10,000"}}
	for i := range r.Results {
		result := &r.Results[i]
		rows = append(rows, []any{string(result.Half), result.Rule, result.Agents,
			fmt.Sprintf("%d of %d", result.Natural.Alarms, result.Natural.Traces),
			fmt.Sprintf("%d of %d", result.Permuted.Alarms, result.Permuted.Traces),
			rateText(result.Permuted)})
	}
	return rows
}

// rateText returns the alarms per 10,000 traces; "-" without traces.
func rateText(r trial.Rate) string {
	if r.Traces == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", r.PerTenThousand())
}

// foundRows returns a row for each change, with a column for each half and rule.
func foundRows(r *trial.Report) [][]any {
	columns := slices.DeleteFunc(slices.Clone(r.Results), func(result trial.Result) bool { // the sum of two halves
		return result.Half == trial.All
	})
	head := []any{"change", "family"}
	all := []any{"all but text, confidence, agent", ""}
	wide := []any{"… that alter 5 % of the traces, and 10", ""}
	for i := range columns {
		head = append(head, fmt.Sprintf("%s, %s", columns[i].Half, columns[i].Rule))
		required := &columns[i].Required
		all = append(all, shareText(required.All)+delayText(required))
		wide = append(wide, shareText(required.Wide))
	}
	rows := [][]any{head}
	for c := range columns[0].Changes {
		row := []any{columns[0].Changes[c].Name, string(columns[0].Changes[c].Family)}
		for i := range columns {
			row = append(row, foundText(&columns[i].Changes[c].Found))
		}
		rows = append(rows, row)
	}
	return append(rows, all, wide)
}

func foundText(f *trial.Found) string {
	if f.All.Tried == 0 {
		return "not tried"
	}
	return fmt.Sprintf("%d/%d", f.All.Found, f.All.Tried) + delayText(f)
}

// delayText returns the median delay; "-" where nothing is found, and nothing where nothing is tried.
func delayText(f *trial.Found) string {
	switch {
	case f.All.Tried == 0:
		return ""
	case f.Median == nil:
		return " (-)"
	}
	return fmt.Sprintf(" (%d)", *f.Median)
}

func shareText(s trial.Share) string {
	if s.Tried == 0 {
		return "not tried"
	}
	return fmt.Sprintf("%.1f %% of %d", s.Percent(), s.Tried)
}

// The drawing of drift eval: its range of delays, the share that the project asks for, and the delay.
const (
	chartTraces  = 200
	wantedShare  = 95
	wantedTraces = 40
)

// foundChart draws which share of the changes of the required families was found within how many traces:
// a color for each rule, dashes for the agents kept aside.
func foundChart(r *trial.Report) *chart {
	c := &chart{
		title:      "Changes found, by the number of traces after the change",
		x:          chartAxis{"traces after the change", 0, chartTraces},
		y:          chartAxis{"% of the changes of actions, values, escalations, denials, cost and errors", 0, 100},
		thresholds: []chartThreshold{{fmt.Sprintf("%d %%", wantedShare), wantedShare}},
		marks:      []chartMark{{name: fmt.Sprintf("%d traces", wantedTraces), x: wantedTraces}},
	}
	color := map[string]int{}
	for i := range r.Results {
		result := &r.Results[i]
		if _, known := color[result.Rule]; !known {
			color[result.Rule] = len(color)
		}
		if result.Half == trial.All || result.Required.All.Tried == 0 { // the sum of the two others; a half without agents
			continue
		}
		line := chartLine{name: fmt.Sprintf("%s, %s", result.Rule, result.Half), color: color[result.Rule], dashed: result.Half == trial.Aside}
		for traces := range chartTraces + 1 {
			line.points = append(line.points, chartPoint{float64(traces), result.Required.Within(traces)})
		}
		c.lines = append(c.lines, line)
	}
	return c
}
