package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Broker is the broker as a process publishes to it and queries it. The methods are those of
// stream.Client.
type Broker struct {
	process   *Process
	consumers map[string]*Consumer
}

// Broker connects a process to the broker. The broker reports the progress of the consumers.
func (p *Process) Broker(consumers ...*Consumer) *Broker {
	b := &Broker{process: p, consumers: map[string]*Consumer{}}
	for _, c := range consumers {
		b.consumers[c.Name] = c
	}
	return b
}

func (b *Broker) publish(ctx context.Context, name, to string, messages []Stored) error {
	s := b.process.world.Stream(to)
	return EachOf(ctx, b.process, Operation{Name: name}, messages, func(m *Stored) string { return m.ID }, func(m *Stored) error {
		s.append(*m)
		return nil
	})
}

func (b *Broker) PublishAlerts(ctx context.Context, alerts []wire.Alert) error {
	messages := make([]Stored, len(alerts))
	for i, a := range alerts {
		messages[i] = Stored{Subject: subject.Alert(a.Kind, a.Agent), ID: a.ID, Data: a.Data}
	}
	return b.publish(ctx, "publish alerts", stream.Alerts, messages)
}

func (b *Broker) PublishReceipts(ctx context.Context, byPartition [][]schema.Receipt) error {
	var messages []Stored
	for partition, receipts := range byPartition {
		if len(receipts) > 0 {
			messages = append(messages, Receipts(partition, receipts))
		}
	}
	return b.publish(ctx, "publish receipts", stream.Receipts, messages)
}

// Receipts returns the message with some receipts.
func Receipts(partition int, receipts []schema.Receipt) Stored {
	list := make([]map[string]any, len(receipts))
	for i, r := range receipts {
		list[i] = map[string]any{
			"agent_id": r.AgentID, "session_id": r.SessionID, "sequence": r.Sequence, "digest": r.Digest.String(),
			"event_time": r.EventTime.UTC(), "bytes": r.Bytes, "end": r.End,
		}
	}
	data, err := json.Marshal(map[string]any{"receipts": list})
	if err != nil {
		panic(err) // names and numbers can always be encoded
	}
	return Stored{Subject: "receipts." + strconv.Itoa(partition), ID: schema.DigestOf(data).String(), Data: data}
}

// DeadLetter simulates stream.Client.DeadLetter. The letter's subject ends in the sequence of the
// refused message.
func (b *Broker) DeadLetter(ctx context.Context, d wire.DeadLetter) error {
	id := fmt.Sprintf("%s.%s.%d", d.Stage, d.Reason, d.Sequence)
	letter := Stored{Subject: "deadletter.verifier." + strconv.FormatUint(d.Sequence, 10), ID: id, Data: d.Data}
	return b.publish(ctx, "publish dead letters", stream.DeadLetters, []Stored{letter})
}

func (b *Broker) AppendLedger(ctx context.Context, list ...ledger.Event) error {
	messages := make([]Stored, len(list))
	for i, e := range list {
		messages[i] = Stored{Subject: "ledger." + string(e.Type), ID: string(e.Type) + "." + e.ID, Data: e.Data}
	}
	return b.publish(ctx, "append to the ledger", stream.Ledger, messages)
}

// AnnounceBundle simulates stream.Client.AnnounceBundle. Nobody listens.
func (b *Broker) AnnounceBundle([]byte) error { return nil }

func (b *Broker) StreamState(ctx context.Context, name string) (state stream.State, err error) {
	s := b.process.world.Stream(name)
	err = b.process.Do(ctx, Operation{Name: "state of", Key: name}, func() error {
		state = s.state()
		return nil
	})
	return state, err
}

func (b *Broker) ConsumerProgress(ctx context.Context, _, consumer string) (progress stream.Progress, err error) {
	err = b.process.Do(ctx, Operation{Name: "progress of", Key: consumer}, func() error {
		progress = b.consumers[consumer].Progress()
		return nil
	})
	return progress, err
}

func (b *Broker) Trace(ctx context.Context, sequence uint64) (data []byte, err error) {
	s := b.process.world.Stream(stream.Traces)
	err = b.process.Do(ctx, Operation{Name: "get trace", Key: strconv.FormatUint(sequence, 10)}, func() error {
		if sequence == 0 || sequence > s.last() {
			return stream.ErrNotFound
		}
		data = s.At(sequence).Data
		return nil
	})
	return data, err
}
