// Command go registers a card and publishes a session with package client.
//
// usage: go run ./examples/go [DIRECTORY]   of card.json and session.jsonl
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/client"
)

func main() {
	directory := "examples"
	if len(os.Args) > 1 {
		directory = os.Args[1]
	}
	if err := publish(context.Background(), directory); err != nil {
		log.Fatal(err)
	}
}

func publish(ctx context.Context, directory string) error {
	card, err := os.ReadFile(filepath.Join(directory, "card.json"))
	if err != nil {
		return err
	}
	session, err := os.ReadFile(filepath.Join(directory, "session.jsonl"))
	if err != nil {
		return err
	}
	var ids struct {
		CardID string `json:"card_id"`
	}
	if err := json.Unmarshal(card, &ids); err != nil {
		return err
	}
	publisher := &client.Publisher{URL: cmp.Or(os.Getenv("PLUMBLINE_URL"), "http://127.0.0.1:8080"), Token: os.Getenv("PLUMBLINE_TOKEN")}
	if _, err := publisher.PutCard(ctx, ids.CardID, card); err != nil {
		return err
	}
	// Publish sends a line again while its outcome is unknown; it is stored once.
	outcomes, err := publisher.Publish(ctx, bytes.Split(bytes.TrimSpace(session), []byte("\n")))
	for _, o := range outcomes {
		fmt.Println(o.TraceID, o.Status)
		for _, fault := range o.Faults {
			fmt.Println(" ", fault.Pointer, fault.Message)
		}
	}
	return err
}
