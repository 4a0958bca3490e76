package web

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// A visitor never waits long: there is the previous answer, or none yet, while the next one is made.
func TestKept(t *testing.T) {
	var k kept[int]
	every, one := store.Agents{Prefixes: []string{""}}, store.Agents{IDs: []string{""}}
	answers, asked := make(chan int), 0
	ask := func(context.Context) (int, error) {
		asked++
		if n := <-answers; n > 0 {
			return n, nil
		}
		return 0, errors.New("away")
	}
	get := func(agents store.Agents, at time.Time) (value int, found, again bool, err error) {
		t.Helper()
		began := time.Now()
		value, found, again, err = k.get(t.Context(), agents, at, ask)
		if took := time.Since(began); took > 20*keptWait {
			t.Errorf("a visitor waited %s", took)
		}
		return value, found, again, err
	}
	settle := func(answer int) {
		answers <- answer
		for {
			k.mu.Lock()
			idle := true
			for _, e := range k.all {
				idle = idle && e.asking == nil
			}
			k.mu.Unlock()
			if idle {
				return
			}
		}
	}
	now := time.Now()
	if _, found, again, err := get(every, now); found || !again || err != nil {
		t.Errorf("before the first answer: %t %t %v", found, again, err)
	}
	settle(1)
	if value, found, again, err := get(every, now); value != 1 || !found || again || err != nil {
		t.Errorf("the first answer: %d %t %t %v", value, found, again, err)
	}
	later := now.Add(time.Hour)
	if value, found, again, _ := get(every, later); value != 1 || !found || !again {
		t.Errorf("an hour later: %d %t %t", value, found, again)
	}
	settle(2)
	if value, _, _, _ := get(every, later); value != 2 || asked != 2 {
		t.Errorf("the second answer: %d, asked %d times", value, asked)
	}
	if _, found, _, _ := get(one, later); found {
		t.Fatal("the answer for every agent is that for one")
	}
	settle(3)
	go func() { answers <- 0 }()
	if _, _, _, err := get(every, later.Add(time.Hour)); err == nil {
		t.Error("no error while the database is away")
	}
	go func() { answers <- 4 }()
	if value, _, _, err := get(every, later.Add(2*time.Hour)); value != 4 || err != nil {
		t.Errorf("after an error: %d %v", value, err)
	}
}

// A database that fails only after a while costs the page: a visitor who came before, and did not wait, learns of it,
// and the database is not asked again at once.
func TestKeptError(t *testing.T) {
	var k kept[int]
	every, now := store.Agents{Prefixes: []string{""}}, time.Now()
	asked, fail := 0, make(chan struct{})
	ask := func(context.Context) (int, error) {
		asked++
		<-fail
		return 0, errors.New("away")
	}
	if _, found, again, err := k.get(t.Context(), every, now, ask); found || !again || err != nil {
		t.Errorf("before the answer: %t %t %v", found, again, err)
	}
	asking := k.all[keyOf(every)].asking
	close(fail)
	<-asking.done
	for range 2 {
		if _, _, _, err := k.get(t.Context(), every, now.Add(time.Second), ask); err == nil || asked != 1 {
			t.Errorf("after the error: %v, asked %d times", err, asked)
		}
	}
	if _, _, _, err := k.get(t.Context(), every, now.Add(time.Minute), ask); err == nil || asked != 2 {
		t.Errorf("a minute later: %v, asked %d times", err, asked)
	}
}

// answers returns for how many sets of agents there is an answer.
func (k *kept[T]) answers() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.all {
		if e.answer != nil {
			n++
		}
	}
	return n
}

// What was asked for before anyone came is there for the first visitor, who does not wait. An error is not: the visitor
// asks again.
func TestKeptBeforeVisits(t *testing.T) {
	var k kept[int]
	every, now := store.Agents{Prefixes: []string{""}}, time.Now()
	asked := 0
	answers := func(value int, err error) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { asked++; return value, err }
	}
	nobody := func(context.Context) (int, error) { t.Error("the visitor's question is asked"); return 0, nil }
	k.renew(t.Context(), every, now, answers(1, nil))
	if value, found, again, err := k.get(t.Context(), every, now.Add(keptFor), nobody); value != 1 || !found || again || err != nil {
		t.Errorf("the first visitor: %d %t %t %v", value, found, again, err)
	}
	if rest := k.renew(t.Context(), every, now.Add(idleFor), answers(2, nil)); rest != 0 || asked != 1 {
		t.Errorf("an answer that is young was asked for again: rest %s, asked %d times", rest, asked)
	}
	later := now.Add(idleFor + time.Second)
	k.renew(t.Context(), every, later, answers(0, errors.New("away")))
	if value, found, _, err := k.get(t.Context(), every, later, answers(3, nil)); value != 3 || !found || err != nil {
		t.Errorf("after an error that nobody saw: %d %t %v", value, found, err)
	}
	k.renew(t.Context(), every, later.Add(idleFor+time.Second), answers(4, nil))
	if value, _, _, _ := k.get(t.Context(), every, later.Add(idleFor+time.Second), nobody); value != 4 || asked != 4 {
		t.Errorf("while nobody visits: %d, asked %d times", value, asked)
	}
}

// An answer that took long is old while it is held: a visitor does not ask again and again for what nobody counts yet.
func TestKeptOfCostlyAnswers(t *testing.T) {
	var k kept[int]
	every, now := store.Agents{Prefixes: []string{""}}, time.Now()
	k.renew(t.Context(), every, now, func(context.Context) (int, error) { return 1, nil })
	k.all[keyOf(every)].answer.took = time.Minute
	value, found, again, err := k.get(t.Context(), every, now.Add(5*time.Minute), func(context.Context) (int, error) { t.Error("it is asked again"); return 0, nil })
	if value != 1 || !found || again || err != nil {
		t.Errorf("an answer of five minutes ago, which took one: %d %t %t %v", value, found, again, err)
	}
}
