package handshake

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// ServiceName is the name of the NATS micro service.
const ServiceName = "plumbline-handshake"

// serviceVersion is the version of the messages and subjects, not of the program.
const serviceVersion = "0.1.0"

// ServeNATS answers on the broker until Drain. The broker decides who may publish on which
// subject. The service's metadata name the key that is in use at the start. The error wraps
// transport.ErrInsecure if the connection is not secure enough for the handshake.
func (s *Service) ServeNATS(ctx context.Context, broker *stream.Client, log *slog.Logger) (*stream.Service, error) {
	if err := broker.Secure(); errors.Is(err, transport.ErrInsecure) {
		return nil, err
	}
	key := s.Keys()[0]
	return broker.Serve(ctx, stream.ServiceConfig{
		Name:        ServiceName,
		Version:     serviceVersion,
		Description: "Value coherence handshake (AAP section 6): ask on aap.handshake.<responder>.<requester>.",
		Metadata: map[string]string{
			"key_id": key.KeyID, "algorithm": schema.SignatureEd25519, "public_key": base64.StdEncoding.EncodeToString(key.PublicKey),
		},
		Endpoint: "handshake",
		Subject:  subject.Handshakes,
	}, func(ctx context.Context, subject string, data []byte) ([]byte, *stream.ServiceFault) {
		answer, err := s.overNATS(ctx, broker, subject, data)
		if err != nil {
			return nil, fault(err, log)
		}
		return answer, nil
	})
}

func (s *Service) overNATS(ctx context.Context, broker *stream.Client, on string, data []byte) ([]byte, error) {
	if err := broker.Secure(); err != nil { // the connection may be a new one
		return nil, err
	}
	responder, requester, err := subject.ParseHandshake(on)
	if err != nil {
		return nil, problem.New(http.StatusBadRequest, schema.ReasonInvalidHandshake, "%v", err)
	}
	return s.Answer(ctx, Question{
		Responder: responder, Transport: OverNATS, Raw: data,
		Speaks: func(agent string) bool { return agent == requester },
	})
}

// fault converts an error for the requester. It logs an error that concerns only the service.
func fault(err error, log *slog.Logger) *stream.ServiceFault {
	p := ProblemOf(err)
	if p == nil {
		log.Error("failed to answer a handshake message", "error", err)
		p = problem.New(http.StatusInternalServerError, WordInternal, "internal error: see the service's log")
	}
	data, err := json.Marshal(p)
	if err != nil {
		log.Error("failed to encode a problem", "error", err)
	}
	return &stream.ServiceFault{Code: p.Code, Description: p.Message, Data: data}
}
