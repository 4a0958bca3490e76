package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// questions are what people ask, by the names under which Rows reports their times.
var questions = []struct{ name, query string }{
	{"traces by agent", "SELECT agent_id, count() FROM traces GROUP BY agent_id"},
	{"visible_traces by agent", "SELECT agent_id, count() FROM visible_traces GROUP BY agent_id"},
	{"current_verdicts by verified", "SELECT verified, count() FROM current_verdicts GROUP BY verified"},
	{"violations by agent", "SELECT agent_id, count() FROM violations GROUP BY agent_id"},
	{"problems, newest 20", "SELECT time, agent_id, type, message FROM problems ORDER BY time DESC LIMIT 20"},
	{"problems of a day", "SELECT time, agent_id, type, message FROM problems WHERE received_at >= now() - INTERVAL 1 DAY ORDER BY time LIMIT 100"},
	{"session_summary, newest 100", "SELECT * FROM session_summary ORDER BY last_event DESC LIMIT 100"},
	{"agents_now", "SELECT * FROM agents_now"},
	{"agents_daily of a week", "SELECT * FROM agents_daily WHERE day >= today() - 7"},
	{"problems_daily of a week", "SELECT * FROM problems_daily WHERE day >= today() - 7"},
}

// Bounds of the scenario Rows.
const (
	copiedTraces = 50_000           // pass through all stages, and are copied then
	copiesAtOnce = 10               // in one INSERT
	askedTimes   = 3                // the middle time counts
	answerWithin = time.Second      // what Held demands of each question
	settleWithin = 10 * time.Minute // merges of the copies
)

// Rows stores many rows first: the rows of some traces that passed through all stages, and copies of them that are an hour, two
// hours and so on older. Then it asks questions, and measures how fast the verifier works through a backlog beside these rows.
func Rows(ctx context.Context, cfg Config) (*Result, error) {
	stored := newLoad(fleet.Config{Agents: cfg.Agents, Traces: min(copiedTraces, (cfg.Rows+1)/2)}, time.Now().Add(-time.Hour)) // another start: other ids
	copies := (cfg.Rows - 1) / len(stored.records)
	backlog := cfg.newLoad()
	return rounds(ctx, "rows", &cfg, backlog, func(ctx context.Context, cfg *Config, l *load, _ int) (run, beside *measured, err error) {
		if beside, err = besideFloor(ctx, cfg, l); err != nil {
			return nil, nil, err
		}
		s, err := open(ctx, cfg)
		defer func() { err = errors.Join(err, s.close()) }()
		if err == nil {
			err = s.store(ctx, stored, copies)
		}
		var asked []time.Duration
		if err == nil {
			asked, err = s.ask(ctx)
		}
		if err == nil {
			err = s.register(ctx, l)
		}
		if err == nil {
			err = s.publish(ctx, l)
		}
		if err == nil {
			err = s.begin()
		}
		if err == nil {
			_, err = s.start(ctx, machine.Verifier)
		}
		if err != nil {
			return nil, nil, err
		}
		if run, err = s.stop(ctx, l, s.acknowledged(stream.VerifierConsumer), closely); err != nil {
			return nil, nil, err
		}
		run.asked, run.row = figures{}, figures{}
		for i, took := range asked {
			run.asked[questions[i].name] = took.Seconds() * 1000
		}
		run.late, run.answered = slices.Max(asked) > answerWithin, asked
		if err := s.sizes(ctx, run.row); err != nil {
			return nil, nil, err
		}
		n, err := s.count(ctx, "SELECT count() FROM traces")
		return run, beside, errors.Join(err, expect("traces", n, (1+copies)*len(stored.records)+len(l.records)))
	})
}

