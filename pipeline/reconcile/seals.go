package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// sealedSession is the part of a session's record in bucket seals that the check needs.
type sealedSession struct {
	state         seal.State
	part          int64
	sha256        string // of the part, once sealed; of the previous part, while it is planned
	file          string
	expectedParts int64 // number of parts that must have a bundle row
	compared      bool  // it was compared with its bundle rows
	stream        int64 // of the part: when stream TRACES was created, in Unix nanoseconds
}

// settled returns the last part whose bundle was recorded everywhere when the record was read.
func (s *sealedSession) settled() int64 {
	switch {
	case s == nil:
		return 0
	case s.state == seal.Sealed:
		return s.part
	}
	return s.part - 1
}

// agrees reports whether the record matches a session's last bundle row, or is of a part that is
// being sealed.
func (s *sealedSession) agrees(last *store.Bundle) bool {
	part, sha256 := int64(last.Part), last.SHA256.String()
	switch {
	case s == nil:
		return false
	case s.state == seal.Sealed:
		return s.part == part && s.sha256 == sha256
	case s.part == part:
		return s.file == last.Path
	}
	return s.part == part+1 && s.sha256 == sha256
}

func sealedSessionOf(value []byte) (*sealedSession, error) {
	record, err := seal.Decode(value)
	if err != nil {
		return nil, err
	}
	s := &sealedSession{state: record.State, part: record.Part, sha256: record.SHA256, file: record.File, stream: record.StreamCreated.UnixNano()}
	if record.State == seal.Planned {
		s.sha256 = record.Previous
	}
	s.expectedParts = s.settled()
	return s, nil
}

// readSeals reads bucket seals. It runs before the steps that read what is written after a seal.
func (c *check) readSeals(ctx context.Context) (err error) {
	if c.seals, err = c.Client.Bucket(ctx, stream.Seals); err != nil {
		return err
	}
	c.sessions = map[store.SessionKey]*sealedSession{}
	watching, done := context.WithCancel(ctx)
	defer done()
	err = c.seals.Watch(watching, ">", 0, func(change stream.Change) {
		if !strings.Contains(change.Key, ".") || change.Deleted { // keys without a dot hold the exporter's own state
			return
		}
		key, err := sessionOf(change.Key)
		if err != nil {
			c.differ(Difference{Kind: SealDiffers}, "key %q of bucket seals does not name a session: %v", change.Key, err)
			return
		}
		s, err := sealedSessionOf(change.Value)
		if err != nil {
			c.differ(Difference{Kind: SealDiffers, AgentID: key.AgentID, SessionID: key.SessionID}, "%v", err)
			return
		}
		c.sessions[key] = s
	}, done)
	if err != nil && (!errors.Is(err, context.Canceled) || ctx.Err() != nil) {
		return fmt.Errorf("read the seals: %w", err)
	}
	return nil
}

// sessionOf parses a key of bucket seals (seal.Key).
func sessionOf(key string) (store.SessionKey, error) {
	agent, session, _ := strings.Cut(key, ".")
	var of store.SessionKey
	var err error
	if of.AgentID, err = subject.Agent(agent); err != nil {
		return of, err
	}
	of.SessionID, err = subject.Agent(session)
	return of, err
}

// seal reads a session's record again; nil where there is none.
func (c *check) seal(ctx context.Context, key store.SessionKey) (*sealedSession, error) {
	value, _, err := c.seals.GetNewest(ctx, seal.Key(key.AgentID, key.SessionID))
	if errors.Is(err, stream.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return sealedSessionOf(value)
}
