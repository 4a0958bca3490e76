package sim

import (
	"context"
	"fmt"
	"strconv"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/stream"
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
		messages[i] = stored(a.Message())
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

// Receipts returns the message with a few receipts.
func Receipts(partition int, receipts []schema.Receipt) Stored {
	messages, err := wire.Receipts(partition, receipts)
	m := stored(messages[0], err)
	m.Partition = partition
	return m
}

// stored returns a message in the form in which a stream holds it.
func stored(m wire.Message, err error) Stored {
	if err != nil {
		panic(err) // a stage passes only what can be encoded
	}
	return Stored{Subject: m.Subject, ID: m.ID, Data: m.Data}
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
		messages[i] = stored(wire.EventMessage(e))
	}
	return b.publish(ctx, "append to the ledger", stream.Ledger, messages)
}

// AnnounceBundle simulates stream.Client.AnnounceBundle. Nobody listens.
func (b *Broker) AnnounceBundle([]byte) error { return nil }

func (b *Broker) StreamState(ctx context.Context, name string) (stream.State, error) {
	s := b.process.world.Stream(name)
	return ask(ctx, b.process, "state of", name, func() (stream.State, error) { return s.state(), nil })
}

func (b *Broker) ConsumerProgress(ctx context.Context, _, consumer string) (stream.Progress, error) {
	return ask(ctx, b.process, "progress of", consumer, func() (stream.Progress, error) { return b.consumers[consumer].Progress(), nil })
}

func (b *Broker) Trace(ctx context.Context, sequence uint64) ([]byte, error) {
	s := b.process.world.Stream(stream.Traces)
	return ask(ctx, b.process, "get trace", strconv.FormatUint(sequence, 10), func() ([]byte, error) {
		if sequence == 0 || sequence > s.last() {
			return nil, stream.ErrNotFound
		}
		return s.At(sequence).Data, nil
	})
}
