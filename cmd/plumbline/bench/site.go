package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/broker"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// site is an installation on an empty directory: broker, database and stages are processes of their own.
type site struct {
	cfg    *Config
	root   string // contains dir alone
	dir    string
	broker *broker.Broker
	client *stream.Client
	engine *engine.Engine // nil before startEngine
	data   string         // of the engine
	rows   *store.Store   // as the administrator
	stages []*stage

	began  time.Time
	before map[string]usage // of the processes that ran when the clock began
}

// open starts a broker, and creates its streams.
func open(ctx context.Context, cfg *Config) (s *site, err error) {
	s = &site{cfg: cfg}
	if s.root, err = os.MkdirTemp("", "plumbline-bench-"); err == nil {
		keepApart(s.root)
		s.dir, err = os.MkdirTemp(s.root, "site-")
	}
	if err != nil {
		return s, fmt.Errorf("make a directory for the data, below TMPDIR: %w", err)
	}
	if s.broker, err = broker.Start(ctx, broker.Config{DataDir: filepath.Join(s.dir, "broker"), Logger: cfg.Log}); err != nil {
		return s, err
	}
	s.client, err = stream.Connect(ctx, stream.Config{URL: s.broker.URL(), MonitorURL: s.broker.MonitorURL(), Name: "bench", Logger: cfg.Log})
	if err != nil {
		return s, err
	}
	return s, s.client.EnsureTopology(ctx)
}

// openFor opens a site with a database, and registers the cards of a load.
func openFor(ctx context.Context, cfg *Config, l *load) (*site, error) {
	s, err := open(ctx, cfg)
	if err == nil {
		err = s.register(ctx, l)
	}
	if err == nil {
		err = s.startEngine(ctx)
	}
	return s, err
}

// startEngine starts a database with the tables, without rows.
func (s *site) startEngine(ctx context.Context) (err error) {
	if s.data, err = os.MkdirTemp(s.dir, "engine-"); err != nil {
		return err
	}
	if s.engine, err = engine.Start(ctx, engine.Config{DataDir: s.data, Logger: s.cfg.Log}); err != nil {
		return err
	}
	if err := database.Migrate(ctx, s.engine.AdminDSN()); err != nil {
		return err
	}
	s.rows, err = store.Open(ctx, store.Config{DSN: s.engine.AdminDSN(), Stage: "bench"})
	return err
}

// stopEngine ends the stages and the database. The broker keeps what it has. The rows stay on the disk until close:
// what is removed before a clock starts is paid for while it runs (keepApart).
func (s *site) stopEngine() error {
	var faults []error
	for _, p := range s.stages {
		faults = append(faults, p.Stop(context.Background()))
	}
	s.stages = nil
	if s.rows != nil {
		faults = append(faults, s.rows.Close())
	}
	if s.engine != nil {
		faults = append(faults, s.engine.Stop(context.Background()))
	}
	s.rows, s.engine = nil, nil
	return errors.Join(faults...)
}

// close stops everything and removes its data.
func (s *site) close() error {
	faults := []error{s.stopEngine()}
	if s.client != nil {
		faults = append(faults, s.client.Close())
	}
	if s.broker != nil {
		faults = append(faults, s.broker.Stop(context.Background()))
	}
	return errors.Join(append(faults, os.RemoveAll(s.root))...)
}

// stage returns the process with a name; nil if there is none.
func (s *site) stage(name string) *stage {
	for _, p := range s.stages {
		if p.name == name {
			return p
		}
	}
	return nil
}

// startAll starts stages and returns when they are ready.
func (s *site) startAll(ctx context.Context, names []string) error {
	for _, name := range names {
		for range s.cfg.instances(name) {
			if _, err := s.start(ctx, name); err != nil {
				return err
			}
		}
	}
	return s.await(ctx, 10*time.Millisecond, func(ctx context.Context) (bool, error) {
		for _, p := range s.stages {
			if ready, err := p.ready(ctx); err != nil || !ready {
				return false, err
			}
		}
		return true, nil
	})
}

// ready reports whether the stage says that it is ready. While it does not listen yet it is not.
func (p *stage) ready(ctx context.Context) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/readyz", nil)
	if err != nil {
		return false, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, nil
	}
	return answer.StatusCode == http.StatusOK, answer.Body.Close()
}

// await polls until done, and fails if a stage ends by itself.
func (s *site) await(ctx context.Context, every time.Duration, done func(context.Context) (bool, error)) error {
	return machine.Poll(ctx, every, func(ctx context.Context) (bool, error) {
		for _, p := range s.stages {
			if err := p.fault(); err != nil {
				return false, err
			}
		}
		return done(ctx)
	})
}

// register writes cards into the bucket as a registry does, many at a time.
func (s *site) register(ctx context.Context, l *load) error {
	bucket, err := s.client.Bucket(ctx, stream.Cards)
	if err != nil {
		return err
	}
	const together = 1000
	writes := make([]stream.Write, 0, together)
	for card := range l.registered() {
		if writes = append(writes, card); len(writes) < together {
			continue
		}
		if _, err := bucket.WriteAll(ctx, writes); err != nil {
			return err
		}
		writes = writes[:0]
	}
	if len(writes) == 0 {
		return nil
	}
	_, err = bucket.WriteAll(ctx, writes)
	return err
}

