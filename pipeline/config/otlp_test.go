package config

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each fault of the settings of OTLP is reported under the name of its setting, and no fault repeats a secret.
func TestSettingsOfOTLP(t *testing.T) {
	for name, test := range map[string]struct {
		settings OTLP
		want     string // the key of the only fault; empty: none
	}{
		"nowhere":               {OTLP{Interval: time.Minute}, ""},
		"only spans":            {OTLP{Endpoint: "http://127.0.0.1:4318"}, ""},
		"with a path":           {OTLP{Endpoint: "https://collector.example/otlp/", HeadersFile: "f", CAFile: "f"}, ""},
		"headers on loopback":   {OTLP{Endpoint: "http://localhost:4318", HeadersFile: "f"}, ""},
		"headers unencrypted":   {OTLP{Endpoint: "http://collector.example:4318", HeadersFile: "f"}, "otlp_headers_file"},
		"headers for nobody":    {OTLP{HeadersFile: "f"}, "otlp_headers_file"},
		"authority for nobody":  {OTLP{CAFile: "f"}, "otlp_ca_file"},
		"authority without TLS": {OTLP{Endpoint: "http://127.0.0.1:4318", CAFile: "f"}, "otlp_ca_file"},
		"a password":            {OTLP{Endpoint: "https://user:SECRET@collector.example"}, "otlp_endpoint"},
		"a query":               {OTLP{Endpoint: "https://collector.example?token=SECRET"}, "otlp_endpoint"},
		"no scheme":             {OTLP{Endpoint: "SECRET:4318"}, "otlp_endpoint"},
		"gRPC":                  {OTLP{Endpoint: "grpc://collector.example:4317"}, "otlp_endpoint"},
		"no URL":                {OTLP{Endpoint: "https://%SECRET"}, "otlp_endpoint"},
		"too often":             {OTLP{Interval: time.Millisecond}, "otlp_interval"},
		"over gRPC":             {OTLP{Endpoint: "https://collector.example:4317/", Protocol: "grpc", HeadersFile: "f", CAFile: "f"}, ""},
		"over gRPC, a path":     {OTLP{Endpoint: "https://collector.example:4317/SECRET", Protocol: "grpc"}, "otlp_endpoint"},
		"over JSON":             {OTLP{Endpoint: "https://collector.example:4318", Protocol: "http/json"}, "otlp_protocol"},
	} {
		test.settings.Protocol = cmp.Or(test.settings.Protocol, DefaultOTLP().Protocol)
		faults := test.settings.Validate()
		if test.want == "" && len(faults) > 0 || test.want != "" && (len(faults) != 1 || faults[0].Key != test.want) {
			t.Errorf("%s: %v", name, faults)
		}
		for _, fault := range faults {
			if strings.Contains(fault.Message, "SECRET") {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
}

// A file of headers is refused whole, without repeating a line.
func TestFileOfHeaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headers")
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		want string // in the error; empty: none
	}{
		"good":            {"# a token\n\nAuthorization:Bearer a:b \nX-Tenant: 1\nX-Tenant: 2\n", 0o640, ""},
		"everyone's":      {"Authorization: SECRET\n", 0o644, "chmod o-rwx"},
		"no name":         {": SECRET\n", 0o600, "headers:1: want Name: value"},
		"no colon":        {"A: b\nSECRET\n", 0o600, "headers:2: want Name: value"},
		"a space":         {"SECRET SECRET: b\n", 0o600, "headers:1: want Name: value"},
		"a control":       {"A: SECRET\x01\n", 0o600, "headers:1: want Name: value"},
		"nothing":         {"# none\n", 0o600, "has no header"},
		"longer than all": {"A: " + strings.Repeat("SECRET", mostHeaderBytes), 0o600, "is larger than"},
	} {
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, test.mode); err != nil {
			t.Fatal(err)
		}
		o := OTLP{Endpoint: "https://collector.example", HeadersFile: path}
		headers, err := o.Headers()
		switch {
		case test.want == "":
			if err != nil || headers.Get("Authorization") != "Bearer a:b" || len(headers.Values("X-Tenant")) != 2 {
				t.Errorf("%s: %v, error %v", name, headers, err)
			}
		case err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "SECRET"):
			t.Errorf("%s: error %v", name, err)
		default:
			if faults := o.FileFaults(); len(faults) != 1 || faults[0].Key != "otlp_headers_file" {
				t.Errorf("%s: faults %v", name, faults)
			}
		}
	}
	missing := OTLP{Endpoint: "https://collector.example", CAFile: path}
	if faults := missing.FileFaults(); len(faults) != 1 || faults[0].Key != "otlp_ca_file" {
		t.Errorf("a file without a certificate: %v", faults)
	}
}
