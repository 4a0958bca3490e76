package ingest

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Publisher stores traces durably (stream.Committer).
type Publisher interface {
	Publish(ctx context.Context, records []stream.Record) ([]stream.Outcome, error)
}

// chunkLines is how many lines are committed together: one full batch of the broker. There are
// fewer when they fill the window.
const chunkLines = 1000

// maxLines limits the size of the answer to one request.
const maxLines = 100_000

// upload is one POST /v1/traces in progress.
type upload struct {
	*server
	*desk
	grant   auth.Grant
	lines   lines
	unread  bool // the body may have more lines
	suspect bool // the broker's client may still use parts of the window
}

// run admits and commits chunk after chunk, up to the end of the body. In every case the answer
// holds the outcome of each line that was read. The returned problem is why the rest was not
// read.
func (u *upload) run(ctx context.Context) *problem {
	for {
		end := u.fill()
		u.unread = !errors.Is(end, io.EOF)
		if p := u.commit(ctx); p != nil {
			return p
		}
		switch {
		case !u.unread:
			return nil
		case end != nil && !errors.Is(end, errWindowFull):
			return bodyProblem(end)
		case u.answered() >= maxLines:
			return problemf(http.StatusRequestEntityTooLarge, "too_large", "more than %d lines: send them in several requests", maxLines)
		case u.stopping():
			return pushBack(0, "the service is about to stop: send the rest to another instance, or a little later")
		}
		u.lines.release()
	}
}

// larger returns the next larger window. It returns nil if there is none, or if wait is false and
// its memory is not free.
func (u *upload) larger(ctx context.Context, held *holding, wait bool) ([]byte, error) {
	next := len(u.windows)
	if next == len(windowSizes) || !wait && !held.tryGrow(int64(windowSizes[next])) {
		return nil, nil
	}
	if wait {
		if p := held.grow(ctx, int64(windowSizes[next])); p != nil {
			return nil, p
		}
	}
	return u.desks.larger(u.desk), nil
}

func (u *upload) answered() (n int) {
	for _, count := range u.answer.counts {
		n += count
	}
	return n
}

// fill admits lines until the chunk is full (it returns nil or errWindowFull) or the body ends
// (any other error).
func (u *upload) fill() error {
	for len(u.results) < chunkLines {
		line, err := u.lines.next()
		switch {
		case errors.Is(err, errLineLong):
			u.refuseLong(line)
		case err != nil:
			return err
		default:
			if err := u.admit(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// admit turns the line into a record or a refusal. With the error errWindowFull the line must be
// read again.
func (u *upload) admit(line []byte) error {
	t := &u.trace
	if err := u.decoder.Admit(t, "", line); err != nil {
		first := u.lines.number
		b, again := u.lines.block(line)
		switch {
		case again != nil:
			return again
		case b != nil:
			u.refuseBlock(first, b)
		default:
			u.refuse(refused, refusalOf(err), line)
		}
		return nil
	}
	if !u.grant.SpeaksFor(t.AgentID) {
		u.refuse(forbidden, foreign(t.AgentID), line)
		return nil
	}
	u.results = append(u.results, result{line: u.lines.number, traceID: t.TraceID, warnings: u.warnings(), name: u.stored.name(t.AgentID, t.TraceID)})
	u.records = append(u.records, stream.Record{Agent: t.AgentID, Data: t.Raw, Digest: t.Digest})
	return nil
}
