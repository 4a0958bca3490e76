package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// keeper keeps what has one writer for a tenant: the transparency log, the queue of time stamps, the
// lists of copies, and the ledgers. It runs in the exporter that has the lease. The owners of sessions
// hand their placed bundles to it (ADR 29).
type keeper struct {
	env     *service.Env
	cfg     *Config
	place   string // the ids of the directories
	seals   Bucket
	rows    Rows
	broker  Broker
	confirm func(ctx context.Context) error // returns an error once another process has the lease (stream.Lease)
	metrics *metrics
	clock   *clock

	key     sync.Mutex     // for logKey
	logKey  *keystore.Live // nil: no log is configured
	anchors anchored
	copies  copies
	ledger  opledger.Keeper
	auditor opledger.Auditor

	other bool // another process keeps this bundle directory, or did when it was asked
}

// placedBundle is a bundle that an owner has placed.
type placedBundle struct {
	File    string `json:"file"` // below the bundle directory
	Session string `json:"session"`
	SHA256  string `json:"sha256"`
}

// keep adds bundles to the log, with a proof next to each, to the queue of stamps and to the lists of
// copies. It returns the log's head, nil without a log. All of it is durable when keep returns, and
// every step finds its earlier result: keep may be repeated, also by another keeper.
func (k *keeper) keep(ctx context.Context, bundles []placedBundle) (*events.LogHead, error) {
	// A process that continues after a long stop must not write a log that another one has opened meanwhile:
	// not every shared file system has the locks that would keep the other one out.
	if k.anchors.log != nil && len(bundles) > 0 {
		if err := k.confirm(ctx); err != nil {
			return nil, err
		}
	}
	if err := k.renewLogKey(ctx); err != nil {
		return nil, err
	}
	if err := k.logBundles(bundles); err != nil {
		return nil, err
	}
	if err := k.keepHead(ctx); err != nil {
		return nil, err
	}
	files := make([]string, len(bundles))
	for i, b := range bundles {
		files[i] = b.File
	}
	if k.anchors.stamper != nil {
		if err := k.anchors.stamper.Add(files...); err != nil {
			return nil, err
		}
	}
	if err := k.noteCopies(bundles); err != nil {
		return nil, err
	}
	if err := k.confirm(ctx); err != nil { // otherwise another process may never have read these lists
		return nil, err
	}
	if k.anchors.log == nil {
		return nil, nil
	}
	head := k.anchors.log.Head()
	is := events.LogHeadOf(&head)
	return &is, nil
}

// handing is the question of an owner: keep these bundles of the directory with this id.
type handing struct {
	Place   string         `json:"place"`
	Bundles []placedBundle `json:"bundles"`
}

// kept is the keeper's answer. That of a process which does not keep, yet or at all, has neither member.
type kept struct {
	Kept  bool            `json:"kept"`
	Head  *events.LogHead `json:"head,omitempty"` // of the log; nil without one
	Error string          `json:"error,omitempty"`
}

// answer does what another process asks.
func (k *keeper) answer(ctx context.Context, data []byte) []byte {
	head, err := k.keepFor(ctx, data)
	answer := kept{Kept: err == nil, Head: head}
	if err != nil {
		answer.Error = err.Error()
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // cannot fail: it has only texts and numbers
	}
	return text
}

func (k *keeper) keepFor(ctx context.Context, data []byte) (*events.LogHead, error) {
	var asked handing
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, fmt.Errorf("read what to keep: %w", err)
	}
	if asked.Place != k.place {
		return nil, errors.New("a directory of the process that asks is not the one that this process keeps")
	}
	for _, b := range asked.Bundles {
		if err := k.sees(b); err != nil {
			return nil, fmt.Errorf("bundle %s: %w", b.File, err)
		}
	}
	return k.keep(ctx, asked.Bundles)
}

// sees returns an error unless the bundle directory has this bundle.
func (k *keeper) sees(b placedBundle) error {
	if !filepath.IsLocal(b.File) || !isBundle(filepath.Base(b.File)) {
		return errors.New("it is not the name of a bundle")
	}
	content, err := os.ReadFile(filepath.Join(k.cfg.bundleDir(), b.File))
	if err != nil {
		return err
	}
	if digest := schema.DigestOf(content).String(); digest != b.SHA256 {
		return fmt.Errorf("its SHA-256 is %s here, and %s for the process that has placed it", digest, b.SHA256)
	}
	return nil
}

// run keeps as soon as this process has the lease, until ctx ends and the owner of this process has
// ended, which may hand over bundles until then. Before an error it ends that owner by stop. It calls
// known once a process keeps, this one or another.
func (k *keeper) run(ctx context.Context, e *exporter, held *service.Held, known, stop func(), ended <-chan struct{}) (err error) {
	if err := held.Await(ctx, k.env, func() { k.awaitOther(ctx, e, known) }); err != nil {
		return service.UnlessEnded(ctx, err)
	}
	k.confirm = held.Lease.Confirm
	lock, err := k.lock(ctx)
	if err != nil {
		return service.UnlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := k.openCopies(ctx, held.Broker); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.copies.close()) }()
	if err := k.openAnchors(ctx, held.Broker); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.anchors.close()) }()
	e.keeper.Store(k)
	known()
	defer func() {
		stop()
		<-ended
		e.keeper.Store(nil)
	}()
	asked := held.Lease.Requests()
	return service.Group(ctx, held.Watch, k.anchors.run, k.copies.run, k.ledger.Run, k.auditor.Run, k.followLogKey,
		func(ctx context.Context) error {
			for {
				select {
				case request := <-asked:
					if err := request.Answer(k.answer(ctx, request.Data)); err != nil {
						k.env.Log.Warn("an exporter that has handed over bundles gets no answer; it asks again", "error", err)
					}
				case <-ctx.Done():
					return nil
				}
			}
		})
}

