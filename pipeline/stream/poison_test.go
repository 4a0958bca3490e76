package stream_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// A user of NATS publishes other messages under the ids of traces that are still to
// come: the traces are stored nevertheless, and none is called a duplicate.
func TestTakenIDsHideNoTrace(t *testing.T) {
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
		case 0: // left alone
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
