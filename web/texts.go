package web

import (
	"context"
	"math"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/web/rows"
)

// textTime is how long a page waits for what is in the bytes of records: they are most of the table, and a page is
// whole without them.
const textTime = 2 * time.Second

// texts is what the sampled records of a span and of the baseline say.
type texts struct {
	now, baseline []rows.Text
	late          bool // they could not be read in time
}

// readTexts reads the samples. A time or a bound that is not enough costs their charts, and nothing else.
func (s *server) readTexts(ctx context.Context, p *agentPage) (t texts, err error) {
	limited, cancel := context.WithTimeout(ctx, s.textTime)
	defer cancel()
	group, asking := errgroup.WithContext(limited)
	group.Go(func() error {
		sample, err := s.rows.Sample(asking, p.Span)
		if err == nil {
			t.now, err = s.rows.Texts(asking, p.Span, sample)
		}
		return err
	})
	group.Go(func() error {
		if p.Baseline == nil {
			return nil
		}
		sample, err := s.rows.BaselineSample(asking, p.AgentID, p.Span.CardID, p.Baseline)
		if err == nil {
			t.baseline, err = s.rows.Texts(asking, p.Span, sample)
		}
		return err
	})
	err = group.Wait()
	if err != nil && ctx.Err() == nil && (limited.Err() != nil || database.TooBroad(err) || database.TimedOut(err)) {
		return texts{late: true}, nil
	}
	return t, err
}

// measures returns the measures of what records say in their bytes.
func (t *texts) measures() []measure {
	length := measure{name: "Reasoning", label: "characters of a decision's text", unit: "chars"}
	benefit := measure{name: "Benefit", label: "principal_benefit of the selected alternatives", unit: " "}
	wording := measure{name: "Wording", label: "similarity of the reasoning to the baseline's, of 1", unit: " "}
	words := wordsOf(t.baseline)
	add := func(all []rows.Text, inBaseline bool) {
		for i := range all {
			one := &all[i]
			length.add(one.Step, inBaseline, counted{float64(one.Characters), 1})
			if score, err := strconv.ParseFloat(one.Benefit, 64); err == nil { // as in package drift
				benefit.add(one.Step, inBaseline, counted{score, 1})
			}
			if cosine, known := words.similarity(one); known {
				wording.add(one.Step, inBaseline, counted{cosine, 1})
			}
		}
	}
	add(t.now, false)
	add(t.baseline, true)
	return []measure{length, wording, benefit}
}

// vector is a sum of sketches.
type vector [len(similarity.Sketch{})]float64

func (v *vector) add(sketch *similarity.Sketch) {
	for i, n := range sketch {
		v[i] += float64(n)
	}
}

// wordSums are the sums of a baseline's texts of one kind, and of those of each session.
type wordSums struct {
	all       vector
	ofSession map[string]*vector
}

// baselineWords has the words of decisions that act, and of those that answer: the two differ by nature.
type baselineWords map[bool]*wordSums

func wordsOf(baseline []rows.Text) baselineWords {
	of := baselineWords{}
	for i := range baseline {
		one := &baseline[i]
		sums := of[one.Acts]
		if sums == nil {
			sums = &wordSums{ofSession: map[string]*vector{}}
			of[one.Acts] = sums
		}
		if sums.ofSession[one.Session] == nil {
			sums.ofSession[one.Session] = new(vector)
		}
		sketch := similarity.SketchOf(one.Beginning)
		sums.all.add(&sketch)
		sums.ofSession[one.Session].add(&sketch)
	}
	return of
}

// similarity returns the cosine of a text and the baseline's texts without those of its own session, which it
// resembles; known is false where one of the two is empty.
func (w baselineWords) similarity(text *rows.Text) (cosine float64, known bool) {
	sums := w[text.Acts]
	if sums == nil || text.Beginning == "" {
		return 0, false
	}
	sketch := similarity.SketchOf(text.Beginning)
	var product, ofText, ofBaseline float64
	for i, n := range sketch {
		sum := sums.all[i]
		if session := sums.ofSession[text.Session]; session != nil {
			sum -= session[i]
		}
		product += float64(n) * sum
		ofText += float64(n) * float64(n)
		ofBaseline += sum * sum
	}
	if ofText == 0 || ofBaseline == 0 {
		return 0, false
	}
	return product / math.Sqrt(ofText*ofBaseline), true
}