// awaitOther calls known if the process that has the lease keeps this bundle directory.
func (k *keeper) awaitOther(ctx context.Context, e *exporter, known func()) {
	if k.other {
		return
	}
	health := k.env.Component("keeper")
	if _, err := e.askKeeper(ctx, nil); err != nil {
		health.Down(err.Error())
		return
	}
	health.Up()
	k.other = true
	known()
}

// lock takes the data directory for this process. A keeper that lost the lease without noticing has it
// until it ends.
func (k *keeper) lock(ctx context.Context) (*durable.Lock, error) {
	if err := durable.MkdirAll(k.cfg.DataDir, 0o755); err != nil {
		return nil, err
	}
	path, health := filepath.Join(k.cfg.DataDir, ".keeper.lock"), k.env.Component("keeper")
	lock, err := durable.Acquire(path, "exporter")
	if errors.Is(err, durable.ErrLocked) {
		k.env.Log.Error("this process has the lease, and another one still uses the data directory; it waits until that one has ended", "error", err)
		health.Down("another process still uses the data directory")
		lock, err = durable.Await(ctx, path, "exporter")
	}
	health.Up()
	return lock, err
}

// keptBacklog is the backlog of a consumer which runs only in the keeper's process.
func (e *exporter) keptBacklog(consumer service.Consumer) service.Consumer {
	return service.Consumer{Name: consumer.Name, Backlog: func(ctx context.Context) (uint64, error) {
		if e.keeper.Load() == nil {
			return 0, errors.New("another process has the lease")
		}
		return consumer.Backlog(ctx)
	}}
}

// keep hands the placed bundles of a group to the keeper, and returns the log's head with them. The
// keeper may be this process.
func (e *exporter) keep(ctx context.Context, jobs []*job) (head *events.LogHead, err error) {
	var bundles []placedBundle
	for _, j := range placed(jobs) {
		bundles = append(bundles, placedBundle{File: j.part.Plan.File, Session: j.part.SessionID, SHA256: j.bundle.SHA256})
	}
	if len(bundles) == 0 {
		return nil, nil
	}
	if k := e.keeper.Load(); k != nil {
		return k.keep(ctx, bundles)
	}
	err = e.env.Retry.Do(ctx, "hand bundles to the keeper", func() (err error) {
		if err := e.source.Confirm(ctx); err != nil { // it may take long until there is a keeper
			return err
		}
		if k := e.keeper.Load(); k != nil { // by now
			head, err = k.keep(ctx, bundles)
			return err
		}
		head, err = e.askKeeper(ctx, bundles)
		return err
	})
	return head, err
}

const (
	// handed is how many bundles one question names: it stays far below the largest message.
	handed = 100

	// How long an owner waits for an answer, and for one about nothing. The keeper writes files. When it is
	// killed there is no answer, and the next keeper must be asked soon.
	keptWithin  = 10 * time.Second
	aboutWithin = 2 * time.Second
)

// askKeeper asks the process that has the lease to keep bundles, or without any whether it would.
func (e *exporter) askKeeper(ctx context.Context, bundles []placedBundle) (head *events.LogHead, err error) {
	for first := true; first || len(bundles) > 0; first = false {
		n := min(len(bundles), handed)
		question, err := json.Marshal(handing{e.directory, bundles[:n]})
		if err != nil {
			return nil, fmt.Errorf("encode what to keep: %w", err)
		}
		within := keptWithin
		if n == 0 {
			within = aboutWithin
		}
		text, err := e.request(ctx, question, within)
		if errors.Is(err, stream.ErrNotFound) {
			err = errors.New("no exporter has the lease: nobody keeps bundles now")
		}
		if err != nil {
			return nil, err
		}
		var answer kept
		if err := json.Unmarshal(text, &answer); err != nil {
			return nil, fmt.Errorf("read the keeper's answer: %w", err)
		}
		if answer.Error != "" {
			return nil, fmt.Errorf("the exporter that has the lease does not keep the bundles: %s", answer.Error)
		}
		if !answer.Kept {
			return nil, errors.New("the exporter that has the lease keeps no bundles of others: it starts, has too much to do, or is of an earlier version")
		}
		if n > 0 && answer.Head == nil && e.cfg.Anchors.TransparencyLog {
			return nil, errors.New("the exporter that has the lease keeps no transparency log, and this one is to have one: " +
				"give all exporters the same settings, and restart that one")
		}
		head, bundles = answer.Head, bundles[n:]
	}
	return head, nil
}

// newKeeper returns the keeper of this process. It keeps nothing before it runs.
func (e *exporter) newKeeper(broker *stream.Client, rows opledger.AuditRows) *keeper {
	k := &keeper{env: e.env, cfg: e.cfg, place: e.directory, seals: e.seals, rows: e.rows, broker: e.broker, metrics: e.metrics, clock: e.clock}
	k.ledger = opledger.Keeper{Env: e.env, Dir: e.cfg.ledgerDir(), Name: e.cfg.Tenant, Rotation: ledger.DefaultRotation(), Broker: opledger.On(broker), Rows: rows,
		Confirm: func(ctx context.Context) error { return k.confirm(ctx) }}
	k.auditor = opledger.Auditor{Env: e.env, Broker: opledger.On(broker), Rows: rows}
	return k
}
