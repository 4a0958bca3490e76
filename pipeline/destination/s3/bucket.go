package s3

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/plumbline/plumbline/pipeline/destination"
)

// Bucket is a bucket of a store. It is safe for concurrent use.
type Bucket struct {
	cfg      Config
	client   *minio.Client
	wire     *http.Transport
	secrets  *credentials.Credentials
	location string

	unconditional atomic.Bool // the store does not support If-None-Match
}

const (
	digestKey   = "Sha256" // of an object's metadata, in the client's spelling
	checksumKey = "x-amz-checksum-sha256"

	askTimeout = 30 * time.Second
	// slowest is the lowest accepted transfer rate, in bytes a second. It determines the timeout.
	slowest = 128 << 10
	// largest is the limit of one PUT in bytes.
	largest = 5 << 30
)

func (b *Bucket) Location() string { return b.location }

func (b *Bucket) Close() error {
	b.wire.CloseIdleConnections()
	return nil
}

// Ready returns nil if the bucket exists and these credentials may use it.
func (b *Bucket) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	there, err := b.client.BucketExists(ctx, b.cfg.Bucket)
	switch {
	case err != nil:
		return b.fault("look for the bucket", err)
	case there:
		return nil
	case !b.cfg.CreateBucket:
		return fmt.Errorf("%s: bucket %q does not exist: create it, or set s3_create_bucket", b.location, b.cfg.Bucket)
	}
	if err := b.client.MakeBucket(ctx, b.cfg.Bucket, minio.MakeBucketOptions{Region: b.cfg.Region}); err != nil {
		return b.fault("create the bucket", err)
	}
	return nil
}

// Deliver stores an object unless it exists (destination.Destination).
func (b *Bucket) Deliver(ctx context.Context, name, sha256 string, content io.ReadSeeker) error {
	size, err := content.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > largest {
		return fmt.Errorf("%s: %s has %d bytes, more than the %d of one PUT: lower rotate_bytes", b.location, name, size, int64(largest))
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout+time.Duration(size/slowest)*time.Second)
	defer cancel()
	key := path.Join(b.cfg.Prefix, name)
	there, err := b.find(ctx, key, sha256, size)
	if there || err != nil {
		return err
	}
	err = b.put(ctx, key, sha256, content, size)
	if minio.ToErrorResponse(err).Code != minio.PreconditionFailed {
		return b.fault("store "+key, err)
	}
	// Another writer was faster, or an earlier attempt succeeded after all.
	if there, err = b.find(ctx, key, sha256, size); !there && err == nil {
		err = fmt.Errorf("%s: store %s: the name was taken during the request and is free now", b.location, key)
	}
	return err
}

// find reports whether the object exists. An object with another content is an error.
func (b *Bucket) find(ctx context.Context, key, sha256 string, size int64) (bool, error) {
	info, err := b.client.StatObject(ctx, b.cfg.Bucket, key, minio.StatObjectOptions{Checksum: true})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return false, nil
	}
	if err != nil {
		return false, b.fault("look for "+key, err)
	}
	has := cmp.Or(info.UserMetadata[digestKey], "unknown") // its writer set the metadata
	// The store's own checksum is better. That of a multipart object has a suffix.
	if sum, err := base64.StdEncoding.DecodeString(info.ChecksumSHA256); err == nil && len(sum) > 0 {
		has = hex.EncodeToString(sum)
	}
	if has != sha256 || info.Size != size {
		return false, fmt.Errorf("%s: %s: %w", b.location, key, destination.Taken(has, sha256))
	}
	return true, nil
}

func (b *Bucket) put(ctx context.Context, key, sha256 string, content io.ReadSeeker, size int64) error {
	sum, err := hex.DecodeString(sha256)
	if err != nil {
		return err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	options := minio.PutObjectOptions{
		UserMetadata:   map[string]string{digestKey: sha256, checksumKey: base64.StdEncoding.EncodeToString(sum)},
		SendContentMd5: true, // for stores that do not support SHA-256 checksums
		// A single request: an interrupted multipart upload would leave its parts behind, and the
		// whole object would have no checksum.
		DisableMultipart: true,
	}
	if !b.unconditional.Load() {
		options.SetMatchETagExcept("*")
	}
	_, err = b.client.PutObject(ctx, b.cfg.Bucket, key, content, size, options)
	if minio.ToErrorResponse(err).Code == minio.NotImplemented && !b.unconditional.Swap(true) {
		return b.put(ctx, key, sha256, content, size)
	}
	return err
}

// fault returns an error that names the operation and, where known, the remedy.
func (b *Bucket) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	code := minio.ToErrorResponse(err).Code
	hint := ""
	switch code {
	case minio.AccessDenied, "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken":
		b.secrets.Expire() // the file may have new credentials by now
		source := "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
		if b.cfg.CredentialsFile != "" {
			source = fmt.Sprintf("%s [%s]", b.cfg.CredentialsFile, b.cfg.Profile)
		}
		hint = ": the store does not accept the credentials in " + source + ", or they lack s3:ListBucket, s3:GetObject or s3:PutObject on this bucket"
	case minio.NoSuchBucket:
		hint = ": create the bucket, or set s3_create_bucket"
	case minio.AuthorizationHeaderMalformed, minio.InvalidRegion, "PermanentRedirect", "IllegalLocationConstraintException":
		hint = fmt.Sprintf(": check that s3_region (%s) is the region of the bucket", b.cfg.Region)
	}
	if strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		hint = ": the store uses http, but s3_endpoint says https"
	}
	if code == "" || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %s: %w%s", b.location, doing, err, hint)
	}
	return fmt.Errorf("%s: %s: %s: %w%s", b.location, doing, code, err, hint)
}
