package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// A rate is held if, after the last post was due, everything is answered and queryable within heldWithin, and
// everything is sealed within sealedWithin.
const (
	heldWithin   = 2 * time.Second
	sealedWithin = 10 * time.Second
)

// measurePosts measures the stages that are configured while traces are posted to ingest.
func measurePosts(ctx context.Context, cfg *Config, l *load, _ int) (run, beside *measured, err error) {
	if beside, err = besideFloor(ctx, cfg, l); err != nil {
		return nil, nil, err
	}
	l = cfg.postedLoad(l)
	s, err := openFor(ctx, cfg, l)
	defer func() { err = errors.Join(err, s.close()) }()
	if err == nil {
		err = s.startAll(ctx, cfg.Stages)
	}
	if err == nil {
		err = sleepUntil(ctx, l.begins)
	}
	if err == nil {
		err = s.begin()
	}
	if err != nil {
		return nil, nil, err
	}
	run, err = s.clockPosts(ctx, l)
	return run, beside, err
}

// Dates of what is posted. The stages start before the first trace is dated, where there is a rate.
const (
	startsWithin = 6 * time.Second // of the stages, on an idle machine; if they take longer, the traces are so much older
	datedWithin  = time.Minute     // before they are posted, without a rate
)

// postedLoad returns traces that are dated as those of real agents are: when they become due, or in the last minute
// where the publishers are as fast as ingest. It makes them from now on, so each round needs its own. With Config.Old
// they are those of old, which are dated in the hour before.
func (c *Config) postedLoad(old *load) *load {
	switch n := len(old.records); {
	case c.Old:
		return old
	case c.Rate > 0:
		return newLoadFrom(fleet.Config{Agents: c.Agents, Traces: n}, time.Now().Add(startsWithin+time.Duration(n)*timeToMake), time.Duration(float64(n)/c.Rate*float64(time.Second)))
	default:
		return newLoadFrom(fleet.Config{Agents: c.Agents, Traces: n}, time.Now().Add(-datedWithin), datedWithin)
	}
}

// timeToMake is more than the time to make a trace of a load.
const timeToMake = 20 * time.Microsecond

// clockPosts posts the load and waits until every stage that runs is done.
func (s *site) clockPosts(ctx context.Context, l *load) (*measured, error) {
	m := &measured{load: l, until: map[string]time.Duration{}, other: figures{}}
	watch, ended := s.watchVerifier(ctx)
	p := posting{url: "http://" + s.stage(machine.Ingest).address, load: l, publishers: s.cfg.Publishers, lines: s.cfg.Lines, rate: s.cfg.Rate}
	sent, err := p.run(ctx)
	if err != nil {
		return nil, errors.Join(err, ended(), s.await(ctx, closely, func(context.Context) (bool, error) { return true, nil }))
	}
	m.until["answered"] = time.Since(s.began)
	m.took = m.until["answered"]
	m.other["repeated_posts"] = float64(sent.repeated)
	if s.cfg.runs(machine.Verifier) {
		if err := s.await(ctx, closely, s.acknowledged(stream.VerifierConsumer)); err != nil {
			return nil, errors.Join(err, ended())
		}
		m.until["queryable"] = time.Since(s.began)
		m.took = m.until["queryable"]
	}
	if err := errors.Join(ended(), s.awaitRest(ctx, m)); err != nil {
		return nil, err
	}
	if err := s.finish(m); err != nil {
		return nil, err
	}
	m.answered = sent.latencies()
	if s.cfg.Rate > 0 {
		m.lag = map[string]time.Duration{}
		for name, d := range m.until {
			m.lag[name] = s.began.Add(d).Sub(sent.last)
		}
		m.late = m.lag["answered"] > heldWithin || m.lag["queryable"] > heldWithin || m.lag["sealed"] > sealedWithin
	}
	if !s.cfg.runs(machine.Verifier) {
		return m, nil
	}
	if m.queryable, err = s.queryable(ctx, l, sent.due, *watch); err != nil {
		return nil, err
	}
	return m, s.check(ctx, l)
}

// awaitRest waits until everything is sealed and watched, by the stages that run.
func (s *site) awaitRest(ctx context.Context, m *measured) error {
	var sealed, watched time.Duration
	group, working := errgroup.WithContext(ctx)
	wait := func(stage, query string, into *time.Duration) {
		if !s.cfg.runs(stage) {
			return
		}
		group.Go(func() error {
			err := s.await(working, leisurely, s.counted(query, len(m.load.records)))
			*into = time.Since(s.began)
			return err
		})
	}
	wait(machine.Exporter, querySealed, &sealed)
	wait(machine.Drift, queryWatched, &watched)
	err := group.Wait()
	if sealed > 0 {
		m.until["sealed"] = sealed
	}
	if watched > 0 {
		m.until["watched"] = watched
	}
	return err
}

// seen is what the verifier had acknowledged at some time.
type seen struct {
	at      time.Time
	reached uint64
}

// watchVerifier notes the verifier's progress until the returned function is called. The broker sends each
// change of the record of owners. To ask for it many times a second would be a load that no installation has.
func (s *site) watchVerifier(ctx context.Context) (*[]seen, func() error) {
	watch := new([]seen)
	if !s.cfg.runs(machine.Verifier) {
		return watch, func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	var unread error // of a change
	note := func(reached uint64) {
		if len(*watch) == 0 || reached > (*watch)[len(*watch)-1].reached {
			*watch = append(*watch, seen{time.Now(), reached})
		}
	}
	go func() {
		bucket, err := s.client.Bucket(ctx, stream.Leases)
		if err == nil {
			err = bucket.Watch(ctx, stream.VerifierConsumer, 0, func(change stream.Change) {
				var shares stream.Shares
				if err := json.Unmarshal(change.Value, &shares); err != nil {
					unread = errors.Join(unread, fmt.Errorf("read the verifier's record: %w", err))
					return
				}
				note(shares.Floor())
			}, func() {})
		}
		ended <- err
	}()
	return watch, func() error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		reached, err := s.reached(context.WithoutCancel(ctx), stream.VerifierConsumer)
		note(reached)
		return errors.Join(unread, err)
	}
}

// queryable returns for each trace the time from when it was due until the verifier had acknowledged it, which is some
// milliseconds after its rows are queryable.
func (s *site) queryable(ctx context.Context, l *load, due []time.Time, watch []seen) ([]time.Duration, error) {
	result, err := s.rows.Query(ctx, "SELECT lower(hex(digest)), stream_sequence FROM traces")
	if err != nil {
		return nil, err
	}
	sequences := make(map[schema.Digest]uint64, len(l.records))
	for row, err := range result.Rows {
		if err != nil {
			return nil, err
		}
		text, _ := row[0].(string)
		var digest schema.Digest
		if err := digest.UnmarshalText([]byte(text)); err != nil {
			return nil, err
		}
		sequences[digest], _ = row[1].(uint64)
	}
	all := make([]time.Duration, len(l.records))
	for i := range l.records {
		sequence := sequences[l.records[i].Digest]
		n := sort.Search(len(watch), func(n int) bool { return watch[n].reached >= sequence })
		if sequence == 0 || n == len(watch) {
			return nil, fmt.Errorf("trace %d of the load is not acknowledged", i)
		}
		all[i] = watch[n].at.Sub(due[i])
	}
	slices.Sort(all)
	return all, nil
}
