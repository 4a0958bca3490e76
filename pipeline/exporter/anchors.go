package exporter

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/destination"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// Anchors configures the external evidence for bundles beyond their signature. All of it is off
// by default.
type Anchors struct {
	TSAURL          string   `name:"tsa-url" help:"Time stamping authority (RFC 3161) that stamps each bundle's signature. Empty: none." secret:"userinfo"`
	TSACertFile     string   `name:"tsa-cert-file" help:"Certificates (PEM) that its stamps are checked against." type:"path"`
	TransparencyLog bool     `help:"Keep an append-only log of all bundles, and write a proof of inclusion next to each bundle."`
	LogOrigin       string   `help:"Name of the log in its checkpoints: a host and path of your own. Empty: plumbline/ and the tenant."`
	LogWitnesses    []string `name:"log-witness" sep:"," placeholder:"KEY" help:"Key of a witness (name+hash+base64, c2sp.org/tlog-cosignature) whose cosignatures on the log's checkpoints are accepted and served; repeatable."`
}

// Validate returns the faults of the settings.
func (a *Anchors) Validate() config.Faults {
	var faults config.Faults
	if a.TSAURL != "" {
		u, err := url.Parse(a.TSAURL)
		faults.Check(err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"), "tsa_url", "want http:// or https://")
		faults.Check(a.TSACertFile != "", "tsa_cert_file", "is empty: without certificates the time stamps cannot be checked")
	}
	for _, key := range a.LogWitnesses {
		_, err := anchor.ParseWitness(key)
		faults.Check(err == nil, "log_witness", "%q: %v", key, err)
	}
	faults.Check(!strings.ContainsAny(a.LogOrigin, "+ \t\r\n"), "log_origin", "%q: want one word without '+'", a.LogOrigin)
	return faults
}

// FileFaults returns the faults of the file with the authority's certificates.
func (a *Anchors) FileFaults() []config.Fault {
	var faults config.Faults
	if a.TSACertFile != "" {
		_, err := a.authorities()
		faults.Check(err == nil, "tsa_cert_file", "%v", err)
	}
	return faults
}

func (a *Anchors) authorities() ([]*x509.Certificate, error) {
	text, err := os.ReadFile(a.TSACertFile)
	if err != nil {
		return nil, err
	}
	trusted, err := anchor.Authorities(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.TSACertFile, err)
	}
	return trusted, nil
}

// anchored holds the transparency log and the time stamper.
type anchored struct {
	log     *tlog.Log     // nil: no log is configured
	stamper *tlog.Stamper // nil: no authority is configured

	mu   sync.Mutex
	kept anchor.Checkpoint // the log's head in bucket seals
}

// openAnchors opens the log and the queue of the authority, where configured.
func (k *keeper) openAnchors(ctx context.Context, broker *stream.Client) error {
	a := &k.cfg.Anchors
	if a.TSAURL != "" {
		trusted, err := a.authorities()
		if err == nil {
			err = k.env.ShowCertificate("tsa_cert_file", a.TSACertFile)
		}
		if err != nil {
			return fmt.Errorf("%w: tsa_cert_file: %w", config.ErrUsage, err)
		}
		k.anchors.stamper = &tlog.Stamper{
			Queue: filepath.Join(k.cfg.DataDir, "timestamps"), Bundles: k.cfg.bundleDir(),
			Ask: tlog.Over(new(http.Client), a.TSAURL), Trusted: trusted, Log: k.env.Log,
			Placed:  func(file string) error { return k.copies.add(destination.Copy{File: file}) },
			Stamped: k.metrics.stamped.Inc, Failed: k.metrics.unstamped.Inc,
			Waiting: func(n int) { k.metrics.waiting.Set(float64(n)) },
		}
		if err := k.anchors.stamper.Open(); err != nil {
			return err
		}
	}
	if !a.TransparencyLog {
		return nil
	}
	var err error
	if k.logKey, err = followKey(ctx, k.env, k.broker, keystore.In(filepath.Dir(k.cfg.keyFile()), keyring.Log)); err != nil {
		return err
	}
	if err := k.openLog(ctx, broker); err != nil {
		return err
	}
	if err := k.env.Retry.Do(ctx, "write the head of the transparency log", func() error { return k.keepHead(ctx) }); err != nil {
		return err
	}
	server := tlog.Server{Log: k.anchors.log, Errors: k.env.Log}
	for _, key := range a.LogWitnesses {
		witness, err := anchor.ParseWitness(key)
		if err != nil {
			return fmt.Errorf("%w: log_witness: %w", config.ErrUsage, err)
		}
		server.Witnesses = append(server.Witnesses, witness)
	}
	server.Register(k.env.Routes.Handle)
	return nil
}

func (a *anchored) close() error {
	if a.log == nil {
		return nil
	}
	return a.log.Close()
}

func (a *anchored) run(ctx context.Context) error {
	if a.stamper == nil {
		return nil
	}
	return a.stamper.Run(ctx)
}

