package tlog

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/anchor/anchortest"
	"github.com/plumbline/plumbline/schema"
)

// The log is served as tiles and witnesses cosign it, with the addresses and media types of
// c2sp.org/tlog-tiles.
func TestLogIsServedAsTiles(t *testing.T) {
	witness := anchortest.NewWitness("witness.example/w1", 9)
	known, err := anchor.ParseWitness(witness.Key())
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, t.TempDir())
	mux := http.NewServeMux()
	(&Server{Log: l, Witnesses: []*anchor.Witness{known}, Errors: slog.New(slog.DiscardHandler)}).Register(mux.Handle)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	ask := func(method, path string, body []byte, code int) ([]byte, http.Header) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/v1/log/"+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != code {
			t.Errorf("%s %s: %s %s, %v, want %d", method, path, answer.Status, text, err, code)
		}
		return text, answer.Header
	}
	grow := func(sessions ...string) {
		t.Helper()
		for _, session := range sessions {
			leaf, err := anchor.Leaf(session, schema.DigestOf([]byte(session)).String())
			if err == nil {
				_, err = l.Append(leaf)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}

	ask("GET", "tile/0/000.p/1", nil, http.StatusNotFound)
	ask("GET", "cosigned", nil, http.StatusNotFound)
	grow("one", "two", "three")
	signed, header := ask("GET", "checkpoint", nil, http.StatusOK)
	if header.Get("Content-Type") != "text/plain; charset=utf-8" || header.Get("Cache-Control") != "public, max-age=1" {
		t.Errorf("the checkpoint has headers %v", header)
	}
	tile, header := ask("GET", "tile/0/000.p/3", nil, http.StatusOK)
	if len(tile) != 3*32 || header.Get("Content-Type") != "application/octet-stream" || !strings.Contains(header.Get("Cache-Control"), "immutable") {
		t.Errorf("a tile of %d bytes has headers %v", len(tile), header)
	}
	if entries, _ := ask("GET", "tile/entries/000.p/3", nil, http.StatusOK); !bytes.Contains(entries, []byte("aivs-bundle/v1\ntwo\n")) || entries[0] != 0 {
		t.Errorf("entries %q", entries)
	}
	keys, _ := ask("GET", "key", nil, http.StatusOK)
	key, err := anchor.ParseVerifier(string(keys))
	if err != nil {
		t.Fatal(err)
	}
	ask("POST", "cosigned", []byte("nothing"), http.StatusBadRequest)
	ask("POST", "cosigned", bytes.Repeat([]byte("x"), maxCosigned+1), http.StatusBadRequest)
	ask("POST", "cosigned", signed, http.StatusForbidden)
	ask("POST", "cosigned", anchortest.NewWitness("witness.example/w2", 8).Cosign(signed, time.Now()), http.StatusForbidden)
	ask("POST", "cosigned", witness.Cosign(signed, time.Now()), http.StatusOK)
	for _, path := range []string{"checkpoint", "cosigned"} {
		shown, _ := ask("GET", path, nil, http.StatusOK)
		if found, err := anchor.Cosignatures(shown, []*anchor.Witness{known}); err != nil || len(found) != 1 {
			t.Errorf("%s has cosignatures %+v, error %v", path, found, err)
		}
	}

	remote := Remote{Client: server.Client(), Prefix: server.URL + "/v1/log", Keys: []note.Verifier{key}}
	older, _, err := remote.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grow("four", "five")
	newer, _, err := remote.Checkpoint(t.Context())
	if err == nil {
		err = remote.GoesOnFrom(t.Context(), older, newer)
	}
	if err != nil || older.Size != 3 || newer.Size != 5 {
		t.Errorf("from %+v to %+v: %v", older, newer, err)
	}
	if seen, _, err := remote.Cosigned(t.Context()); err != nil || seen.Size != 3 {
		t.Errorf("the cosigned checkpoint is %+v, error %v", seen, err)
	}
}
