package handshake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Memory is the bucket of the messages that were answered (stream.Handshakes),
// which forgets them when they are no longer fresh.
type Memory interface {
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Matching(ctx context.Context, pattern string, most int) (values [][]byte, err error)
}

// asked is what is remembered of a card request, for the check that follows it.
type asked struct {
	Responder string          `json:"responder"`
	Request   json.RawMessage `json:"request"`
}

// keyOf names a message by its type, request_id and sender (AAP section 9.4). The
// ids are hashed: they may be longer than the broker lets a key be.
func keyOf(kind schema.MessageType, requestID, sender string) string {
	return string(kind) + "." + hashed(requestID) + "." + hashed(sender)
}

func hashed(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// once remembers a message before it is answered. Of all that ask at the same
// time, in whatever process, one is let through; the others get a Problem.
func (s *Service) once(ctx context.Context, m schema.Handshake, sender string, value []byte) error {
	_, err := s.memory.Create(ctx, keyOf(m.Type(), m.ID(), sender), value)
	if errors.Is(err, stream.ErrConflict) {
		return problem.New(http.StatusConflict, WordReplayed, "agent %q has sent its %s with this request_id before: "+
			"each handshake has a request_id of its own, and each of its messages is answered once", sender, m.Type())
	}
	return err
}

// maxRequests is how many agents' requests under one request_id are looked at, the earliest
// first. An id is an agent's own, so there is one; whoever speaks for many agents could
// otherwise make each check take as long as the broker's time limit, and others wait.
const maxRequests = 64

// requestOf finds the card request that a check continues, among those with its
// request_id that went to the same responder from an agent that the sender of
// the check may speak for: the one that named the card of the check, else the
// only one.
func (s *Service) requestOf(ctx context.Context, check *schema.CoherenceCheck, q *Question) (*schema.CardRequest, error) {
	remembered, err := s.memory.Matching(ctx, string(schema.MessageCardRequest)+"."+hashed(check.RequestID)+".*", maxRequests)
	if err != nil {
		return nil, err
	}
	var found []*schema.CardRequest
	for _, value := range remembered {
		request, err := recall(value, q.Responder)
		switch {
		case err != nil:
			return nil, err
		case request == nil || !q.Speaks(request.Requester.AgentID):
		case request.Requester.CardID == check.InitiatorCardID:
			return request, nil
		default:
			found = append(found, request)
		}
	}
	if len(found) != 1 {
		return nil, problem.New(http.StatusConflict, WordNoRequest, "agent %q has not answered an %s with this request_id of yours "+
			"within the last %s: send that first", q.Responder, schema.MessageCardRequest, stream.HandshakeMemory)
	}
	return found[0], nil
}

// recall reads a remembered request; nil where it went to another agent.
func recall(value []byte, responder string) (*schema.CardRequest, error) {
	var a asked
	if err := json.Unmarshal(value, &a); err != nil {
		return nil, fmt.Errorf("read a remembered request: %w", err)
	}
	if a.Responder != responder {
		return nil, nil
	}
	message, err := schema.DecodeHandshake(a.Request)
	if err != nil {
		return nil, fmt.Errorf("read a remembered request: %w", err)
	}
	request, ok := message.(*schema.CardRequest)
	if !ok {
		return nil, fmt.Errorf("read a remembered request: it is a %s", message.Type())
	}
	return request, nil
}
