package store

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/pipeline/transport"
)

// Parameters of a DSN, in addition to the driver's secure=true. Each one names a file in PEM.
const (
	caFile   = "ca_file"   // authorities to verify the server's certificate with; the system's if absent
	certFile = "cert_file" // this client's certificate, for a server that requires one
	keyFile  = "key_file"  // its key
)

// secure completes the options of an encrypted connection: TLS 1.3 at least, and the files that
// the DSN names. The driver puts the names of the files among the settings for the server. secure
// removes them there.
func secure(o *clickhouse.Options) error {
	files := map[string]string{}
	for _, name := range []string{caFile, certFile, keyFile} {
		if path, ok := o.Settings[name]; ok {
			files[name] = fmt.Sprint(path)
			delete(o.Settings, name)
		}
	}
	switch {
	case o.TLS == nil && len(files) == 0:
		return nil
	case o.TLS == nil:
		return errors.New("clickhouse.dsn: ca_file, cert_file and key_file are for TLS: add secure=true")
	case (files[certFile] == "") != (files[keyFile] == ""):
		return errors.New("clickhouse.dsn: cert_file and key_file are given together or not at all")
	}
	o.TLS.MinVersion = transport.MinimumTLS
	if path := files[caFile]; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("clickhouse.dsn: ca_file: %w", err)
		}
		o.TLS.RootCAs = x509.NewCertPool()
		if !o.TLS.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("clickhouse.dsn: ca_file %s: has no certificate in PEM", path)
		}
	}
	if files[certFile] != "" {
		pair, err := tls.LoadX509KeyPair(files[certFile], files[keyFile])
		if err != nil {
			return fmt.Errorf("clickhouse.dsn: cert_file and key_file: %w", err)
		}
		o.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
