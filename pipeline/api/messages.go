package api

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/message/wire"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
)

// maxMessageBytes is more than enough for a text or a tool result with its escapes.
const maxMessageBytes = 4 << 20

// postMessage signs a message. It answers 201, or 202 if the receiver will not accept the message
// until a person approves it.
func (a *API) postMessage(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var q wire.SignRequest
	if err := a.question(w, r, grant, &q, &q.AgentID); err != nil {
		return 0, err
	}
	signed, err := a.messages.Sign(r.Context(), &q, messages.Sender{Source: grant.Source, Name: grant.Name})
	if err == nil && signed.Reason != "" {
		return problem.WriteJSON(w, http.StatusAccepted, signed), nil
	}
	return answered(w, http.StatusCreated, signed, err)
}

// verifyMessage decides whether the asking runtime's agent accepts a message. An envelope may
// have further members, which belong to its sender.
func (a *API) verifyMessage(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var q wire.VerifyRequest
	if err := a.question(w, r, grant, &q, &q.AgentID, json.RejectUnknownMembers(false)); err != nil {
		return 0, err
	}
	verification, err := a.messages.Verify(r.Context(), &q)
	return answered(w, http.StatusOK, verification, err)
}

func (a *API) postToolCall(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var q wire.CallRequest
	if err := a.question(w, r, grant, &q, &q.AgentID); err != nil {
		return 0, err
	}
	decision, err := a.messages.Call(r.Context(), &q)
	return answered(w, http.StatusOK, decision, err)
}

func (a *API) postToolResult(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var q wire.ResultRequest
	if err := a.question(w, r, grant, &q, &q.AgentID); err != nil {
		return 0, err
	}
	signed, err := a.messages.SignResult(r.Context(), &q)
	return answered(w, http.StatusCreated, signed, err)
}

func (a *API) verifyToolResult(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var q wire.ResultCheck
	if err := a.question(w, r, grant, &q, &q.AgentID); err != nil {
		return 0, err
	}
	verdict, err := a.messages.VerifyResult(r.Context(), &q)
	return answered(w, http.StatusOK, verdict, err)
}

// question reads a body into q, and checks that the grant covers the agent in q.
func (a *API) question(w http.ResponseWriter, r *http.Request, grant auth.Grant, q any, agent *string, options ...json.Options) error {
	if err := a.router.JSON(w, r, maxMessageBytes, q, "docs/MESSAGES.md describes the form", options...); err != nil {
		return err
	}
	return request.MaySpeakFor(grant, *agent)
}

// answered answers with a decision, or returns the reason why there is none.
func answered(w http.ResponseWriter, code int, decision any, err error) (int, error) {
	if err != nil {
		return 0, fmt.Errorf("decide about a message: %w", err)
	}
	return problem.WriteJSON(w, code, decision), nil
}
