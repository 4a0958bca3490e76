package stream_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Services that start while the nodes of a new cluster still elect leaders meet only transient
// errors, and find everything in the end.
func TestFreshCluster(t *testing.T) {
	cluster := brokertest.NewCluster(t, 3)
	every := cluster.MonitorURL(0) + ", " + cluster.MonitorURL(1) + "/," + cluster.MonitorURL(2)
	var services sync.WaitGroup
	for range 4 {
		services.Go(func() {
			client, err := stream.Connect(t.Context(), stream.Config{URL: cluster.URL(), MonitorURL: every, Replicas: 3})
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
	inspectNodes(t, cluster, every)
}

// inspectNodes checks that each server of a cluster is inspected: the weakness of one of them is
// found, and servers that were not read are listed.
func inspectNodes(t *testing.T, cluster *brokertest.Cluster, every string) {
	t.Helper()
	inspect := func(monitors string) stream.Report {
		t.Helper()
		client, err := stream.Connect(t.Context(), stream.Config{URL: cluster.URL(), MonitorURL: monitors, Replicas: 3})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var report stream.Report
		pipelinetest.Await(t, "an answer", func() bool {
			report, err = client.Inspect(t.Context())
			return err == nil
		})
		return report
	}
	if r := inspect(every); len(r.Weaknesses)+len(r.Unknown) > 0 {
		t.Errorf("all of them: %+v", r)
	}
	if r := inspect(cluster.MonitorURL(1)); len(r.Weaknesses) > 0 || len(r.Unknown) != 2 ||
		!strings.Contains(r.Unknown[0], "server node-0") || !strings.Contains(r.Unknown[1], "server node-2") {
		t.Errorf("one of three: %+v", r)
	}
	cluster.Stop(2)
	if r := inspect(every); len(r.Weaknesses) > 0 || len(r.Unknown) != 2 ||
		!strings.Contains(r.Unknown[0], strings.TrimPrefix(cluster.MonitorURL(2), "http://")) || !strings.Contains(r.Unknown[1], "server node-2") {
		t.Errorf("one of them away: %+v", r)
	}
	cluster.Options(2).SyncAlways, cluster.Options(2).MaxPayload = false, 1<<19
	cluster.Start(2)
	r := inspect(every)
	var weak []string
	for _, w := range r.Weaknesses {
		weak = append(weak, w.Object+" "+w.Setting)
	}
	if want := []string{"server node-2 max_payload", "server node-2 jetstream.sync_interval"}; !slices.Equal(weak, want) || len(r.Unknown) > 0 {
		t.Errorf("weaknesses %q, want %q; unknown %q", weak, want, r.Unknown)
	}
}

// A cluster that elects leaders answers for a moment that a stream, bucket or consumer does not
// exist. The error is transient.
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
