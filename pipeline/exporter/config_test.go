package exporter

import (
	"fmt"
	"testing"
)

// Faults of the files and places of copies and anchors are found before anything is started.
func TestFaultsOfCopiesAndAnchorsAreAllReported(t *testing.T) {
	cfg := Default()
	if faults := append(cfg.Validate(), cfg.FileFaults()...); len(faults) != 0 {
		t.Errorf("the defaults: %v", faults)
	}
	cfg.NATS.CAFile, cfg.Copies.ObjectStore, cfg.Anchors.TSAURL, cfg.Anchors.TSACertFile = "none", "a b", "https://h", "none"
	cfg.Copies.S3.Endpoint, cfg.Copies.S3.Bucket, cfg.Copies.S3.CredentialsFile, cfg.Copies.S3.CAFile = "https://h", "bucket", "none", "none"
	keys := []string{}
	for _, fault := range append(cfg.Validate(), cfg.FileFaults()...) {
		keys = append(keys, fault.Key)
	}
	if got := fmt.Sprint(keys); got != "[object_store nats_ca_file s3_credentials_file s3_ca_file tsa_cert_file]" {
		t.Error(got)
	}
}
