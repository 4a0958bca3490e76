package obs

import (
	"bytes"
	"log"
	"log/slog"
)

// TakeStandardLog makes logger the process's default one, and writes the lines of the standard log package to it as
// warnings, without what they quote: the HTTP client of the standard library quotes what a server sent
// unasked, and an alert's receiver may have sent the alert back.
func TakeStandardLog(logger *slog.Logger) {
	slog.SetDefault(logger)
	log.SetFlags(0)
	log.SetOutput(withoutQuotes{logger})
}

type withoutQuotes struct{ logger *slog.Logger }

func (w withoutQuotes) Write(line []byte) (int, error) {
	text, _, quotes := bytes.Cut(line, []byte{'"'})
	w.logger.Warn(string(bytes.TrimSpace(text)), "left_out", quotes)
	return len(line), nil
}
