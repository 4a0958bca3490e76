package drift

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
)

// hanging is a database that answers no insert of baselines in time.
type hanging struct {
	Rows
	during func() error
}

func (h hanging) InsertDriftBaselines(context.Context, []store.DriftBaseline) error {
	return h.during()
}

// While a commit hangs, the lag is the age of its oldest message: the database does not answer, and the gauge
// must show it.
func TestLagGrowsWhileACommitHangs(t *testing.T) {
	now, during := time.Now(), time.Duration(0)
	registry := obs.NewRegistry("1")
	s := &stage{cfg: new(Config), env: service.NewEnv("drift", "1", slog.New(slog.DiscardHandler), registry, new(obs.Health)),
		registry: noCards{}, now: func() time.Time { return now }}
	s.build()
	enough := errors.New("the commit has hung long enough")
	s.rows = hanging{during: func() error {
		_, during = s.behind()
		return service.Permanent(enough)
	}}
	var b batch
	b.finish(now.Add(-time.Minute))
	b.finish(now.Add(-time.Hour))
	if err := s.commit(t.Context(), &b); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if _, after := s.behind(); during != time.Hour || after != 0 {
		t.Errorf("the lag is %s during the commit and %s after it, want an hour and 0", during, after)
	}
}
