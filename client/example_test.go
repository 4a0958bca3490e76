package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/schema"
)

// first is a trace, and second lacks the selected option of its decision.
var (
	first  = pipelinetest.Trace("tr-1", "did:web:shop.example", "ac-shop-7", "sess-1", "2026-02-01T00:00:00Z", "search").Data
	second = bytes.Replace(first, []byte(`"selected":"o",`), nil, 1)
)

// An agent publishes two traces and reads the outcome of each.
func ExamplePublisher_Publish() {
	ingestURL := ingestThatAnswers(`{"line":1,"trace_id":"tr-1","status":"accepted","faults":[]}
{"line":2,"trace_id":"tr-1","status":"refused","faults":[{"pointer":"/decision/selected","message":"is missing (required)"}]}`)

	publisher := &client.Publisher{URL: ingestURL, Token: "the agent's"}
	lines := [][]byte{first, second} // one trace each: JSON without a line break
	outcomes, err := publisher.Publish(context.Background(), lines)
	var problem *client.Problem
	switch {
	case errors.As(err, &problem):
		log.Fatal(problem.Word) // ingest refused the request ("token", "scope", …) or stayed unavailable
	case err != nil:
		log.Fatal(err) // ingest could not be reached: keep the lines without an outcome, and publish them later
	}
	for _, o := range outcomes {
		fmt.Println(o.TraceID, o.Status)
		for _, fault := range o.Faults {
			fmt.Println(fault.Pointer, fault.Message)
		}
	}
	// Output:
	// tr-1 accepted
	// tr-1 refused
	// /decision/selected is missing (required)
}

// A shopping agent records a decision and the call of a tool.
func ExampleRecorder() {
	ingestURL := ingestThatAnswers(`{"line":1,"trace_id":"tr-1","status":"accepted","faults":[]}
{"line":2,"trace_id":"tr-2","status":"accepted","faults":[]}`)
	spool, err := os.MkdirTemp("", "spool")
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(spool); err != nil {
			log.Print(err)
		}
	}()

	recorder, err := client.NewRecorder(client.RecorderConfig{AgentID: "did:web:shop.example", CardID: "ac-shop-1", URL: ingestURL, Spool: spool})
	if err != nil {
		log.Fatal(err) // a setting that cannot work
	}
	session := recorder.Session("", client.KeepOpen()) // without KeepOpen, End requests that it be sealed
	session.Record(client.Decision{
		Action: "recommend_product", Type: schema.ActionRecommend, Parameters: map[string]any{"query": "kettle"},
		Alternatives: []client.Alternative{
			{OptionID: "A", Description: "steel kettle", Score: new(0.9)},
			{OptionID: "B", Description: "sponsored kettle", Score: new(0.7), Flags: []string{"sponsored_content"}},
		},
		Selected: "A", Reasoning: "It fits the budget. B is sponsored.", Values: []string{"principal_benefit", "transparency"},
	})
	call := session.Begin(client.Decision{Action: "search", Parameters: map[string]any{"query": "kettle"}})
	goods, err := []string{"steel kettle"}, error(nil) // the tool
	call.End(goods, err)
	session.End()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := recorder.Close(ctx); err != nil {
		log.Print(err) // the spool keeps what is left for the agent's next recorder
	}
	fmt.Println(recorder.Stats().Accepted, "traces are stored")
	// Output:
	// 2 traces are stored
}

// ingestThatAnswers returns the address of an ingest that gives one answer.
func ingestThatAnswers(answer string) string {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, answer) })).URL
}

// A shopping agent asks whether it can compare products together with a
// supplier's agent.
func ExampleClient_Handshake() {
	transport, err := client.NewHTTP(client.HTTPConfig{URL: "https://supplier.example:8443", Token: "the shopping agent's"})
	if err != nil {
		log.Fatal(err)
	}
	defer transport.Close()
	shop := &client.Client{
		Transport: transport,
		AgentID:   "did:web:shop.example",
		CardID:    "ac-shop-7",
		Values:    []string{"principal_benefit", "transparency"},
		Keys:      nil, // GET /v1/handshake/keys of the supplier's service, obtained over a trusted connection
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	result, err := shop.Handshake(ctx, "did:web:supplier.example", client.Task{
		Type:           "product_comparison",
		ValuesRequired: []string{"principal_benefit", "transparency"},
	})
	if err != nil {
		log.Fatal(err) // the result is unknown: do not proceed
	}
	if !result.Proceed {
		for _, reason := range result.Answer.Reasons {
			fmt.Println(reason.Description)
		}
		return
	}
	fmt.Println("proceed, as far as the declared values go:", result.Answer.Coherence.Score)
}

// The runtime of an agent receives a message, calls a tool on its authority, and has
// the result signed before the model sees it.
func ExampleRuntime() {
	gateway, err := client.NewHTTP(client.HTTPConfig{URL: "https://gateway.example:8443", Token: "the runtime's"})
	if err != nil {
		log.Fatal(err)
	}
	defer gateway.Close()
	runtime := &client.Runtime{HTTP: gateway, AgentID: "did:web:shop.example", SessionID: "sess-1"}
	ctx := context.Background()

	var incoming client.SignedMessage // as the sender's gateway answered, over any transport
	received, err := runtime.Receive(ctx, incoming.Wrapped, &incoming.Envelope)
	if err != nil {
		log.Fatal(err) // the model does not see it
	}
	fmt.Println("for the model:", received.Text)

	permission, err := runtime.Call(ctx, received.MessageID, "read_file")
	if err != nil {
		log.Fatal(err) // the tool is not called
	}
	answer := json.RawMessage(`{"text": "what the file says"}`)
	signed, err := runtime.Result(ctx, "read_file", answer)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("context.metadata.message_auth of the trace: %+v\n", client.Cite(permission, signed))
}
