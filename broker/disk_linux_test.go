package broker_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker"
	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/durable/durabletest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// publisher sends records of half a megabyte, each with different bytes.
type publisher struct {
	*stream.Committer
	sent  int
	taken []schema.Digest // of what was acknowledged
}

// publish reports whether the broker accepts a record.
func (p *publisher) publish(t *testing.T) bool {
	t.Helper()
	p.sent++
	data := make([]byte, 1<<19)
	copy(data, fmt.Sprint(p.sent))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	digest := schema.DigestOf(data)
	outcomes, err := p.Publish(ctx, []stream.Record{{Agent: "a", Data: data, Digest: digest}})
	if err == nil {
		err = outcomes[0].Err
	}
	if err == nil {
		p.taken = append(p.taken, digest)
	} else if !errors.Is(err, stream.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return err == nil
}

// until publishes until the broker accepts a record, or until it refuses three in a row: a
// single record may be slow on a busy machine.
func (p *publisher) until(t *testing.T, taken bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for refused := 0; ; {
		if p.publish(t) {
			refused = 0
			if taken {
				return
			}
		} else if refused++; !taken && refused == 3 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %d of %d records: the broker never reached the state with taken %v", len(p.taken), p.sent, taken)
		}
	}
}

// A broker whose disk was full accepts records again when there is room, without an operator.
// This holds after its limit was reached and the disk has grown. It also holds after the
// disk itself was full, although the store then refuses messages until it is reopened. All
// messages that were acknowledged before are there.
func TestBrokerRecoversFromAFullDisk(t *testing.T) {
	disk := durabletest.NewGrowing(t, filepath.Join(t.TempDir(), "broker"), 64)
	b := start(t, broker.Config{DataDir: disk.Dir})
	client, p := newPublisher(t, b)
	p.until(t, true)

	p.until(t, false) // the store has reached its limit
	disk.Grow(128)
	p.until(t, true)

	disk.Fill()
	pid := b.Pid()
	p.until(t, false)
	disk.Empty()
	p.until(t, true)
	if b.Pid() == pid {
		t.Error("the broker was not stuck: this test shows nothing")
	}

	p.demandTaken(t, client)
}

// After a loss of power during its work, the broker has everything that it acknowledged,
// and its streams.
func TestLossOfPowerLosesNothing(t *testing.T) {
	disk := durabletest.New(t, filepath.Join(t.TempDir(), "broker"), 128)
	b := start(t, broker.Config{DataDir: disk.Dir})
	client, p := newPublisher(t, b)
	for range 30 {
		p.until(t, true)
	}
	if err := syscall.Kill(b.Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	disk.CutPower()
	at, ended := b.URL(), canceled()
	if err := b.Stop(ended); !errors.Is(err, ended.Err()) { // it is killed
		t.Fatal(err)
	}
	disk.RestorePower()
	if b = start(t, broker.Config{DataDir: disk.Dir}); b.URL() != at {
		t.Errorf("the broker is at %s, and was at %s", b.URL(), at)
	}
	p.demandTaken(t, client)
	p.until(t, true)
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// newPublisher creates the broker's streams and a publisher that works until the test ends.
func newPublisher(t *testing.T, b *broker.Broker) (*stream.Client, *publisher) {
	t.Helper()
	connect(t, b)
	client := brokertest.Connect(t, stream.Config{URL: b.URL(), Timeout: time.Second}) // the time that a refusal takes
	p := &publisher{Committer: client.NewCommitter(stream.CommitConfig{})}
	t.Cleanup(p.Close)
	return client, p
}

// demandTaken demands that each record that the broker took is there, with its bytes.
func (p *publisher) demandTaken(t *testing.T, client *stream.Client) {
	t.Helper()
	consumer := openWhenBack(t, client)
	defer consumer.Close()
	there := map[schema.Digest]bool{}
	for ended := false; !ended; {
		messages, err := consumer.Fetch(t.Context(), nil, 1000, 0, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for i := range messages {
			there[schema.DigestOf(messages[i].Data)] = true
		}
		ended = len(messages) == 0
	}
	lost := slices.DeleteFunc(slices.Clone(p.taken), func(d schema.Digest) bool { return there[d] })
	if len(p.taken) == 0 || len(lost) > 0 {
		t.Errorf("%d of %d acknowledged records are not among the %d that are there: %v", len(lost), len(p.taken), len(there), lost)
	}
}
