package stream

import (
	"context"
	"time"
)

// KeepAlive restarts the ack wait of every message while they are being processed.
func KeepAlive(messages []Message) error {
	for i := range messages {
		if err := messages[i].InProgress(); err != nil {
			return err
		}
	}
	return nil
}

// Hold keeps messages alive until release is called or ctx ends, so they are not redelivered
// while they are being processed. It passes errors to failed; after an error the messages may be
// redelivered. release returns once nothing more is sent.
func Hold(ctx context.Context, messages []Message, failed func(error)) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(ackWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := KeepAlive(messages); err != nil {
					failed(err)
				}
			}
		}
	}()
	return func() { cancel(); <-ended }
}
