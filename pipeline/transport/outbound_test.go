package transport

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

// A connection over which a request got no answer in time is not used for the next one, which HTTP/2 would do.
func TestSilentConnectionIsClosed(t *testing.T) {
	authority := transporttest.New(t)
	trust, err := Trust(authority.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]*http.Client{"encrypted": Outbound(trust), "HTTP/2 only": OutboundHTTP2(nil)} {
		silent := make(chan string, 1) // the address of the first connection
		var first string
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			switch {
			case r.ProtoMajor != 2:
				t.Errorf("%s: %s", name, r.Proto)
			case first == "":
				first = r.RemoteAddr
				silent <- first
				<-r.Context().Done()
			case r.RemoteAddr == first:
				t.Errorf("%s: the silent connection is used again", name)
			}
		}))
		if client.Transport.(abandoning).Protocols == nil {
			server.TLS, server.EnableHTTP2 = authority.Server(0), true
			server.StartTLS()
		} else {
			server.Config.Protocols = new(http.Protocols)
			server.Config.Protocols.SetUnencryptedHTTP2(true)
			server.Start()
		}
		ctx, late := context.WithCancel(t.Context())
		go func() { <-silent; late() }()
		for i, ctx := range []context.Context{ctx, t.Context(), t.Context()} {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(request)
			if (err == nil) != (i > 0) {
				t.Errorf("%s, request %d: error %v", name, i, err)
			}
			if err == nil {
				_ = answer.Body.Close()
			}
		}
		client.CloseIdleConnections()
		server.Close()
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "9999999": 24 * time.Hour,
		"Sat, 28 Nov 2026 12:01:00 GMT": time.Minute, "Sat, 28 Nov 2026 11:00:00 GMT": 0, "Sun, 28 Nov 2027 12:00:00 GMT": 24 * time.Hour,
	} {
		if got := RetryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
