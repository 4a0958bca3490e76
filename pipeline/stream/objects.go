package stream

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/destination"
)

// Objects is an object store of the broker. Safe for concurrent use.
type Objects struct {
	name   string
	client *Client
	store  jetstream.ObjectStore
}

const (
	objectDigest  = "sha256"        // in the metadata of each object
	objectTimeout = 2 * time.Minute // for one of some tens of megabytes
)

// Objects opens an object store, and makes it where it is missing.
func (c *Client) Objects(ctx context.Context, name string) (*Objects, error) {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	store, err := c.js.ObjectStore(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		store, err = c.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: name, Description: "sealed bundles", Storage: jetstream.FileStorage, Replicas: c.cfg.Replicas,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", name, classify(err))
	}
	return &Objects{name: name, client: c, store: store}, nil
}

// Location is the store's address (destination.Destination).
func (o *Objects) Location() string { return "nats:" + o.name }

// Ready returns nil when the store answers.
func (o *Objects) Ready(ctx context.Context) error {
	ctx, cancel := o.client.within(ctx, o.client.cfg.Timeout)
	defer cancel()
	if _, err := o.store.Status(ctx); err != nil {
		return fmt.Errorf("ask for object store %s: %w", o.name, classify(err))
	}
	return nil
}

// Deliver stores content, whose SHA-256 that is, under a name, unless it is there
// already (destination.Destination). Until all of it is stored the name is not there.
func (o *Objects) Deliver(ctx context.Context, name, sha256 string, content io.ReadSeeker) error {
	ctx, cancel := o.client.within(ctx, objectTimeout)
	defer cancel()
	info, err := o.store.GetInfo(ctx, name)
	switch {
	case err == nil && digestOf(info) == sha256:
		return nil
	case err == nil:
		return o.fault(name, destination.Taken(digestOf(info), sha256))
	case !errors.Is(err, jetstream.ErrObjectNotFound):
		return o.fault(name, err)
	}
	_, err = o.store.Put(ctx, jetstream.ObjectMeta{Name: name, Metadata: map[string]string{objectDigest: sha256}}, content)
	return o.fault(name, err)
}

// digestOf is the SHA-256 of an object, as the client computed it: SHA-256=<base64url>.
func digestOf(info *jetstream.ObjectInfo) string {
	encoded, _ := strings.CutPrefix(info.Digest, "SHA-256=")
	sum, err := base64.URLEncoding.DecodeString(encoded)
	if err != nil || len(sum) == 0 {
		return "unknown"
	}
	return hex.EncodeToString(sum)
}

func (o *Objects) fault(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("deliver %s to object store %s: %w", name, o.name, classify(err))
}

// Read returns an object whole, or ErrNotFound.
func (o *Objects) Read(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := o.client.within(ctx, objectTimeout)
	defer cancel()
	data, err := o.store.GetBytes(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of object store %s: %w", name, o.name, classify(err))
	}
	return data, nil
}
