package web

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// A visitor never waits long: there is the answer of before, or none yet, while the next one is on its way.
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
	asking := k.all[fmt.Sprintf("%q", every)].asking
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