// logBundles appends bundles to the log and writes the proof next to each.
func (k *keeper) logBundles(bundles []placedBundle) error {
	if k.anchors.log == nil || len(bundles) == 0 {
		return nil
	}
	leaves := make([][]byte, len(bundles))
	for i, b := range bundles {
		leaf, err := anchor.Leaf(b.Session, b.SHA256)
		if err != nil {
			return err
		}
		leaves[i] = leaf
	}
	proofs, err := k.anchors.log.Append(leaves...)
	if err != nil {
		return err
	}
	for i, b := range bundles {
		path := filepath.Join(k.cfg.bundleDir(), b.File)
		if k.proven(path, leaves[i]) {
			continue // an earlier attempt wrote it, and it may be copied already
		}
		if err := tlog.PlaceProof(path, proofs[i]); err != nil {
			return err
		}
	}
	return nil
}

// proven reports whether the proof next to a bundle is valid for its leaf.
func (k *keeper) proven(bundle string, leaf []byte) bool {
	text, err := os.ReadFile(bundle + anchor.ProofSuffix)
	if err != nil {
		return false
	}
	proof, err := anchor.ParseProof(text)
	return err == nil && k.anchors.log.Proves(proof, leaf)
}

// openLog opens the transparency log. The log must be a continuation of the heads in bucket seals
// and in the operator's ledger.
func (k *keeper) openLog(ctx context.Context, broker *stream.Client) (err error) {
	var kept []*anchor.Checkpoint
	inBucket := func() (*events.LogHead, error) { return k.headInBucket(ctx, broker) }
	for _, read := range []func() (*events.LogHead, error){inBucket, k.headInLedger} {
		head, err := read()
		if err != nil {
			return fmt.Errorf("read the earlier heads of the transparency log: %w", err)
		}
		if head == nil {
			continue
		}
		if head.Origin != k.cfg.logOrigin() {
			k.env.Log.Warn("the recorded head belongs to another transparency log and is not compared", "recorded_log", head.Origin, "leaves", head.Size, "log", k.cfg.logOrigin())
			continue
		}
		checkpoint, err := head.Checkpoint()
		if err != nil {
			return err
		}
		kept = append(kept, checkpoint)
	}
	k.anchors.log, err = tlog.OpenLog(k.cfg.logDir(), k.logSigner(), kept...)
	if errors.Is(err, tlog.ErrNotKept) || errors.Is(err, tlog.ErrTampered) {
		err = fmt.Errorf("%w; restore the directory from a backup; if the log is lost, move the directory away "+
			"and start a log under another name (log_origin; --log-origin of up): under the same name, others would see two histories of one log", err)
	}
	return err
}

// headInBucket returns the head that bucket seals keeps, nil where it has none.
func (k *keeper) headInBucket(ctx context.Context, broker *stream.Client) (*events.LogHead, error) {
	var value []byte
	err := k.env.Open(ctx, broker, func() (err error) {
		value, _, err = k.seals.GetNewest(ctx, seal.LogKey)
		return err
	})
	if errors.Is(err, stream.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	head := new(events.LogHead)
	if err := json.Unmarshal(value, head); err != nil {
		return nil, fmt.Errorf("key %q of bucket seals: %w", seal.LogKey, err)
	}
	return head, nil
}

// headInLedger returns the newest head of the log in the ledger's files. Bucket seals has only
// the head of the most recent log, which may have another name.
func (k *keeper) headInLedger() (head *events.LogHead, err error) {
	err = opledger.Last(k.cfg.ledgerDir(), func(p *opledger.Placed) bool {
		found := headOf(p)
		if found == nil || found.Origin != k.cfg.logOrigin() {
			return false
		}
		head = found
		return true
	})
	return head, err
}

// headOf returns the head in an entry, nil for other entries.
func headOf(p *opledger.Placed) *events.LogHead {
	if p.Type != ledger.Meta {
		return nil
	}
	event, err := p.Event()
	head := new(events.LogHead)
	if err != nil || json.Unmarshal(event.Data, head) != nil || head.Kind != events.KindLogHead {
		return nil
	}
	return head
}

// keepHead writes the log's head to bucket seals. A session is marked as sealed only after that.
func (k *keeper) keepHead(ctx context.Context) error {
	if k.anchors.log == nil {
		return nil
	}
	k.anchors.mu.Lock() // an older head must not overwrite a newer one
	defer k.anchors.mu.Unlock()
	head := k.anchors.log.Head()
	if head == k.anchors.kept {
		return nil
	}
	value, err := json.Marshal(events.LogHeadOf(&head))
	if err != nil {
		return fmt.Errorf("encode the head of the transparency log: %w", err)
	}
	if err := k.confirm(ctx); err != nil { // another exporter may have the log: its head must not go back
		return err
	}
	if _, err := k.seals.Put(ctx, seal.LogKey, value); err != nil {
		return fmt.Errorf("write the head of the transparency log: %w", err)
	}
	k.anchors.kept = head
	return nil
}

func (c *Config) logDir() string { return filepath.Join(c.DataDir, "log") }

func (c *Config) logOrigin() string {
	if c.Anchors.LogOrigin != "" {
		return c.Anchors.LogOrigin
	}
	return "plumbline/" + c.Tenant
}