// store fills the tables: the rows of a load, and copies of them.
func (s *site) store(ctx context.Context, l *load, copies int) error {
	err := s.register(ctx, l)
	if err == nil {
		err = s.publish(ctx, l)
	}
	if err == nil {
		err = s.startEngine(ctx)
	}
	if err == nil {
		err = s.startAll(ctx, []string{machine.Verifier, machine.Drift, machine.Exporter})
	}
	if err == nil {
		err = s.await(ctx, leisurely, s.counted(querySealed, len(l.records)))
	}
	if err == nil {
		err = s.await(ctx, leisurely, s.counted(queryWatched, len(l.records)))
	}
	if err != nil {
		return err
	}
	for _, p := range s.stages {
		if err := p.Stop(ctx); err != nil {
			return err
		}
	}
	s.stages = nil
	if err := s.copyAll(ctx, copies, len(l.records)); err != nil {
		return err
	}
	s.cfg.Progress("waiting for merges")
	settled, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	err = s.await(settled, time.Second, func(ctx context.Context) (bool, error) {
		n, err := s.count(ctx, "SELECT count() FROM system.merges")
		return n == 0, err
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil // the questions are asked while merges go on
	}
	return err
}

// copyAll stores copies of the rows of some traces. Copy n is n hours older, and its ids end with n.
func (s *site) copyAll(ctx context.Context, copies, traces int) (err error) {
	db, err := database.Open(database.Config{DSN: s.engine.AdminDSN(), Stage: "bench"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tables := []string{"traces", "verdicts", "drift_points", "sessions", "session_verdicts", "bundles"}
	statements := map[string]string{}
	for _, table := range tables {
		if statements[table], err = s.copying(ctx, table, traces); err != nil {
			return err
		}
		if err := db.Exec(ctx, "CREATE TABLE original_"+table+" ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM "+table); err != nil {
			return err
		}
	}
	for from := 1; from <= copies; from += copiesAtOnce {
		to := min(from+copiesAtOnce-1, copies)
		s.cfg.Progress(fmt.Sprintf("storing copies %d to %d of %d", from, to, copies))
		for _, table := range tables {
			if err := db.Exec(ctx, fmt.Sprintf(statements[table], from, to+1)); err != nil {
				return fmt.Errorf("copy the rows of table %s: %w", table, err)
			}
		}
	}
	for _, table := range tables {
		if err := db.Exec(ctx, "DROP TABLE original_"+table); err != nil {
			return err
		}
	}
	return nil
}

// copying returns the statement that inserts a range of copies of the original rows of a table.
func (s *site) copying(ctx context.Context, table string, traces int) (string, error) {
	result, err := s.rows.Query(ctx, "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = '"+table+
		"' AND default_kind NOT IN ('ALIAS', 'MATERIALIZED') ORDER BY position")
	if err != nil {
		return "", err
	}
	var names, values []string
	for row, err := range result.Rows {
		if err != nil {
			return "", err
		}
		name, _ := row[0].(string)
		kind, _ := row[1].(string)
		names, values = append(names, "`"+name+"`"), append(values, copied(name, kind, traces))
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" FROM original_" + table + " ARRAY JOIN range(%d, %d) AS copy", nil
}

// copied returns the expression for a column of a copy.
func copied(name, kind string, traces int) string {
	switch {
	case name == "trace_id" || name == "session_id" || name == "path":
		return "concat(" + name + ", '-copy', toString(copy))"
	case name == "trace_ids" || name == "prior_trace_ids":
		return "arrayMap(id -> concat(id, '-copy', toString(copy)), " + name + ")"
	case name == "digest" || name == "trace_digest" || name == "sha256":
		return "SHA256(concat(" + name + ", toString(copy)))"
	case name == "event_hour":
		return "toUInt32(event_hour - copy)"
	case strings.HasSuffix(name, "_sequence"):
		return fmt.Sprintf("toUInt64(%s + copy * %d)", name, traces)
	case name != "stream_created" && strings.HasPrefix(kind, "DateTime64"):
		return "`" + name + "` - toIntervalHour(copy)"
	}
	return "`" + name + "`"
}

// ask asks every question some times, as people do, and returns the middle time of each.
func (s *site) ask(ctx context.Context) (asked []time.Duration, err error) {
	db, err := database.Open(database.Config{DSN: s.engine.ReaderDSN(), Stage: "bench"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, q := range questions {
		var times []time.Duration
		for range askedTimes {
			began := time.Now()
			rows, err := db.Query(ctx, q.query)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", q.name, err)
			}
			for rows.Next() {
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				return nil, fmt.Errorf("%s: %w", q.name, err)
			}
			times = append(times, time.Since(began))
		}
		slices.Sort(times)
		asked = append(asked, times[len(times)/2])
		s.cfg.Progress(fmt.Sprintf("%s: %.0f ms", q.name, times[len(times)/2].Seconds()*1000))
	}
	return asked, nil
}

// sizes adds the size on disk of a row of each table.
func (s *site) sizes(ctx context.Context, to figures) error {
	result, err := s.rows.Query(ctx, "SELECT table, sum(bytes_on_disk) / sum(rows) FROM system.parts WHERE active AND database = currentDatabase() GROUP BY table HAVING sum(rows) > 0")
	if err != nil {
		return err
	}
	for row, err := range result.Rows {
		if err != nil {
			return err
		}
		name, isText := row[0].(string)
		size, isNumber := row[1].(float64)
		if !isText || !isNumber {
			return fmt.Errorf("sizes of tables: the database answers %v", row)
		}
		to[name] = size
	}
	return nil
}
