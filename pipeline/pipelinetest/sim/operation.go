package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/service"
)

type fault string

const (
	none       fault = ""
	lost       fault = "fails before it is applied"
	unsure     fault = "applied, then fails"
	hangs      fault = "hangs, not applied"
	hangsAfter fault = "applied, then hangs"
	slow       fault = "takes long"
	killBefore fault = "the process is killed before it"
	killAfter  fault = "the process is killed after it"
)

// errFault is the error of an operation under a fault.
var errFault = errors.New("a fault of the simulation")

// errKilled is the answer to every operation of a process that was killed. It is
// permanent: a killed process repeats nothing.
var errKilled = service.Permanent(errors.New("the process was killed"))

// Operation is one request of a process to the outside world.
type Operation struct {
	Name  string        // determines the fault, together with Key
	Key   string        // the object of the request
	Limit time.Duration // maximum duration, also if it hangs; 0: 10 s
}

const (
	requestLimit = 10 * time.Second
	travel       = 3 * time.Millisecond // maximum time of a request on its way
)

// Do executes an operation of one step.
func (p *Process) Do(ctx context.Context, o Operation, apply func() error) error {
	return p.Each(ctx, o, 1, func(int) error { return apply() })
}

// ask executes an operation that has a result.
func ask[T any](ctx context.Context, p *Process, name, key string, apply func() (T, error)) (result T, err error) {
	err = p.Do(ctx, Operation{Name: name, Key: key}, func() (err error) {
		result, err = apply()
		return err
	})
	return result, err
}

// Each executes an operation of several steps. If it is applied and fails all the same, perhaps
// only the first steps were applied.
func (p *Process) Each(ctx context.Context, o Operation, steps int, apply func(i int) error) error {
	if o.Limit == 0 {
		o.Limit = requestLimit
	}
	w := p.world
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return errKilled
	}
	dice := w.dice(o.Name + " " + o.Key)
	e := w.note(p.life, o.Name+" "+o.Key, w.fault(dice))
	w.mu.Unlock()
	err := p.meet(ctx, o, e.fault, dice, steps, apply)
	w.mu.Lock()
	defer w.mu.Unlock()
	e.answer = fmt.Sprintf("%.6f ", time.Since(w.began).Seconds()) + answerOf(err)
	return err
}

// EachOf executes an operation with one step for each of several things, in the order of their
// keys. A stage may pass them in the order of a map, which varies.
func EachOf[T any](ctx context.Context, p *Process, o Operation, things []T, key func(*T) string, apply func(*T) error) error {
	if len(things) == 0 {
		return nil
	}
	order := sorted(len(things), func(i int) string { return key(&things[i]) })
	o.Key = key(&things[order[0]])
	return p.Each(ctx, o, len(things), func(i int) error { return apply(&things[order[i]]) })
}

// sorted returns the numbers 0..n-1 in the order of their keys.
func sorted(n int, key func(i int) string) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
	return order
}

func answerOf(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

func (p *Process) meet(ctx context.Context, o Operation, f fault, dice *rand.Rand, steps int, apply func(int) error) error {
	wait := time.Duration(1 + dice.Int64N(int64(travel)))
	if f == slow {
		wait += time.Duration(dice.Int64N(int64(o.Limit)))
	}
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	some := steps
	if (f == unsure || f == hangsAfter || f == killAfter) && steps > 0 {
		some = 1 + dice.IntN(steps)
	}
	switch f {
	case killBefore:
		p.kill()
		return errKilled
	case lost:
		return fmt.Errorf("%s: %w", o.Name, errFault)
	case hangs:
		return p.hang(ctx, o)
	}
	if err := p.apply(some, apply); err != nil {
		return err
	}
	switch f {
	case unsure:
		return fmt.Errorf("%s: %w", o.Name, errFault)
	case hangsAfter:
		return p.hang(ctx, o)
	case killAfter:
		p.kill()
		return errKilled
	}
	return nil
}

// apply applies the first steps of an operation at once.
func (p *Process) apply(steps int, apply func(int) error) error {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if p.dead {
		return errKilled
	}
	for i := range steps {
		if err := apply(i); err != nil {
			return err
		}
	}
	return nil
}

// hang waits until the caller gives up or the limit is over.
func (p *Process) hang(ctx context.Context, o Operation) error {
	if err := sleep(ctx, o.Limit); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w: no answer in %s", o.Name, errFault, o.Limit)
}

func (w *World) fault(dice *rand.Rand) fault {
	met, dies, kind := dice.IntN(1000), dice.IntN(1000), dice.IntN(20)
	switch {
	case w.calm():
		return none
	case dies < w.kills:
		return []fault{killBefore, killAfter}[kind%2]
	case met >= w.chance:
		return none
	case kind < 7:
		return lost
	case kind < 14:
		return unsure
	case kind < 16:
		return hangs
	case kind < 18:
		return hangsAfter
	}
	return slow
}

// strikes draws whether a frequent event without an answer fails.
func (w *World) strikes(dice *rand.Rand) bool { return !w.calm() && dice.IntN(1000) < w.chance }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
