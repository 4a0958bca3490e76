package ingest

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/message/wire"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// prepareMessages creates the service that signs messages. Its key exists only in the memory of
// this process.
func (s *server) prepareMessages(bucket *stream.Bucket) (err error) {
	random := s.random
	if random == nil {
		random = rand.Reader
	}
	s.messageBucket = bucket
	s.messages, err = messages.New(messages.Parts{
		Policies: s.policies, Records: messages.NewRecords(bucket), Window: s.cfg.MessageWindow,
		Now: time.Now, Random: random, Metrics: s.env.Metrics,
	})
	return err
}

// moveAcceptances moves acceptances that an earlier version stored to where this version looks
// for them, until none is left or ctx ends.
func (s *server) moveAcceptances(ctx context.Context) error {
	for {
		younger := 0
		err := s.env.Retry.Do(ctx, "move acceptances of messages", func() (err error) {
			younger, err = s.messages.MoveAcceptances(ctx, s.messageBucket)
			return err
		})
		if err != nil || younger == 0 {
			return service.UnlessEnded(ctx, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.cfg.MessageWindow):
		}
	}
}

// maxMessageBytes is more than enough for a text or a tool result with its escapes.
const maxMessageBytes = 4 << 20

// postMessage signs a message. It answers 201, or 202 if the receiver will not accept the message
// until a person approves it.
func (s *server) postMessage(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	var q wire.SignRequest
	if p := s.question(w, r, grant, &q, &q.AgentID, json.RejectUnknownMembers(true)); p != nil {
		return p.write(w)
	}
	signed, err := s.messages.Sign(r.Context(), &q, messages.Sender{Source: grant.Source, Name: grant.Name})
	if err == nil && signed.Reason != "" {
		return writeJSON(w, http.StatusAccepted, signed)
	}
	return s.decided(w, r, http.StatusCreated, signed, err)
}

// verifyMessage decides whether the asking runtime's agent accepts a message. An envelope may
// have further members, which belong to its sender.
func (s *server) verifyMessage(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	var q wire.VerifyRequest
	if p := s.question(w, r, grant, &q, &q.AgentID); p != nil {
		return p.write(w)
	}
	verification, err := s.messages.Verify(r.Context(), &q)
	return s.decided(w, r, http.StatusOK, verification, err)
}

// postToolCall decides a tool call.
func (s *server) postToolCall(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	var q wire.CallRequest
	if p := s.question(w, r, grant, &q, &q.AgentID, json.RejectUnknownMembers(true)); p != nil {
		return p.write(w)
	}
	decision, err := s.messages.Call(r.Context(), &q)
	return s.decided(w, r, http.StatusOK, decision, err)
}

// postToolResult signs a tool result.
func (s *server) postToolResult(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	var q wire.ResultRequest
	if p := s.question(w, r, grant, &q, &q.AgentID, json.RejectUnknownMembers(true)); p != nil {
		return p.write(w)
	}
	signed, err := s.messages.SignResult(r.Context(), &q)
	return s.decided(w, r, http.StatusCreated, signed, err)
}

// verifyToolResult checks a tool result.
func (s *server) verifyToolResult(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	var q wire.ResultCheck
	if p := s.question(w, r, grant, &q, &q.AgentID, json.RejectUnknownMembers(true)); p != nil {
		return p.write(w)
	}
	verdict, err := s.messages.VerifyResult(r.Context(), &q)
	return s.decided(w, r, http.StatusOK, verdict, err)
}

// question reads a body into q, and checks that the grant covers the agent in q.
func (s *server) question(w http.ResponseWriter, r *http.Request, grant auth.Grant, q any, agent *string, options ...json.Options) *problem {
	raw, p := s.document(w, r, maxMessageBytes, typesOfOther...)
	if p != nil {
		return p
	}
	if err := json.Unmarshal(raw, q, options...); err != nil {
		return unreadable("docs/MESSAGES.md has its form", err)
	}
	return maySpeakFor(*agent, grant)
}

// decided answers with a decision, or with the reason why there is none.
func (s *server) decided(w http.ResponseWriter, r *http.Request, code int, decision any, err error) int {
	if err == nil {
		return writeJSON(w, code, decision)
	}
	if refused := messages.ProblemOf(err); refused != nil {
		return writeJSON(w, refused.Code, refused)
	}
	return s.failure("decide about a message", err).write(w)
}
