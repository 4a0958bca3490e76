package machine_test

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

// A machine with a certificate serves HTTPS, also for the handshake, and its endpoints
// contain the https:// URL. The error of a client that does not trust the certificate says what to do.
func TestMachineWithCertificate(t *testing.T) {
	authority, dir := transporttest.New(t), t.TempDir()
	m := start(t, machine.Config{DataDir: dir, TLSCertFile: authority.CertFile, TLSKeyFile: authority.KeyFile, Stages: []string{machine.Ingest}})
	defer stop(t, m)
	url := m.Endpoints().IngestURL
	if !strings.HasPrefix(url, "https://") {
		t.Errorf("the address is %s", url)
	}
	found := false
	families, err := m.Registry().Gather()
	for _, family := range families {
		if family.GetName() != "plumbline_certificate_expiry_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() { // the certificate is valid for an hour
			left := metric.GetGauge().GetValue()
			found = found || strings.Contains(metric.String(), `value:"tls_cert_file"`) && left > 3000 && left <= 3600
		}
	}
	if err != nil || !found {
		t.Errorf("no metric of the certificate's expiry; error %v", err)
	}
	transport, err := client.NewHTTP(client.HTTPConfig{URL: url, Roots: authority.Roots})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	c := &client.Client{Transport: transport, AgentID: "a", CardID: "ac"}
	if _, err := c.Handshake(t.Context(), "b", client.Task{Type: "compare"}); err == nil || !strings.Contains(err.Error(), "no_card") {
		t.Errorf("a handshake with an agent without a card: error %v", err)
	}
	if _, err := machine.Find(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("found without trusting its certificate: error %v", err)
	}
}