// publish publishes a load on the broker, in atomic batches, in parts that do not need much memory.
func (s *site) publish(ctx context.Context, l *load) error {
	committer := s.client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	const together = 20_000
	for from := 0; from < len(l.records); from += together {
		if _, err := committer.Publish(ctx, l.records[from:min(from+together, len(l.records))]); err != nil {
			return err
		}
	}
	return nil
}

// processes returns the ids of the processes that run.
func (s *site) processes() map[string]int {
	pids := map[string]int{"broker": s.broker.Pid()}
	if s.engine != nil {
		pids["engine"] = s.engine.Pid()
	}
	for _, p := range s.stages {
		pids[p.name] = p.Pid()
	}
	return pids
}

// begin starts the clock, and the count of what the processes use.
func (s *site) begin() error {
	s.before = map[string]usage{}
	for name, pid := range s.processes() {
		if err := resetPeak(pid); err != nil {
			return err
		}
		u, err := usageOf(pid)
		if err != nil {
			return err
		}
		s.before[name] = u
	}
	s.began = time.Now()
	return nil
}

// used returns what each process has used since begin, or since its own start.
func (s *site) used() (map[string]usage, error) {
	all := map[string]usage{}
	for name, pid := range s.processes() {
		u, err := usageOf(pid)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		before := s.before[name]
		u.cpu, u.written = u.cpu-before.cpu, u.written-before.written
		all[name] = u
	}
	return all, nil
}

// warnings returns what the stages logged: a run without faults logs nothing.
func (s *site) warnings() (all []string) {
	for _, p := range s.stages {
		for _, line := range logged(p.output) {
			all = append(all, p.name+": "+line)
		}
	}
	return all
}

// stored returns the size of the files of broker, database and bundles.
func (s *site) stored() (map[string]int64, error) {
	sizes := map[string]int64{}
	for name, dir := range map[string]string{"broker": filepath.Join(s.dir, "broker"), "engine": s.data, "bundles": filepath.Join(s.dir, "bundles")} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				var info fs.FileInfo
				if info, err = entry.Info(); err == nil {
					sizes[name] += info.Size()
				}
			}
			if errors.Is(err, fs.ErrNotExist) { // a merge has removed it, or there are no bundles
				return nil
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// lastTrace returns the sequence of the last trace in the stream.
func (s *site) lastTrace(ctx context.Context) (uint64, error) {
	state, err := s.client.StreamState(ctx, stream.Traces)
	return state.LastSequence, err
}

// reached returns the sequence up to which a consumer of the traces has acknowledged everything.
func (s *site) reached(ctx context.Context, consumer string) (uint64, error) {
	progress, err := s.client.ConsumerProgress(ctx, stream.Traces, consumer)
	return progress.AckFloor, err
}

// count returns the number that a query returns.
func (s *site) count(ctx context.Context, query string) (n uint64, err error) {
	result, err := s.rows.Query(ctx, query)
	if err != nil {
		return 0, err
	}
	for row, err := range result.Rows {
		if err != nil {
			return 0, err
		}
		var isNumber bool
		if n, isNumber = row[0].(uint64); !isNumber {
			return 0, fmt.Errorf("%s: %v is not a number", query, row[0])
		}
	}
	return n, nil
}

// The queries that show how far sealing and drift are. Both read little.
const (
	querySealed  = "SELECT toUInt64(sum(trace_count)) FROM bundles"
	queryWatched = "SELECT toUInt64(sum(rows)) FROM system.parts WHERE active AND database = currentDatabase() AND table = 'drift_points'"
)

// stalled is how long a count may stay the same before what is missing is taken for lost.
const stalled = 5 * time.Minute

// counted returns a condition: the query returns want at least. It is an error if the count stays below that.
func (s *site) counted(query string, want int) func(context.Context) (bool, error) {
	var before uint64
	changed := time.Now()
	return func(ctx context.Context) (bool, error) {
		n, err := s.count(ctx, query)
		if n != before {
			before, changed = n, time.Now()
		}
		if err == nil && n < uint64(want) && time.Since(changed) > stalled {
			err = fmt.Errorf("%d of %d traces are missing, and none has come for %s: %s", uint64(want)-n, want, stalled, query)
		}
		return n >= uint64(want), err
	}
}

// check compares the rows with what was published.
func (s *site) check(ctx context.Context, l *load) error {
	c, err := s.rows.Counts(ctx)
	if err != nil {
		return err
	}
	return errors.Join(expect("traces", c.Traces, len(l.records)), expect("verdicts", c.Verdicts-c.CardUnknown, len(l.records)),
		expect("dead letters", c.DeadLetters, 0))
}

// expect returns an error unless as many rows are there as were published.
func expect(what string, got uint64, want int) error {
	if got != uint64(want) {
		return fmt.Errorf("%d %s are stored, want %d", got, what, want)
	}
	return nil
}
