package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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

// Deliver stores what open gives, whose SHA-256 that is, under a name, unless it is
// there already. Until all of it is stored the name shows what it showed before.
func (o *Objects) Deliver(ctx context.Context, name, sha256 string, open func() (io.ReadCloser, error)) error {
	ctx, cancel := o.client.within(ctx, objectTimeout)
	defer cancel()
	info, err := o.store.GetInfo(ctx, name)
	if err == nil && info.Metadata[objectDigest] == sha256 {
		return nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return o.fault(name, err)
	}
	data, err := open()
	if err != nil {
		return o.fault(name, err)
	}
	defer func() { _ = data.Close() }()
	_, err = o.store.Put(ctx, jetstream.ObjectMeta{Name: name, Metadata: map[string]string{objectDigest: sha256}}, data)
	return o.fault(name, err)
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
