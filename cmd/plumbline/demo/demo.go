package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Config configures the demo.
type Config struct {
	Machine machine.Config // an empty DataDir means a temporary one, removed at the end; Run refuses one with data that no demo wrote

	// A simulated fleet.
	Agents, Traces int    // 0: fleet's defaults
	Seed           uint64 // equal seeds plan the same fleet

	// Or a recorded corpus: files of traces and of cards, one JSON object per line,
	// gzipped or not.
	From, Cards string

	// Stay, if there is one, gets the result while everything still runs. Run stops the machine when it returns, and
	// returns its error.
	Stay func(ctx context.Context, m *machine.Machine, result *Result) error
}

// Run runs the demo. An error means that the run failed; wrong results of the pipeline are
// in Result.Faults. It is ErrOther if the data directory has data that no demo wrote. main must
// have called child.Dispatch first.
func Run(ctx context.Context, cfg Config) (result *Result, err error) {
	began := time.Now()
	progress := cfg.Machine.Progress
	if progress == nil {
		progress = func(string) {}
	}
	cfg.Machine.Listen = cmp.Or(cfg.Machine.Listen, "127.0.0.1:0")
	if cfg.Machine.DataDir == "" {
		if cfg.Machine.DataDir, err = os.MkdirTemp("", "plumbline-demo-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(cfg.Machine.DataDir)) }()
	}
	var s *script
	if cfg.From != "" {
		if s, err = recorded(cfg.From, cfg.Cards); err != nil {
			return nil, err
		}
	}
	if err := claim(cfg.Machine.DataDir); err != nil {
		return nil, err
	}
	m, err := machine.Start(ctx, cfg.Machine)
	if err != nil {
		return nil, err
	}
	defer func() {
		progress("stopping")
		err = errors.Join(err, m.Stop(context.WithoutCancel(ctx)))
	}()
	if at := m.Endpoints().ConsoleURL; at != "" {
		progress("the console is at " + at + "; it shows the fleet while it runs")
	}
	if s == nil {
		s = simulated(cfg.Agents, cfg.Traces, cfg.Seed, time.Now())
	}
	if result, err = runOn(ctx, m, s, progress); err != nil {
		return nil, err
	}
	result.ElapsedS = time.Since(began).Seconds()
	if cfg.Stay != nil {
		return result, cfg.Stay(ctx, m, result)
	}
	return result, nil
}

// ErrOther means that a data directory has data that no demo wrote.
var ErrOther = errors.New("it has data that no demo wrote")

// markName names the file that says of a data directory that a demo made it.
const markName = "demo.txt"

// claim marks an empty or missing directory as that of a demo. A demo may run again in its own directory. In
// another one its simulated traces and bundles would be among true ones, so it is refused.
func claim(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == markName }):
		return nil
	case len(entries) > 0:
		return fmt.Errorf("%s: %w", dir, ErrOther)
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, markName), []byte("plumbline demo made this directory. Its agents are simulated.\n"), 0o600)
}

