package client_test

import (
	"context"
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
		Keys:      nil, // what GET /v1/handshake/keys of the supplier's service told over a trusted way
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	result, err := shop.Handshake(ctx, "did:web:supplier.example", client.Task{
		Type:           "product_comparison",
		ValuesRequired: []string{"principal_benefit", "transparency"},
	})
	if err != nil {
		log.Fatal(err) // nothing is known: do not proceed
	}
	if !result.Proceed {
		for _, reason := range result.Answer.Reasons {
			fmt.Println(reason.Description)
		}
		return
	}
	fmt.Println("proceed, as far as the declared values go:", result.Answer.Coherence.Score)
}
