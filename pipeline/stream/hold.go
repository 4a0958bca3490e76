package stream

import (
	"context"
	"time"
)

// KeepAlive starts the ack wait of every message anew, while they are worked on.
func KeepAlive(messages []Message) error {
	for i := range messages {
		if err := messages[i].InProgress(); err != nil {
			return err
		}
	}
	return nil
}

// Hold keeps messages alive until release is called or ctx ends, so that they
// do not come again while they are worked on. Errors are told to failed; the
// messages may come again then. release returns when no more is sent.
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
