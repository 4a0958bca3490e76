// Command nats publishes a session on NATS, without ingest. The agent's card must be registered before, with plumbline card put:
// cards are registered with ingest.
//
// usage: go run ./examples/nats [DIRECTORY]   of card.json and session.jsonl
//
// NATS_URL is the address of the server. NATS_SEED_FILE is the file with the agent's seed that plumbline nats-config wrote; the
// broker of plumbline up has no users for agents, so for a trial NATS_URL includes the user and password of endpoints.json.
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
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	directory := "examples"
	if len(os.Args) > 1 {
		directory = os.Args[1]
	}
	if err := publish(directory); err != nil {
		log.Fatal(err)
	}
}

func publish(directory string) error {
	session, err := os.ReadFile(filepath.Join(directory, "session.jsonl"))
	if err != nil {
		return err
	}
	traces := bytes.Split(bytes.TrimSpace(session), []byte("\n"))
	var first struct {
		AgentID string `json:"agent_id"`
	}
	if err := json.Unmarshal(traces[0], &first); err != nil {
		return err
	}
	agent := token(first.AgentID)

	options := []nats.Option{nats.CustomInboxPrefix("_INBOX_agent." + agent)} // the only inbox that an agent may read
	if seed := os.Getenv("NATS_SEED_FILE"); seed != "" {
		login, err := nats.NkeyOptionFromSeed(seed)
		if err != nil {
			return err
		}
		options = append(options, login)
	}
	connection, err := nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), options...)
	if err != nil {
		return err
	}
	defer connection.Close()
	broker, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, trace := range traces {
		// The subject names the agent. The answer comes once the trace is on the broker's disk. Without an answer, publish the
		// same bytes again: they are stored once.
		stored, err := broker.Publish(ctx, "aap.trace."+agent, trace)
		if err != nil {
			return fmt.Errorf("publish a trace: %w", err)
		}
		fmt.Println("stored as message", stored.Sequence)
	}
	return nil
}

// token returns an agent's id as one token of a subject: letters, digits, _ and - stay as they
// are, every other byte is = and two hexadecimal digits.
func token(agentID string) string {
	var b strings.Builder
	for i := range len(agentID) {
		c := agentID[i]
		if c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}
