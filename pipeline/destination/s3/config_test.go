package s3_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/destination/s3"
)

// All faults are reported at once, each under its key, without any value that could be secret.
func TestAllFaultsOfTheConfigAreReported(t *testing.T) {
	good := s3.Default()
	good.Endpoint, good.Bucket, good.Prefix = "https://s3.example.com", "bundles", "a/b/"
	for _, c := range []struct {
		change func(*s3.Config)
		keys   string
	}{
		{func(*s3.Config) {}, ""},
		{func(c *s3.Config) { *c = s3.Default() }, ""},
		{func(c *s3.Config) { c.Endpoint = "http://127.0.0.1:9000" }, ""},
		{func(c *s3.Config) { c.Endpoint = "" }, "s3_endpoint"},
		{func(c *s3.Config) { c.Endpoint = "s3.example.com" }, "s3_endpoint"},
		{func(c *s3.Config) { c.Endpoint = "http://s3.example.com" }, "s3_endpoint"},
		{func(c *s3.Config) { c.Endpoint = "https://key:hunter2@s3.example.com" }, "s3_endpoint"},
		{func(c *s3.Config) { c.Endpoint = "https://s3.example.com/bundles" }, "s3_endpoint"},
		{func(c *s3.Config) { c.Endpoint, c.CAFile = "http://[::1]:9000", "ca.pem" }, "s3_ca_file"},
		{func(c *s3.Config) { c.Prefix = "../b" }, "s3_prefix"},
		{func(c *s3.Config) { c.Prefix = "/a" }, "s3_prefix"},
		{func(c *s3.Config) {
			c.Bucket, c.Prefix, c.Region, c.Profile, c.Addressing = "B_", "a//b", "", "", "host"
		},
			"s3_addressing s3_bucket s3_prefix s3_region s3_profile"},
	} {
		cfg := good
		c.change(&cfg)
		var keys []string
		for _, fault := range cfg.Validate() {
			keys = append(keys, fault.Key)
			if strings.Contains(fault.Message, "hunter2") {
				t.Errorf("%s repeats the password", fault)
			}
		}
		if !slices.Equal(keys, strings.Fields(c.keys)) {
			t.Errorf("%+v: faults at %v, want %s", cfg, keys, c.keys)
		}
	}
}

// Open reports missing files and variables under the setting that names them, without their
// contents.
func TestMissingCredentials(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	half := write("half", "[default]\naws_secret_access_key = hunter2\n")
	junk := write("junk", "hunter2")
	for want, cfg := range map[string]s3.Config{
		"AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set": {},
		"s3_credentials_file: stat":                             {CredentialsFile: filepath.Join(dir, "none"), Profile: "default"},
		half + " has no aws_access_key_id":                      {CredentialsFile: half, Profile: "default"},
		junk + " has no aws_access_key_id":                      {CredentialsFile: junk, Profile: "default"},
		"in section [other]":                                    {CredentialsFile: half, Profile: "other"},
	} {
		for _, variable := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"} {
			t.Setenv(variable, "")
		}
		cfg.Endpoint, cfg.Bucket = "https://s3.example.com", "bundles"
		_, err := s3.Open(&cfg)
		if !errors.Is(err, config.ErrUsage) || !strings.Contains(fmt.Sprint(err), want) || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	cfg := s3.Config{Endpoint: "https://s3.example.com", Bucket: "bundles", Region: "r", CAFile: junk}
	if _, err := s3.Open(&cfg); !errors.Is(err, config.ErrUsage) || !strings.Contains(fmt.Sprint(err), "s3_ca_file") {
		t.Errorf("%v, want the file of authorities to be refused", err)
	}
	cfg.CAFile = ""
	b, err := s3.Open(&cfg)
	if err != nil || b.Location() != "https://s3.example.com/bundles" {
		t.Errorf("%v, %v", b, err)
	}
}
