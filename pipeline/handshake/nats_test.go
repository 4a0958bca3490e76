package handshake_test

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// The subject identifies the sender. A refusal is an error of a micro service, with the same JSON
// as over HTTP.
func TestOverNATS(t *testing.T) {
	r := newRig(t)
	client := r.broker.Connect()
	service, err := r.service().ServeNATS(t.Context(), client, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(r.broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	ask := func(on string, data []byte) *nats.Msg {
		answer, err := conn.Request(on, data, 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	toB := subject.Handshake("b", "a")
	for _, c := range []struct {
		on   string
		raw  []byte
		kind schema.MessageType
		code string
		word string
	}{
		{on: toB, raw: request("r-1"), kind: schema.MessageCardResponse},
		{on: toB, raw: check("r-1"), kind: schema.MessageCoherenceResult},
		{on: toB, raw: check("r-1"), code: "409", word: handshake.WordReplayed},
		{on: subject.Handshake("b", "x"), raw: request("r-2"), code: "403", word: handshake.WordForbidden},
		{on: subject.Handshake("nobody", "a"), raw: request("r-2"), code: "404", word: handshake.WordNoCard},
		{on: "aap.handshake.b.=61", raw: request("r-2"), code: "400", word: schema.ReasonInvalidHandshake},
		{on: toB, raw: []byte("{"), code: "400", word: schema.ReasonInvalidJSON},
	} {
		answer := ask(c.on, c.raw)
		if c.code == "" {
			message, err := schema.DecodeHandshake(answer.Data)
			if err != nil || message.Type() != c.kind {
				t.Errorf("%s on %s: %v %s", c.raw, c.on, err, answer.Data)
			}
			continue
		}
		var p problem.Problem
		if err := json.Unmarshal(answer.Data, &p); err != nil {
			t.Fatal(err)
		}
		header := answer.Header
		if header.Get(micro.ErrorCodeHeader) != c.code || header.Get(micro.ErrorHeader) != p.Message || p.Word != c.word {
			t.Errorf("%s on %s: %v %s, want %s %s", c.raw, c.on, header, answer.Data, c.code, c.word)
		}
	}
	var info micro.Info
	if err := json.Unmarshal(ask("$SRV.INFO."+handshake.ServiceName, nil).Data, &info); err != nil {
		t.Fatal(err)
	}
	used := key.Keys()[0]
	if want := base64.StdEncoding.EncodeToString(used.Public()); info.Metadata["public_key"] != want || info.Metadata["key_id"] != used.KeyID {
		t.Errorf("the service's info is %+v", info)
	}
	if err := service.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}
