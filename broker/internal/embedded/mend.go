package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// mendStreams repairs streams that a loss of power interrupted while they were created or
// changed: the server would not recover such a stream, and its health check would fail
// forever. The server keeps a stream's settings in one file and their checksum in another,
// replaces each of them as a whole, and writes both before a new stream accepts a message.
//
// Readable settings get a new checksum. mendStreams does not trust their content: at its
// start, each service compares the streams with the settings that it needs.
func mendStreams(dir string, log *slog.Logger) error {
	all := filepath.Join(dir, "jetstream", "$G", "streams")
	streams, err := os.ReadDir(all)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for streams: %w", err)
	}
	for _, s := range streams {
		if err := mendStream(filepath.Join(all, s.Name()), log); err != nil {
			return fmt.Errorf("repair the stream in %s: %w", filepath.Join(all, s.Name()), err)
		}
	}
	return nil
}

func mendStream(stream string, log *slog.Logger) error {
	sumFile := filepath.Join(stream, server.JetStreamMetaFileSum)
	sum, readable, err := checksum(stream)
	if err != nil {
		return err
	}
	if readable {
		if stored, err := os.ReadFile(sumFile); string(stored) == sum || (err != nil && !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		log.Warn("rewrote the checksum of a stream's settings, which were being changed when the server stopped", "directory", stream)
		return durable.WriteFile(sumFile, []byte(sum), 0o640)
	}
	held, err := holdsMessages(filepath.Join(stream, "msgs"))
	if err != nil || held {
		return err // the health check reports a stream with messages: an operator must look at it
	}
	log.Warn("removed a stream whose creation was interrupted", "directory", stream)
	return os.RemoveAll(stream)
}

// checksum returns the checksum that the server computes over a stream's settings, and reports
// whether the settings can be read and belong to this stream.
func checksum(stream string) (sum string, readable bool, err error) {
	text, err := os.ReadFile(filepath.Join(stream, server.JetStreamMetaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	var settings server.FileStreamInfo
	if err != nil || json.Unmarshal(text, &settings) != nil || settings.Name != filepath.Base(stream) {
		return "", false, err
	}
	key := sha256.Sum256([]byte(settings.Name))
	hash, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return "", false, err
	}
	_, _ = hash.Write(text) // never fails
	return hex.EncodeToString(hash.Sum(nil)), true, nil
}

// holdsMessages reports whether a block of messages is not empty.
func holdsMessages(dir string) (bool, error) {
	blocks, err := fs.Glob(os.DirFS(dir), "*.blk")
	for _, block := range blocks {
		info, fault := os.Stat(filepath.Join(dir, block))
		if fault != nil {
			return false, fault
		}
		if info.Size() > 0 {
			return true, nil
		}
	}
	return false, err
}
