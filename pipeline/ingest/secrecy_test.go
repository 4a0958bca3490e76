package ingest

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// Logs and metrics repeat neither what a publisher sends, accepted or refused, nor the token. The
// dead letter has all of it.
func TestSecretsAreInNoLogAndNoMetric(t *testing.T) {
	const secret = "hunter2"
	var log bytes.Buffer
	logged := wired(func(s *server) {
		s.env.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	r := start(t, withTokens(t, "a-"+secret+" a traces:write,cards:write"), logged)
	token := "Authorization: Bearer a-" + secret
	refused := []string{`{"password":"` + secret + `"`, `{"` + secret + `":1}`, trace("b", secret), `"` + secret + `"`}
	r.post(body(append(refused, trace("a", "t", `"x":{"api_key":"`+secret+`"}`))...), token)
	r.post(body(refused[0]), "Authorization: Bearer "+secret)
	r.send(http.MethodPut, "/v1/cards/"+secret, strings.NewReader(`{"secret":"`+secret+`"}`), "Content-Type: application/json", token)
	r.send(http.MethodPost, "/v1/"+secret, strings.NewReader(secret), token)
	kept := 0
	for _, letter := range r.letters(len(refused)) {
		if bytes.Contains(letter.Data, []byte(secret)) {
			kept++
		}
	}
	if kept != len(refused) {
		t.Errorf("%d of %d dead letters have their bytes", kept, len(refused))
	}
	metrics := r.send(http.MethodGet, "/metrics", http.NoBody)
	if metrics.code != http.StatusOK || !strings.Contains(metrics.text, "plumbline_ingest") || strings.Contains(metrics.text, secret) {
		t.Errorf("metrics: %d\n%s", metrics.code, metrics.text)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log contains the secret:\n%s", log.String())
	}
}
