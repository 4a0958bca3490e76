package docs

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aap"
)

// The smallest card of CARDS.md is accepted, and is refused without any of its members.
func TestSmallestCard(t *testing.T) {
	text, err := os.ReadFile("CARDS.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("CARDS.md has no card")
	}
	if err := register(t, object(t, block[1])); err != nil {
		t.Fatal(err)
	}
	for _, member := range slices.Sorted(maps.Keys(object(t, block[1]))) {
		card := object(t, block[1])
		delete(card, member)
		if register(t, card) == nil {
			t.Errorf("the card is accepted without %s", member)
		}
	}
}

// The table of CARDS.md tells without which members a card is refused.
func TestTableOfMembers(t *testing.T) {
	text, err := os.ReadFile("CARDS.md")
	if err != nil {
		t.Fatal(err)
	}
	annotated, err := os.ReadFile("../examples/annotated/card.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	annotated = regexp.MustCompile(`(?m)^ *//.*\n`).ReplaceAll(annotated, nil)
	rows := regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| [^|]+ \\| ([^|]+) \\|$").FindAllStringSubmatch(string(text), -1)
	if len(rows) < 15 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		card := object(t, annotated)
		delete(card, "signature") // it covers the member
		within, names := card, strings.Split(row[1], ".")
		for _, name := range names[:len(names)-1] {
			within, _ = within[name].(map[string]any)
		}
		last := names[len(names)-1]
		if _, ok := within[last]; !ok && last != "signature" {
			t.Errorf("the annotated card has no %s", row[1])
		}
		delete(within, last)
		if refused := register(t, card) != nil; refused != strings.Contains(row[2], "refused") {
			t.Errorf("%s: CARDS.md says: %s; registration refuses: %v", row[1], row[2], refused)
		}
	}
}

func object(t *testing.T, text []byte) (value map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func register(t *testing.T, card map[string]any) error {
	t.Helper()
	text, err := json.Marshal(card)
	if err != nil {
		t.Fatal(err)
	}
	_, err = aap.Register(text)
	return err
}
