package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// removeUnfinished removes what a loss of power left of streams that were just being made.
// The server would not recover such a stream, and its health check would fail for ever. It
// writes both files of a stream's settings before it takes a message.
func removeUnfinished(dir string, log *slog.Logger) error {
	all := filepath.Join(dir, "jetstream", "$G", "streams")
	streams, err := os.ReadDir(all)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for streams: %w", err)
	}
	for _, s := range streams {
		stream := filepath.Join(all, s.Name())
		if isFile(filepath.Join(stream, "meta.inf")) && isFile(filepath.Join(stream, "meta.sum")) {
			continue
		}
		held, err := holdsMessages(filepath.Join(stream, "msgs"))
		if err != nil {
			return fmt.Errorf("look for messages: %w", err)
		}
		if held {
			continue // the health check names the stream: somebody has to look
		}
		log.Warn("a stream that was not made to its end is removed", "directory", stream)
		if err := os.RemoveAll(stream); err != nil {
			return fmt.Errorf("remove a stream that was not made to its end: %w", err)
		}
	}
	return nil
}

// holdsMessages reports whether a block of messages has any bytes.
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

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
