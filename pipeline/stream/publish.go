package stream

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// What stages publish in addition to traces. Each function returns when everything is stored. What
// is published again within the duplicate window is stored once. After an error some of it may be
// stored.

// PublishAlerts publishes alerts on stream ALERTS.
func (c *Client) PublishAlerts(ctx context.Context, alerts []wire.Alert) error {
	return publishEach(ctx, c, "alerts", alerts, wire.Alert.Message)
}

// PublishCoherence publishes the result of a handshake on stream COHERENCE.
func (c *Client) PublishCoherence(ctx context.Context, result wire.CoherenceResult) error {
	return publishEach(ctx, c, "result of a handshake", []wire.CoherenceResult{result}, wire.CoherenceResult.Message)
}

// DeadLetter publishes one dead letter.
func (c *Client) DeadLetter(ctx context.Context, d wire.DeadLetter) error {
	return c.DeadLetters(ctx, []wire.DeadLetter{d})
}

// DeadLetters publishes dead letters on stream DEADLETTER.
func (c *Client) DeadLetters(ctx context.Context, letters []wire.DeadLetter) error {
	return publishEach(ctx, c, "dead letters", letters, wire.DeadLetter.Message)
}

// MarkDeadLetters publishes marks on stream DEADLETTER. It removes nothing.
func (c *Client) MarkDeadLetters(ctx context.Context, marks []wire.Mark) error {
	return publishEach(ctx, c, "marks of dead letters", marks, wire.Mark.Message)
}

// PublishReceipts publishes the receipts of each partition on stream RECEIPTS.
func (c *Client) PublishReceipts(ctx context.Context, byPartition [][]schema.Receipt) error {
	var messages []wire.Message
	for partition, receipts := range byPartition {
		encoded, err := wire.Receipts(partition, receipts)
		if err != nil {
			return err
		}
		messages = append(messages, encoded...)
	}
	return publishEach(ctx, c, "messages of receipts", messages, func(m wire.Message) (wire.Message, error) { return m, nil })
}

// RequestEnd publishes the request on stream TRACES, after the traces published before it, and then
// on stream RECEIPTS.
func (c *Client) RequestEnd(ctx context.Context, partition int, end wire.EndRequest) error {
	for _, message := range []func(wire.EndRequest) (wire.Message, error){
		wire.EndRequest.AmongTraces,
		func(end wire.EndRequest) (wire.Message, error) { return end.Message(partition) },
	} {
		if err := publishEach(ctx, c, "request to end a session", []wire.EndRequest{end}, message); err != nil {
			return err
		}
	}
	return nil
}

// AppendLedger publishes events on stream LEDGER.
func (c *Client) AppendLedger(ctx context.Context, events ...ledger.Event) error {
	err := c.unlessRefused(ctx, func(ctx context.Context) error {
		return publishEach(ctx, c, "events", events, wire.EventMessage)
	}, wire.EventPrefix)
	if err != nil {
		return fmt.Errorf("append to the ledger stream: %w", err)
	}
	return nil
}

func publishEach[T any](ctx context.Context, c *Client, what string, items []T, message func(T) (wire.Message, error)) error {
	if len(items) == 0 {
		return nil
	}
	messages, subjects := make([]wire.Message, len(items)), make([]string, len(items))
	for i, item := range items {
		var err error
		if messages[i], err = message(item); err != nil {
			return err
		}
		subjects[i] = messages[i].Subject
	}
	err := c.unlessRefused(ctx, func(ctx context.Context) error {
		_, err := c.publish(ctx, messages)
		return err
	}, subjects...)
	if err != nil {
		return fmt.Errorf("publish %d %s: %w", len(items), what, err)
	}
	return nil
}

const bundleSubject = "aap.bundle.sealed"

// AnnounceBundle publishes a sealed bundle (JSON) on aap.bundle.sealed. The announcement is only
// a hint and may be lost. Table bundles is the record.
func (c *Client) AnnounceBundle(data []byte) error {
	if err := c.conn.Publish(bundleSubject, data); err != nil {
		return fmt.Errorf("announce a bundle: %w", classify(err))
	}
	return nil
}

// trialBytes is more than a block of the disk, so each trial needs new space, even where the
// previous message ended.
const trialBytes = 8 << 10

// trialSubject is that of a key that no handshake message has. Its bucket forgets it after
// HandshakeMemory, and keeps one revision of it.
const trialSubject = "$KV." + Handshakes + ".trial"

// Trial makes the broker store a small message, which replaces the previous one, and returns nil
// when it is stored. A broker with a full disk still answers a Ping, and for some of its errors a
// publisher gets no answer.
func (c *Client) Trial(ctx context.Context) error {
	err := c.unlessRefused(ctx, func(ctx context.Context) error {
		_, err := c.js.Publish(ctx, trialSubject, make([]byte, trialBytes))
		return classify(err)
	}, trialSubject)
	if err != nil {
		return fmt.Errorf("store a trial message: %w", err)
	}
	return nil
}
