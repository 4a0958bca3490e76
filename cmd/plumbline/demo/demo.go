package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/schema"
)

// Config configures the demo.
type Config struct {
	Machine machine.Config // an empty DataDir means a temporary one, removed at the end

	// A simulated fleet.
	Agents, Traces int    // 0: fleet's defaults
	Seed           uint64 // equal seeds plan the same fleet

	// Or a recorded corpus: files of traces and of cards, one JSON object per line,
	// gzipped or not.
	From, Cards string
}

// Run runs the demo. An error means that the run failed; wrong results of the pipeline are
// in Result.Faults. main must have called child.Dispatch first.
func Run(ctx context.Context, cfg Config) (result *Result, err error) {
	began := time.Now()
	progress := cfg.Machine.Progress
	if progress == nil {
		progress = func(string) {}
	}
	cleanUp, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cleanUp()) }()
	play, err := cfg.recording()
	if err != nil {
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
	if play == nil {
		play = simulated(cfg.Agents, cfg.Traces, cfg.Seed, time.Now())
	}
	if result, err = runOn(ctx, m, play, progress); err != nil {
		return nil, err
	}
	result.ElapsedS = time.Since(began).Seconds()
	return result, nil
}

// prepare creates the temporary data directory if none is given.
func (c *Config) prepare() (cleanUp func() error, err error) {
	c.Machine.Listen = cmp.Or(c.Machine.Listen, "127.0.0.1:0")
	if c.Machine.DataDir != "" {
		return func() error { return nil }, nil
	}
	if c.Machine.DataDir, err = os.MkdirTemp("", "plumbline-demo-"); err != nil {
		return nil, err
	}
	return func() error { return os.RemoveAll(c.Machine.DataDir) }, nil
}

// recording opens the recorded corpus; nil if a fleet is simulated.
func (c *Config) recording() (*script, error) {
	if c.From == "" {
		return nil, nil
	}
	return recorded(c.From, c.Cards)
}

// runOn plays the script on a running machine.
func runOn(ctx context.Context, m *machine.Machine, play *script, progress func(string)) (result *Result, err error) {
	w, err := openWatch(ctx, m, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	before, err := w.rows.TraceDigests(ctx)
	if err != nil {
		return nil, err
	}
	return w.play(ctx, play, before)
}

// play publishes, waits until the pipeline has no work left, and compares.
func (w *watch) play(ctx context.Context, play *script, before []schema.Digest) (*Result, error) {
	client := &publisher.Client{URL: w.Machine.Endpoints().IngestURL}
	w.progress(fmt.Sprintf("registering %s cards", thousands(len(play.cards))))
	if err := register(ctx, client, play.cards); err != nil {
		return nil, err
	}
	if err := revoke(ctx, client, play.truth); err != nil {
		return nil, err
	}
	began, told := time.Now(), time.Now()
	p, err := publish(ctx, client, play, func(lines int) {
		if time.Since(told) > tellEvery {
			told = time.Now()
			w.progress(fmt.Sprintf("publishing: %s lines", thousands(lines)))
		}
	})
	if err != nil {
		return nil, err
	}
	if err := w.until(ctx, "judging", w.Unjudged); err != nil {
		return nil, err
	}
	result := &Result{TracesPerS: float64(len(p.traces)) / time.Since(began).Seconds()}
	if err := p.endSessions(ctx, client); err != nil {
		return nil, err
	}
	v, err := w.settle(ctx, p)
	if err != nil {
		return nil, err
	}
	return result, w.conclude(ctx, result, play, p, v, before)
}

// settle waits until everything is sealed and drift detection has applied every trace. Drift
// detection waits some seconds for late traces; meanwhile settle verifies the bundles.
func (w *watch) settle(ctx context.Context, p *published) (*verified, error) {
	if err := w.until(ctx, "sealing", w.Unfolded); err != nil {
		return nil, err
	}
	if err := w.until(ctx, "sealing", w.unsealed(p)); err != nil {
		return nil, err
	}
	v, err := w.verify(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := w.until(ctx, "watching for drift", w.Unwatched); err != nil {
		return nil, err
	}
	return v, w.until(ctx, "keeping refused lines", w.unburied(p))
}

func (w *watch) verify(ctx context.Context, p *published) (*verified, error) {
	var f found
	if err := f.findBundles(ctx, w.rows, p); err != nil {
		return nil, err
	}
	w.progress(fmt.Sprintf("verifying %s bundles, in Go and in Python", thousands(len(f.bundles))))
	at := w.Machine.Endpoints()
	return verifyBundles(ctx, at.Bundles, f.bundles, at.PublicKey)
}

// conclude reads the results and compares.
func (w *watch) conclude(ctx context.Context, r *Result, play *script, p *published, v *verified, before []schema.Digest) error {
	f, err := find(ctx, w.rows, p, before)
	if err != nil {
		return err
	}
	r.count(p, f, v)
	r.countPlanted(play)
	var c comparison
	c.lost(p, f)
	if play.truth != nil {
		c.planted(play.truth, p, f)
	}
	c.faults = append(c.faults, v.faults...)
	if n := len(f.bundles); v.golang != n || v.python != n {
		c.addf("%d bundles are sealed, but %d are verified in Go and %d in Python", n, v.golang, v.python)
	}
	r.Faults = c.faults
	return nil
}
