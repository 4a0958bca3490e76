package similarity

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
)

func compare(t interface{ Fatal(...any) }, a, b Text) TextScore {
	s, err := CompareTexts(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Two texts of two words that share one word, computed by hand.
func TestTextSimilarityByHand(t *testing.T) {
	s := compare(t, Text{Text: "Ab cd!"}, Text{Text: "ab ef?"})
	alone := 1 + math.Log(1.5)
	words := 1 / (1 + 2*alone*alone) // shared: ab; in one text: cd, "ab cd"
	if math.Abs(s.Words-words) > 1e-15 {
		t.Errorf("words %v, want %v", s.Words, words)
	}
	characters := 1 / (1 + 8*alone*alone) // shared: "ab "; in one text: 3 of 3, 3 of 4, 2 of 5
	if math.Abs(s.Characters-characters) > 1e-15 {
		t.Errorf("characters %v, want %v", s.Characters, characters)
	}
	if want := (0.6*words + 0.3*characters) / 0.9; math.Abs(s.Similarity-want) > 1e-15 {
		t.Errorf("similarity %v, want %v: neither text has metadata", s.Similarity, want)
	}
}

func TestTextSimilarityWeighsItsParts(t *testing.T) {
	same, other := Vector{{"value:a", 1}}, Vector{{"value:b", 1}}
	ab, ba := Vector{{"value:a", 1}, {"value:b", 1}}, Vector{{"value:b", 1}, {"value:a", 1}}
	for name, c := range map[string]struct {
		a, b Text
		want float64
	}{
		"all the same":         {Text{"wander far", same}, Text{"wander far", same}, 1},
		"in another order":     {Text{"wander far", ab}, Text{"wander far", ba}, 1},
		"other metadata":       {Text{"wander far", same}, Text{"wander far", other}, 0.9},
		"metadata on one side": {Text{"wander far", same}, Text{"wander far", nil}, 0.9},
		"other text":           {Text{"wander", same}, Text{"sit", same}, 0.1},
		"nothing":              {Text{}, Text{}, 1},
		"nothing and a text":   {Text{}, Text{Text: "wander"}, 0},
		"white space and case": {Text{Text: " Wander\n\tFAR "}, Text{Text: "wander far"}, 1},
		"other scripts":        {Text{Text: "Привет, мир"}, Text{Text: "привет, МИР"}, 1},
	} {
		if s := compare(t, c.a, c.b); !(math.Abs(s.Similarity-c.want) <= 1e-12) {
			t.Errorf("%s: %+v, want %v", name, s, c.want)
		}
	}
}

func TestTextSimilarityIsASimilarity(t *testing.T) {
	anyText := func(t *rapid.T, label string) Text {
		words := rapid.SliceOf(rapid.SampledFrom([]string{"the", "user", "wants", "a cheap", "flight!", "né", "now", "now"}))
		text := strings.Join(words.Draw(t, label), rapid.SampledFrom([]string{" ", "-", "\n\n"}).Draw(t, label+" between"))
		if rapid.Bool().Draw(t, label+" odd") {
			text = rapid.String().Draw(t, label+" text")
		}
		return Text{text, TraceFeatures(anyTrace(t, label), nil)}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyText(t, "a"), anyText(t, "b")
		forth, back := compare(t, a, b), compare(t, b, a)
		if forth != back {
			t.Fatalf("a compared with b: %+v; b compared with a: %+v", forth, back)
		}
		for _, s := range []float64{forth.Similarity, forth.Words, forth.Characters, forth.Metadata} {
			if !(s >= 0 && s <= 1) {
				t.Fatalf("%+v is outside 0..1", forth)
			}
		}
		if self := compare(t, a, a); self.Similarity != 1 {
			t.Fatalf("a text and itself: %+v", self)
		}
	})
}

func TestLongTextsAreRefused(t *testing.T) {
	long := Text{Text: strings.Repeat("a", MaxTextBytes+1)}
	if _, err := CompareTexts(Text{}, long); err == nil || !strings.Contains(err.Error(), "32769 bytes") {
		t.Errorf("error %v", err)
	}
	long.Text = long.Text[1:]
	if s := compare(t, long, long); s.Similarity != 1 {
		t.Errorf("the longest text and itself: %+v", s)
	}
}

func TestTextOfATrace(t *testing.T) {
	trace := &schema.Trace{Action: schema.Action{Type: schema.ActionExecute, Category: schema.CategoryBounded},
		Decision: schema.Decision{Reasoning: "cheapest"}}
	if got := TextOf(trace); got.Text != "cheapest" || len(got.Metadata) != 2 {
		t.Errorf("got %+v", got)
	}
}
