package stream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// A user of NATS publishes other messages under the ids of traces that will follow. The traces
// are stored all the same, and none is reported as a duplicate.
func TestForeignMessageIDsHideNoTrace(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	victims := records("victim", 40)
	raw, err := nats.Connect(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for i, r := range victims {
		m := nats.NewMsg(subject.Trace("did:web:attacker"))
		m.Data = []byte("{}")
		switch i % 4 {
		case 0: // no attack
			continue
		case 1: // the bytes of the victim under another agent's name
			m.Data = r.Data
		case 2: // other bytes under the victim's name
			m.Subject = subject.Trace(r.Agent)
		}
		m.Header.Set(jetstream.MsgIDHeader, r.Digest.String())
		if answer, err := raw.RequestMsg(m, stream.DefaultTimeout); err != nil {
			t.Fatal(err, answer)
		}
	}
	committer := newCommitter(t, client, stream.CommitConfig{})
	for _, part := range [][]stream.Record{victims[:1], victims[1:2], victims} { // alone, and in a batch
		outcomes, err := committer.Publish(t.Context(), part)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range outcomes {
			data, err := client.Trace(t.Context(), o.Sequence)
			if err != nil || string(data) != string(part[i].Data) {
				t.Errorf("record %d: %+v names %q: %v", i, o, data, err)
			}
			if known := len(part) == len(victims) && i == 0; o.Duplicate != known {
				t.Errorf("record %d: duplicate %v", i, o.Duplicate)
			}
		}
	}
}

// A user of NATS begins as many batches as the server holds, and ends none of them. Others can
// still publish.
func TestOpenBatchesOfOthersDelayNobody(t *testing.T) {
	broker := runServer(t, server.Options{
		JetStream: true, SyncAlways: true,
		JetStreamLimits: server.JSLimitOpts{MaxBatchInflightPerStream: 3, MaxBatchTimeout: time.Hour}, // instead of 50 and 10 s
	})
	client := brokertest.Connect(t, stream.Config{URL: broker.ClientURL()})
	pipelinetest.EnsureTopology(t, client)
	raw, err := nats.Connect(broker.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	refused := false
	for i := 0; !refused; i++ {
		m := nats.NewMsg(subject.Trace("did:web:attacker"))
		m.Header.Set("Nats-Batch-Id", fmt.Sprint("open-", i))
		m.Header.Set("Nats-Batch-Sequence", "1")
		answer, err := raw.RequestMsg(m, stream.DefaultTimeout)
		if err != nil || i > 10 {
			t.Fatal(i, err)
		}
		refused = len(answer.Data) > 0
	}
	committer := newCommitter(t, client, stream.CommitConfig{})
	outcomes, err := committer.Publish(t.Context(), records("honest", 40))
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		if o.Err != nil || o.Duplicate || o.Sequence == 0 {
			t.Errorf("record %d: %+v", i, o)
		}
	}
}
