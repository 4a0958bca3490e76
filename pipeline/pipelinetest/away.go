package pipelinetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/service"
)

// Serve runs a stage with the given settings until its context ends.
type Serve func(context.Context, config.Common, config.ClickHouse, *service.Env) error

// OpensOncePeersAreBack runs a stage whose broker and database become unavailable right after the
// stage has connected to them. It checks that the stage is ready when both are back. The stage
// runs until the test ends.
func (r *Rig) OpensOncePeersAreBack(t testing.TB, serve Serve) {
	t.Helper()
	broker, database := brokertest.NewWire(t, r.Broker.URL()), brokertest.NewWire(t, r.DSN)
	common, clickhouse, env := r.Common(), r.ClickHouse(), Env(t, "away")
	common.NATS.URL, clickhouse.DSN = broker.URL(), database.URL()
	database.Cut()
	stage := Go(t, func(ctx context.Context) error { return serve(ctx, common, clickhouse, env) })
	await := func(what string, holds func() bool) {
		t.Helper()
		Await(t, what, func() bool {
			select {
			case <-stage.ended:
				t.Fatalf("waited for %s, and the stage ended: %v", what, stage.err)
			default:
			}
			return holds()
		})
	}
	down := func(component string) bool { return env.Health.Reported().Down[component] != "" }
	await("the connection to the broker", func() bool { return down("database") })
	broker.Freeze() // the next step needs the database and not the broker
	database.Mend()
	await("the connection to the database", func() bool { return !down("database") })
	database.Cut()
	broker.Cut()
	broker.Thaw()
	await("an opening that fails", func() bool { return Retries(t, env, "open streams and buckets") > 0 })
	broker.Mend()
	await("the work without a database, or what it first needs of the database", func() bool {
		return !down("away") || Retries(t, env, "read the position of table cards") > 0
	})
	database.Mend()
	await("readiness", func() bool { return env.Health.Readiness().Ready })
}

// Metric returns the sum of a stage's metric over its labels, or over those with one value.
func Metric(t testing.TB, env *service.Env, name, value string) (sum float64) {
	t.Helper()
	families, err := env.Gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			matches := value == ""
			for _, label := range m.GetLabel() {
				matches = matches || label.GetValue() == value
			}
			if matches && family.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// Retries returns how often a stage has repeated an operation.
func Retries(t testing.TB, env *service.Env, operation string) float64 {
	t.Helper()
	return Metric(t, env, "plumbline_retries_total", operation)
}

// EndsWhenExpelled runs a stage. It checks that the stage ends with an error that names the cause
// when the broker has closed its connection permanently.
func (r *Rig) EndsWhenExpelled(t testing.TB, serve Serve) {
	t.Helper()
	broker := brokertest.NewWire(t, r.Broker.URL())
	common, env, ended := r.Common(), Env(t, "expelled"), make(chan error, 1)
	common.NATS.URL = broker.URL()
	env.DrainBudget = time.Second // without a connection nothing can be finished
	go func() { ended <- serve(t.Context(), common, r.ClickHouse(), env) }()
	Await(t, "the stage", func() bool { return env.Health.Reported().Ready })
	broker.Expel()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "closed the connection") {
			t.Errorf("the stage ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the stage continues without a connection")
	}
}
