package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// receivers are what a user's machine sends to: an endpoint of webhooks, at /alerts, and a receiver of OTLP.
type receivers struct {
	*httptest.Server
	key    []byte
	alerts string // file with a line for each alert: its webhook-id, a space and its body

	mu      sync.Mutex
	metrics map[string]bool // names that arrived over OTLP
}

// receive starts the receivers, and returns the flags with which plumbline up sends to them.
func (v *visitor) receive(t *testing.T) (r *receivers, flags string) {
	t.Helper()
	r = &receivers{key: make([]byte, 32), alerts: filepath.Join(v.dir, "alerts"), metrics: map[string]bool{}}
	_, _ = rand.Read(r.key) // it always succeeds
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case err != nil:
		case request.URL.Path == "/alerts":
			err = r.takeAlert(request.Header, body)
		case request.URL.Path == "/otlp/v1/metrics":
			err = r.takeMetrics(body)
		case request.URL.Path != "/otlp/v1/traces":
			err = errors.New("nothing is here")
		}
		if err != nil {
			t.Errorf("%s: %v", request.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(r.Close)
	v.write(t, "alerts", "")
	v.write(t, "webhook.secret", "whsec_"+base64.StdEncoding.EncodeToString(r.key)+"\n")
	v.write(t, "webhooks.yaml", fmt.Sprintf("endpoints: [{name: test, url: %q, secret_file: webhook.secret}]\n", r.URL+"/alerts"))
	return r, "--webhooks-file webhooks.yaml --otlp-interval 1s --otlp-endpoint " + r.URL + "/otlp"
}

// takeAlert checks the signature as Standard Webhooks publishes it, without code of Plumbline, and keeps the alert.
func (r *receivers) takeAlert(header http.Header, body []byte) error {
	mac := hmac.New(sha256.New, r.key)
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("webhook-id"), header.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); header.Get("webhook-signature") != want {
		return fmt.Errorf("the signature is %q, want %q", header.Get("webhook-signature"), want)
	}
	file, err := os.OpenFile(r.alerts, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %s\n", header.Get("webhook-id"), body)
	return errors.Join(err, file.Close())
}

func (r *receivers) takeMetrics(body []byte) error {
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalProto(body); err != nil {
		return err
	}
	for _, m := range request.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		r.metrics[m.Name()] = true
	}
	return nil
}

// check requires that the metrics arrived, and that an alert that arrived again was the same. The machine has ended.
func (r *receivers) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range []string{"plumbline_webhook_alerts_total", "plumbline_verifier_violations_total"} {
		if !r.metrics[name] {
			t.Errorf("metric %s has not arrived over OTLP", name)
		}
	}
	text, err := os.ReadFile(r.alerts)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	for line := range strings.Lines(string(text)) {
		id, body, _ := strings.Cut(line, " ")
		if before, known := bodies[id]; known && before != body {
			t.Errorf("under %s arrived %s and %s", id, before, body)
		}
		bodies[id] = body
	}
}
