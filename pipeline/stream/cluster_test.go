package stream_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Services that start while the nodes of a new cluster still elect leaders meet only
// errors that pass, and find everything in the end.
func TestFreshCluster(t *testing.T) {
	cluster := brokertest.NewCluster(t, 3)
	var services sync.WaitGroup
	for range 4 {
		services.Go(func() {
			client, err := stream.Connect(t.Context(), stream.Config{URL: cluster.URL(), MonitorURL: cluster.MonitorURL(0), Replicas: 3})
			if err != nil {
				t.Error(err)
				return
			}
			defer client.Close()
			for err = stream.ErrUnavailable; errors.Is(err, stream.ErrUnavailable); {
				err = client.EnsureTopology(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	services.Wait()
}

// A cluster that elects leaders answers for a moment that it has no such stream, bucket
// or consumer: to ask again is right.
func TestMissingStreamsPass(t *testing.T) {
	client := dial(t, brokertest.New(t), stream.Config{})
	_, reading := client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	_, state := client.StreamState(t.Context(), stream.Traces)
	_, bucket := client.Bucket(t.Context(), stream.Cards)
	for doing, err := range map[string]error{"open a consumer": reading, "ask for the state": state, "open a bucket": bucket} {
		if !errors.Is(err, stream.ErrUnavailable) {
			t.Errorf("%s: %v", doing, err)
		}
	}
}
