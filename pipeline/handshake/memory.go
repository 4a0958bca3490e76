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

// Memory is the bucket of answered messages (stream.Handshakes). It forgets messages that are no
// longer fresh.
type Memory interface {
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Matching(ctx context.Context, pattern string, most int) (values [][]byte, err error)
}

// asked is the stored part of a card request that the following check needs.
type asked struct {
	Responder string          `json:"responder"`
	Request   json.RawMessage `json:"request"`
}

// keyOf identifies a message by its type, request_id and sender (AAP section 9.4). The ids are
// hashed, because they may be longer than a key of the broker.
func keyOf(kind schema.MessageType, requestID, sender string) string {
	return string(kind) + "." + hashed(requestID) + "." + hashed(sender)
}

func hashed(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// once stores a message before it is answered. Of all concurrent requests, in any process, one
// succeeds. The others get a Problem.
func (s *Service) once(ctx context.Context, m schema.Handshake, sender string, value []byte) error {
	_, err := s.Memory.Create(ctx, keyOf(m.Type(), m.ID(), sender), value)
	if errors.Is(err, stream.ErrConflict) {
		return problem.New(http.StatusConflict, WordReplayed, "agent %q has sent its %s with this request_id before: "+
			"each handshake has a request_id of its own, and each of its messages is answered once", sender, m.Type())
	}
	return err
}

// maxRequests is how many agents' requests with one request_id are read, earliest first. Agents
// choose their ids independently, so there is usually one. Otherwise a sender for many agents
// could make each check take as long as the broker's time limit, and delay others.
const maxRequests = 64

// requestOf finds the card request that a check continues. It considers the requests with its
// request_id to the same responder, from an agent for which the sender of the check may speak. It
// chooses the one that named the card of the check, or else the only one.
func (s *Service) requestOf(ctx context.Context, check *schema.CoherenceCheck, q *Question) (*schema.CardRequest, error) {
	remembered, err := s.Memory.Matching(ctx, string(schema.MessageCardRequest)+"."+hashed(check.RequestID)+".*", maxRequests)
	if err != nil {
		return nil, err
	}
	var found []*schema.CardRequest
	for _, value := range remembered {
		var a asked
		var request *schema.CardRequest
		err := json.Unmarshal(value, &a)
		if err == nil && a.Responder == q.Responder {
			err = decodeAs("request", a.Request, &request)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("read a stored request: %w", err)
		case request == nil || !q.Speaks(request.Requester.AgentID): // to or from another agent
		case request.Requester.CardID == check.InitiatorCardID:
			return request, nil
		default:
			found = append(found, request)
		}
	}
	if len(found) != 1 {
		return nil, problem.New(http.StatusConflict, WordNoRequest, "agent %q has not answered a request of yours (%s) with this request_id "+
			"within the last %s: send that first", q.Responder, schema.MessageCardRequest, stream.HandshakeMemory)
	}
	return found[0], nil
}