// runOn plays the script on a running machine: it publishes, waits until the pipeline has no work
// left, and compares.
func runOn(ctx context.Context, m *machine.Machine, s *script, progress func(string)) (result *Result, err error) {
	at := m.Endpoints()
	broker, err := stream.Connect(ctx, stream.Config{URL: at.NATSURL, Name: "demo"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	rows, err := store.Open(ctx, store.Config{DSN: at.OperatorDSN, Stage: "demo"}) // an operator may read dead letters
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	before, err := rows.TraceDigests(ctx)
	if err != nil {
		return nil, err
	}
	p := &player{
		script: s, publisher: &client.Publisher{URL: at.IngestURL}, left: machine.Progress{Machine: m, Broker: broker}, rows: rows,
		progress: progress, often: rate.Sometimes{Interval: time.Second},
	}
	result = new(Result)
	sent, err := p.play(ctx, result)
	if err != nil {
		return nil, err
	}
	// Drift detection waits some seconds for late traces. Meanwhile the bundles are verified.
	bundles, err := sent.bundles(ctx, rows)
	if err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("verifying %s bundles, in Go and in Python", thousands(len(bundles))))
	v, err := verifyBundles(ctx, at.Bundles, bundles, at.PublicKey)
	if err != nil {
		return nil, err
	}
	if err := p.until(ctx, "measuring drift", p.left.Unmeasured); err != nil {
		return nil, err
	}
	err = p.until(ctx, "storing refused lines", func(ctx context.Context) (uint64, error) {
		letters, err := rows.DeadLetters(ctx)
		return uint64(len(sent.refused) - len(sent.lettersOf(letters))), err
	})
	if err != nil {
		return nil, err
	}
	f, err := find(ctx, broker, rows, sent, before)
	if err != nil {
		return nil, err
	}
	result.count(sent, f, v)
	result.countPlanted(s)
	var c comparison
	c.lost(sent, f)
	if s.truth != nil {
		c.planted(s.truth, sent, f)
	}
	c.faults = append(c.faults, v.faults...)
	if n := len(f.bundles); v.golang != n || v.python != n {
		c.addf("%d bundles are sealed, but %d are verified in Go and %d in Python", n, v.golang, v.python)
	}
	result.Faults = c.faults
	return result, nil
}

// player publishes a script, and waits for the stages.
type player struct {
	*script
	publisher *client.Publisher
	left      machine.Progress
	rows      *store.Store
	progress  func(string)
	often     rate.Sometimes // limits the calls of progress
}

// play publishes the script, and returns when every trace is judged and in a bundle. It sets the
// rate in the result.
func (p *player) play(ctx context.Context, result *Result) (*published, error) {
	p.progress(fmt.Sprintf("registering %s cards", thousands(len(p.cards))))
	for _, c := range p.cards { // an agent's older card before its newer one
		if _, err := p.publisher.PutCard(ctx, c.CardID, c.Raw); err != nil {
			return nil, err
		}
	}
	if p.truth != nil { // a card that an earlier run on the same data revoked stays revoked
		for _, id := range p.truth.Revoked {
			if _, _, err := p.publisher.Revoke(ctx, id, "the demo withdraws this card"); err != nil {
				return nil, err
			}
		}
	}
	began := time.Now()
	sent, err := publish(ctx, p.publisher, p.script, func(lines int) {
		p.often.Do(func() { p.progress(fmt.Sprintf("publishing: %s lines", thousands(lines))) })
	})
	if err != nil {
		return nil, err
	}
	if err := p.until(ctx, "judging", p.left.Unjudged); err != nil {
		return nil, err
	}
	result.TracesPerS = float64(len(sent.traces)) / time.Since(began).Seconds()
	if err := sent.endSessions(ctx, p.publisher); err != nil {
		return nil, err
	}
	if err := p.until(ctx, "sealing", p.left.UnreadReceipts); err != nil {
		return nil, err
	}
	return sent, p.until(ctx, "sealing", func(ctx context.Context) (uint64, error) {
		bundles, err := p.rows.Bundles(ctx, "", "")
		return uint64(len(sent.ids) - len(sent.sealedIDs(bundles))), err
	})
}

// patience is how long to wait for a stage without progress. After that, the unfinished work
// counts as missing, and the comparison reports it.
const patience = time.Minute

// until polls until nothing is left to do, or until there is no more progress.
func (p *player) until(ctx context.Context, doing string, look func(context.Context) (left uint64, err error)) error {
	changed, before := time.Now(), uint64(0)
	return machine.Poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		left, err := look(ctx)
		if err != nil {
			return false, fmt.Errorf("%s: %w", doing, err)
		}
		if left != before {
			before, changed = left, time.Now()
		}
		if left == 0 || time.Since(changed) > patience {
			return true, nil
		}
		p.often.Do(func() { p.progress(fmt.Sprintf("%s: %d left", doing, left)) })
		return false, nil
	})
}
