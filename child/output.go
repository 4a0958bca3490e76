package child

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// quotedBytes is how much of the child's last output an error quotes.
const quotedBytes = 2048

// openOutput opens a new output file and renames the previous one to Output.old. The output
// is a file, not a pipe to this process: a child whose parent was killed can still write
// while it ends cleanly.
func (p *Process) openOutput() (*os.File, error) {
	err := os.Rename(p.cfg.Output, p.cfg.Output+".old")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("keep the output of the previous process: %w", err)
	}
	flags := os.O_CREATE | os.O_TRUNC | os.O_WRONLY | os.O_APPEND
	f, err := os.OpenFile(p.cfg.Output, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the output file: %w", err)
	}
	return f, nil
}

// LastLines returns the end of the child's output, at most 2 KiB of whole
// lines without terminal escapes. If the file cannot be read, it returns the reason instead.
func (p *Process) LastLines() string {
	text, err := tail(p.cfg.Output, quotedBytes)
	if err != nil {
		return fmt.Sprintf("(output not readable: %v)", err)
	}
	return text
}

// escapes matches what a terminal would interpret; in a log it is noise.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]|\r`)

func tail(path string, limit int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	start := max(0, info.Size()-limit)
	b, err := io.ReadAll(io.NewSectionReader(f, start, limit))
	if err != nil {
		return "", err
	}
	text := string(b)
	if _, rest, found := strings.Cut(text, "\n"); found && start > 0 {
		text = rest
	}
	return strings.TrimSpace(escapes.ReplaceAllString(text, "")), nil
}
