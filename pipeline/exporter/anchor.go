package exporter

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// Anchors configures the external evidence for bundles beyond their signature. All of it is off
// by default.
type Anchors struct {
	TSAURL          string   `name:"tsa-url" help:"Time stamping authority (RFC 3161) that stamps each bundle's signature; empty for none." secret:"userinfo"`
	TSACertFile     string   `name:"tsa-cert-file" help:"Certificates (PEM) by which its stamps are believed." type:"path"`
	TransparencyLog bool     `help:"Keep an append-only log of all bundles, and a proof of inclusion beside each."`
	LogOrigin       string   `help:"Name of the log in its checkpoints: a host and path of your own; empty for plumbline/ and the tenant."`
	LogWitnesses    []string `name:"log-witness" sep:"," placeholder:"KEY" help:"Key of a witness (name+hash+base64, c2sp.org/tlog-cosignature) whose cosignatures on the log's checkpoints are taken and served; repeatable."`
}

// Validate returns the faults of the settings.
func (a *Anchors) Validate() config.Faults {
	var faults config.Faults
	if a.TSAURL != "" {
		u, err := url.Parse(a.TSAURL)
		faults.Check(err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"), "tsa_url", "want http:// or https://")
		faults.Check(a.TSACertFile != "", "tsa_cert_file", "is empty: a stamp that nobody has checked may be none")
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

// authorities reads the trusted certificates of time stamps.
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

// anchored holds the transparency log and the time stamper of an exporter.
type anchored struct {
	log     *tlog.Log     // nil: no log is configured
	stamper *tlog.Stamper // nil: no authority is configured

	witnesses []*anchor.Witness // witnesses whose cosignatures on the log's checkpoints are accepted

	mu   sync.Mutex
	kept anchor.Checkpoint // the log's head in bucket seals
}

// openAnchors opens the log and the queue of the authority, where configured.
func (e *exporter) openAnchors(ctx context.Context, broker *stream.Client) error {
	if err := e.openStamper(); err != nil {
		return err
	}
	if !e.cfg.Anchors.TransparencyLog {
		return nil
	}
	var err error
	if e.signer.log, err = e.followKey(ctx, keystore.In(filepath.Dir(e.cfg.keyFile()), keyring.Log)); err != nil {
		return err
	}
	if err := e.openLog(ctx, broker); err != nil {
		return err
	}
	if err := e.env.Retry.Do(ctx, "keep the head of the transparency log", func() error { return e.keepHead(ctx) }); err != nil {
		return err
	}
	if e.anchors.witnesses, err = e.cfg.Anchors.witnesses(); err != nil {
		return fmt.Errorf("%w: log_witness: %w", config.ErrUsage, err)
	}
	e.serveLog()
	return nil
}

func (e *exporter) openStamper() error {
	a := &e.cfg.Anchors
	if a.TSAURL == "" {
		return nil
	}
	trusted, err := a.authorities()
	if err != nil {
		return fmt.Errorf("%w: tsa_cert_file: %w", config.ErrUsage, err)
	}
	e.anchors.stamper = &tlog.Stamper{
		Queue: filepath.Join(e.cfg.DataDir, "timestamps"), Bundles: e.cfg.bundleDir(),
		Ask: tlog.Over(new(http.Client), a.TSAURL), Trusted: trusted, Log: e.env.Log,
		Placed: e.noteStamp, Stamped: e.metrics.stamped.Inc, Failed: e.metrics.unstamped.Inc,
		Waiting: func(n int) { e.metrics.waiting.Set(float64(n)) },
	}
	return e.anchors.stamper.Open()
}

// close closes the log.
func (a *anchored) close() error {
	if a.log == nil {
		return nil
	}
	return a.log.Close()
}

// run requests time stamps until ctx ends.
func (a *anchored) run(ctx context.Context) error {
	if a.stamper == nil {
		return nil
	}
	return a.stamper.Run(ctx)
}

// anchor appends the bundles of a group to the log, writes the proof next to each, keeps the
// log's head in bucket seals, and adds the bundles to the stamper's queue. Every step is
// idempotent.
func (e *exporter) anchor(ctx context.Context, jobs []*job) error {
	sealed := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.bundle == nil })
	if err := e.logBundles(sealed); err != nil {
		return err
	}
	if err := e.keepHead(ctx); err != nil {
		return err
	}
	if e.anchors.stamper == nil {
		return nil
	}
	files := make([]string, len(sealed))
	for i, j := range sealed {
		files[i] = j.part.Plan.File
	}
	return e.anchors.stamper.Add(files...)
}

func (e *exporter) logBundles(sealed []*job) error {
	if e.anchors.log == nil || len(sealed) == 0 {
		return nil
	}
	leaves := make([][]byte, len(sealed))
	for i, j := range sealed {
		leaf, err := anchor.Leaf(j.part.SessionID, j.bundle.SHA256)
		if err != nil {
			return err
		}
		leaves[i] = leaf
	}
	proofs, err := e.anchors.log.Append(leaves...)
	if err != nil {
		return err
	}
	for i, j := range sealed {
		path := filepath.Join(e.cfg.bundleDir(), j.part.Plan.File)
		if e.proven(path, leaves[i]) {
			continue // an earlier attempt wrote it, and it may be copied already
		}
		if err := tlog.PlaceProof(path, proofs[i]); err != nil {
			return err
		}
	}
	return nil
}

// proven reports whether the proof next to a bundle is valid for its leaf.
func (e *exporter) proven(bundle string, leaf []byte) bool {
	text, err := os.ReadFile(bundle + anchor.ProofSuffix)
	if err != nil {
		return false
	}
	proof, err := anchor.ParseProof(text)
	return err == nil && e.anchors.log.Proves(proof, leaf)
}

// merkle is the value in a card that commits the agent to a log (AAP section 4.7).
const merkle = "merkle"

// findUnlogged reports to the judge the cards that commit to a log, where none is configured.
func (e *exporter) findUnlogged(j *job) {
	if e.anchors.log != nil || j.judge == nil {
		return
	}
	for _, card := range j.merkle {
		j.judge.Unlogged(card)
	}
}

// logDir returns the directory of the transparency log.
func (c *Config) logDir() string { return filepath.Join(c.DataDir, "log") }

// logOrigin returns the log's name.
func (c *Config) logOrigin() string {
	if c.Anchors.LogOrigin != "" {
		return c.Anchors.LogOrigin
	}
	return "plumbline/" + c.Tenant
}
