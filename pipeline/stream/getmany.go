package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// mostBytes is how many bytes of values the server sends at most to one GetMany, and one value
// more.
const mostBytes = 4 << 20

// GetMany reads at most 1,024 keys with one request. It passes each value that it receives to take.
// It may leave out keys that exist: any replica answers, and may lag a little; the values may be
// larger than 4 MiB together; an old server does not answer for several keys. Get says of one key
// whether it exists.
func (b *Bucket) GetMany(ctx context.Context, keys []string, take func(key string, value []byte, revision uint64)) error {
	ask := struct {
		Subjects []string `json:"multi_last"`
		MaxBytes int      `json:"max_bytes"`
	}{make([]string, len(keys)), mostBytes}
	for i, key := range keys {
		ask.Subjects[i] = b.subject(key)
	}
	text, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	return b.do(ctx, "get", fmt.Sprintf("%d keys", len(keys)), func(ctx context.Context) error {
		inbox := b.client.conn.NewInbox()
		answers, err := b.client.conn.SubscribeSync(inbox)
		if err != nil {
			return err
		}
		defer func() { _ = answers.Unsubscribe() }() // an error says that the connection is closed
		if err := b.client.conn.PublishRequest("$JS.API.DIRECT.GET.KV_"+b.name, inbox, text); err != nil {
			return err
		}
		for {
			m, err := answers.NextMsgWithContext(ctx)
			if err != nil {
				return err
			}
			switch m.Header.Get("Status") {
			case "":
			case "503":
				return nats.ErrNoResponders
			default: // 204 is the end; every other status refuses what was asked
				return nil
			}
			revision, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
			if err != nil {
				return fmt.Errorf("read the broker's answer: %w", err)
			}
			if m.Header.Get("KV-Operation") == "" { // else the key was removed
				take(strings.TrimPrefix(m.Header.Get("Nats-Subject"), b.subject("")), m.Data, revision)
			}
		}
	})
}
