package service_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

// The file of a setting may be given for several connections. A file without a certificate is an
// error that names the setting and the file.
func TestCertificatesExpire(t *testing.T) {
	authority, env := transporttest.New(t), pipelinetest.Env(t, "tester")
	for range 2 {
		if err := env.ShowCertificate("nats_ca_file", authority.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	if got := pipelinetest.Metric(t, env, "plumbline_certificate_expiry_seconds", "nats_ca_file"); got < 3000 || got > 3600 {
		t.Errorf("the certificate of an hour expires in %v s", got)
	}
	if err := env.ShowCertificate("nats_cert_file", ""); err != nil {
		t.Errorf("a setting that is not given: %v", err)
	}
	err := env.ShowCertificate("nats_cert_file", authority.KeyFile)
	if err == nil || !strings.Contains(err.Error(), "nats_cert_file: "+authority.KeyFile+": has no certificate") {
		t.Errorf("a key in place of a certificate: %v", err)
	}
}

// A directory that does not exist has no value, and the others have theirs.
func TestSpaceIsShown(t *testing.T) {
	registry, dir := prometheus.NewRegistry(), t.TempDir()
	pipelinetest.Go(t, func(ctx context.Context) error {
		return service.ShowSpace(ctx, registry, service.Directory{Name: "here", Path: dir}, service.Directory{Name: "gone", Path: filepath.Join(dir, "gone")})
	})
	pipelinetest.Await(t, "the space of one directory", func() bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		shown := 0
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if metric.GetLabel()[0].GetValue() != "here" || metric.GetGauge().GetValue() <= 0 {
					t.Errorf("%s: %v", family.GetName(), metric)
				}
				shown++
			}
		}
		return shown == 2
	})
}
