package broker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// smallDisk mounts a file system of its own for the test.
func smallDisk(t *testing.T, megabytes int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, size(megabytes)); errors.Is(err, syscall.EPERM) {
		t.Skip("this test mounts a file system, which needs the rights of root")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func size(megabytes int) string { return fmt.Sprintf("size=%dm", megabytes) }

// publisher sends records of half a megabyte, each another one.
type publisher struct {
	*stream.Committer
	sent, taken int
}

// publish reports whether the broker takes a record.
func (p *publisher) publish(t *testing.T) bool {
	t.Helper()
	p.sent++
	data := make([]byte, 1<<19)
	copy(data, fmt.Sprint(p.sent))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	outcomes, err := p.Publish(ctx, []stream.Record{{Agent: "a", Data: data, Digest: schema.DigestOf(data)}})
	if err == nil {
		err = outcomes[0].Err
	}
	if err == nil {
		p.taken++
	} else if !errors.Is(err, stream.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return err == nil
}

// until publishes until the broker takes a record, or refuses three in a row: one alone may
// be slow on a busy machine.
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
			t.Fatalf("after %d of %d records the broker never came to this: taken %v", p.taken, p.sent, taken)
		}
	}
}

// A broker whose disk was full takes records again when there is room, without anybody's
// help: where its limit was reached and the disk has grown, and where the disk itself was
// full, which its store does not forget. What was acknowledged before is there.
func TestFullDiskHeals(t *testing.T) {
	disk := smallDisk(t, 64)
	b := start(t, broker.Config{DataDir: disk})
	connect(t, b)
	client, err := stream.Connect(t.Context(), stream.Config{URL: b.URL(), Timeout: time.Second}) // which is what a refusal takes
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p := &publisher{Committer: client.NewCommitter(stream.CommitConfig{})}
	defer p.Close()
	p.until(t, true)

	p.until(t, false) // at its limit
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, size(128)); err != nil {
		t.Fatal(err)
	}
	p.until(t, true)

	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 128<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	pid := b.Pid()
	p.until(t, false)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	p.until(t, true)
	if b.Pid() == pid {
		t.Error("the broker was not stuck: this test shows nothing")
	}

	consumer := openWhenBack(t, client)
	defer consumer.Close()
	var messages []stream.Message
	for ended := false; !ended; {
		had := len(messages)
		var err error
		if messages, err = consumer.Fetch(t.Context(), messages, 1000, 0, time.Second); err != nil {
			t.Fatal(err)
		}
		ended = len(messages) == had
	}
	if len(messages) < p.taken {
		t.Errorf("%d messages are there, %d were acknowledged", len(messages), p.taken)
	}
}
