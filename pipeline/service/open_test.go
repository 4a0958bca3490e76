package service_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// A bucket that was removed meanwhile is created again. Until then readiness shows what the start
// waits for. An error that no retry fixes ends the start.
func TestOpeningSaysWhatItWaitsFor(t *testing.T) {
	broker := brokertest.New(t)
	env := pipelinetest.Env(t, "tester")
	client, err := service.Broker(t.Context(), brokerOf(broker), env)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := broker.JetStream().DeleteStream(t.Context(), "KV_"+stream.Seals); err != nil {
		t.Fatal(err)
	}
	waiting := func() string { return env.Health.Reported().Down["broker"] }
	var said []string
	err = env.Open(t.Context(), client, func() error {
		said = append(said, waiting())
		_, err := client.Bucket(t.Context(), stream.Seals)
		return err
	})
	if err != nil || len(said) != 2 || said[0] == "" || !strings.Contains(said[1], "open bucket seals") || waiting() != "" {
		t.Errorf("%v, readiness had %q, then %q; want the bucket opened the second time", err, said, waiting())
	}
	wrong, tries := errors.New("wrong"), 0
	err = env.Open(t.Context(), client, func() error { tries++; return wrong })
	if !errors.Is(err, wrong) || tries != 1 {
		t.Errorf("%d attempts, %v; want one", tries, err)
	}
}
