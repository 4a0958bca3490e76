package stream

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Objects is an object store of the broker. It is safe for concurrent use.
type Objects struct {
	name   string
	client *Client
	store  jetstream.ObjectStore
}

const (
	objectDigest  = "sha256"        // in the metadata of each object
	objectTimeout = 2 * time.Minute // enough for an object of some tens of megabytes
)

// Objects opens an object store, and creates it if it is missing.
func (c *Client) Objects(ctx context.Context, name string) (*Objects, error) {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	o := &Objects{name: name, client: c}
	if err := c.unlessRefused(ctx, o.open, o.subjects()...); err != nil {
		return nil, fmt.Errorf("open object store %s: %w", name, o.remedied(err))
	}
	return o, nil
}

func (o *Objects) open(ctx context.Context) (err error) {
	o.store, err = o.client.js.ObjectStore(ctx, o.name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		o.store, err = o.client.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: o.name, Description: "sealed bundles", Storage: jetstream.FileStorage, Replicas: o.client.cfg.Replicas,
		})
	}
	if err != nil {
		return classify(err)
	}
	if _, err = o.store.GetInfo(ctx, "a name that no bundle has"); errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil // the user may read it
	}
	return classify(err)
}

// subjects returns parts of the store's own subjects and of the subjects of requests about it.
func (o *Objects) subjects() []string { return []string{"$O." + o.name + ".", "OBJ_" + o.name} }

// remedied adds the remedy to a refusal.
func (o *Objects) remedied(err error) error {
	if !errors.Is(err, ErrRefused) {
		return err
	}
	return fmt.Errorf("%w; plumbline nats-config --object-store %s adds the rights for this object store; or set another one with object_store of the exporter", err, o.name)
}

// Location returns the store's address (destination.Destination).
func (o *Objects) Location() string { return "nats:" + o.name }

// Ready returns nil if the store answers.
func (o *Objects) Ready(ctx context.Context) error {
	ctx, cancel := o.client.within(ctx, o.client.cfg.Timeout)
	defer cancel()
	if _, err := o.store.Status(ctx); err != nil {
		return fmt.Errorf("check object store %s: %w", o.name, classify(err))
	}
	return nil
}

// Deliver stores content under a name, unless it is already there (destination.Destination).
// sha256 is the SHA-256 of content. If the name has another content, the error wraps fs.ErrExist.
// The name appears only when all of the content is stored.
func (o *Objects) Deliver(ctx context.Context, name, sha256 string, content io.ReadSeeker) error {
	ctx, cancel := o.client.within(ctx, objectTimeout)
	defer cancel()
	err := o.client.unlessRefused(ctx, func(ctx context.Context) error {
		return classify(o.deliver(ctx, name, sha256, content))
	}, o.subjects()...)
	if err != nil {
		return fmt.Errorf("deliver %s to object store %s: %w", name, o.name, o.remedied(err))
	}
	return nil
}

func (o *Objects) deliver(ctx context.Context, name, sha256 string, content io.ReadSeeker) error {
	info, err := o.store.GetInfo(ctx, name)
	switch {
	case err == nil && digestOf(info) == sha256:
		return nil
	case err == nil:
		return fmt.Errorf("%w with SHA-256 %s, not %s; it is left unchanged", fs.ErrExist, digestOf(info), sha256)
	case !errors.Is(err, jetstream.ErrObjectNotFound):
		return err
	}
	_, err = o.store.Put(ctx, jetstream.ObjectMeta{Name: name, Metadata: map[string]string{objectDigest: sha256}}, content)
	return err
}

// digestOf returns the SHA-256 of an object, as the client computed it: SHA-256=<base64url>.
func digestOf(info *jetstream.ObjectInfo) string {
	encoded, _ := strings.CutPrefix(info.Digest, "SHA-256=")
	sum, err := base64.URLEncoding.DecodeString(encoded)
	if err != nil || len(sum) == 0 {
		return "unknown"
	}
	return hex.EncodeToString(sum)
}

// Read returns a whole object, or ErrNotFound.
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
