package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/plumbline/plumbline/client"
)

// A shopping agent asks whether it can compare products together with a
// supplier's agent.
func Example() {
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
