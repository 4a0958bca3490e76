package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// service serves the operators' interface of a service.
func (r *rig) service(answer http.HandlerFunc) (url string) {
	served := httptest.NewServer(answer)
	r.t.Cleanup(served.Close)
	return served.URL
}

// A console of its own shows what the services that it knows say of themselves, and which of them does not answer, to
// those who see every agent.
func TestServices(t *testing.T) {
	r := start(t, nil, "all-token * traces:read", "shop-token shop.* traces:read")
	busy := r.service(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, `{"ready":false,"down":{"database":"<script>alert(1)</script>"}}`)
			return
		}
		_, _ = fmt.Fprint(w, "# HELP plumbline_backlog_messages Messages.\nplumbline_backlog_messages{consumer=\"verifier\",stage=\"verifier\"} 1234\nplumbline_backlog_messages{consumer=\"a \\\"b\\\"\",stage=\"x\"} 2e+06\nplumbline_other{consumer=\"c\"} 7\n")
	})
	moved := r.service(func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, busy+q.URL.Path, http.StatusFound) })
	all, shop := r.visitor("all-token"), r.visitor("shop-token")
	all.page("/", "This console knows no other service")
	r.server.cfg.ServiceURLs = []string{busy, moved, "http://127.0.0.1:1"}
	name := strings.TrimPrefix(busy, "http://")
	text := all.page("/", "<b><bdi>database of "+name+"</bdi></b> does not work: <bdi>&lt;script&gt;", "<bdi>verifier</bdi></td><td><bdi>"+name+"</bdi></td><td class=\"n\">1\u2009234<", "a &#34;b&#34;", "2\u2009000\u2009000",
		"/readyz answers with status 302", "the service at 127.0.0.1:1</bdi></b> does not work: <bdi>this console gets no answer from it")
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<bdi>c</bdi>") {
		t.Errorf("the state of a service:\n%s", withoutCharts(text))
	}
	if text := shop.page("/"); strings.Contains(text, name) || strings.Contains(text, "does not work") || strings.Contains(text, "knows no other service") {
		t.Errorf("a token for some agents sees services:\n%s", withoutCharts(text))
	}
}

// A service that hangs delays no page; the pages say so.
func TestServiceThatHangs(t *testing.T) {
	r := start(t, nil)
	r.server.services.fresh = false
	r.server.cfg.ServiceURLs = []string{r.service(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })}
	began := time.Now()
	state, asking, err := r.server.serviceStates(t.Context())
	if took := time.Since(began); !asking || err != nil || took >= serviceTime {
		t.Errorf("a page waits %s: %+v, asking %t, %v", took, state, asking, err)
	}
	v := r.visitor("")
	for v.page("/"); !strings.Contains(v.page("/"), "no answer from it: none within 4s"); {
		if time.Since(began) > 2*time.Minute {
			t.Fatal("a service that hangs is never said to")
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// A name with several addresses is asked at each of them, once.
func TestServiceWithSeveralInstances(t *testing.T) {
	r := start(t, nil)
	first := r.service(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"ready":true}`) })
	port := first[strings.LastIndexByte(first, ':')+1:]
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.2:"+port)
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Skipf("127.0.0.2 is no address of this machine: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	second := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/readyz" {
			_, _ = fmt.Fprint(w, `{"ready":false,"down":{"database":"away"}}`)
		}
	}))
	if err := second.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	second.Listener = listener
	second.Start()
	t.Cleanup(second.Close)
	known := map[string][]netip.Addr{"two": {netip.MustParseAddr("::ffff:127.0.0.2"), netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}}
	r.server.resolve = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if found := known[host]; found != nil {
			return slices.Clone(found), nil
		}
		return nil, errors.New("no such host")
	}
	r.server.cfg.ServiceURLs = []string{"dns+http://two:" + port, "dns+http://none:1/"}
	state, err := r.server.askServices(t.Context())
	want := []component{{"database of two:" + port + " (127.0.0.2)", "away"}, {"the service at dns+http://none:1/", "this console finds no instance of it: no such host"}}
	if err != nil || !slices.Equal(state.Down, want) {
		t.Errorf("%v, %v, want %v", state.Down, err, want)
	}
}

// An address that is not that of an operators' interface is refused.
func TestAddressesOfServices(t *testing.T) {
	for address, want := range map[string]bool{"http://verifier:9101": true, "https://ingest:8080/": true, "dns+http://verifier:9101": true, "dns+https://verifier:9101": false, "verifier:9101": false, "http://a:b@verifier:9101": false,
		"http://verifier/metrics": false, "http://verifier?x": false, "ftp://verifier": false, "": false} {
		cfg := Default()
		cfg.ServiceURLs = []string{address}
		if faults := cfg.Validate(); (len(faults) == 0) != want {
			t.Errorf("%q: %v", address, faults)
		}
	}
	cfg := Default()
	if cfg.ServiceURLs = slices.Repeat([]string{"http://a"}, mostServices+1); len(cfg.Validate()) != 1 {
		t.Error("more services than may be asked")
	}
}
