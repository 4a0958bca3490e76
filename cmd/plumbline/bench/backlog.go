package bench

import (
	"context"
	"errors"
	"time"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// clockVerifier stops when the verifier has acknowledged every trace.
func (s *site) clockVerifier(ctx context.Context, l *load) (*measured, error) {
	var first time.Duration
	done := s.acknowledged(stream.VerifierConsumer)
	m, err := s.stop(ctx, l, func(ctx context.Context) (bool, error) {
		if first == 0 {
			reached, err := s.reached(ctx, stream.VerifierConsumer)
			if err != nil || reached == 0 {
				return false, err
			}
			first = time.Since(s.began)
		}
		return done(ctx)
	}, closely)
	if err != nil {
		return nil, err
	}
	m.other = figures{"first_s": first.Seconds()}
	return m, s.check(ctx, l)
}

// clockExporter stops when every trace is in a bundle.
func (s *site) clockExporter(ctx context.Context, l *load) (*measured, error) {
	return s.stop(ctx, l, s.counted(querySealed, len(l.records)), leisurely)
}

// clockDrift stops when every trace has a point.
func (s *site) clockDrift(ctx context.Context, l *load) (*measured, error) {
	return s.stop(ctx, l, s.counted(queryWatched, len(l.records)), leisurely)
}

// judge lets a verifier work through the backlog, which is not measured.
func (s *site) judge(ctx context.Context, l *load) error {
	p, err := s.start(ctx, machine.Verifier)
	if err != nil {
		return err
	}
	if err := s.await(ctx, leisurely, s.acknowledged(stream.VerifierConsumer)); err != nil {
		return err
	}
	s.stages = nil
	return errors.Join(p.Stop(ctx), s.check(ctx, l))
}
