package s3

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/transport"
)

// Config configures the bucket and its connection. Without an endpoint there is no destination.
type Config struct {
	Endpoint        string `placeholder:"URL" help:"S3-compatible store that receives a copy of every bundle: https://host, or http://host on this machine. Empty: none." secret:"userinfo"`
	Bucket          string `placeholder:"NAME" help:"Bucket in that store."`
	Prefix          string `help:"Prefix of the names of all objects: folders, separated by /."`
	Region          string `help:"Region of the bucket. Requests are signed for this region."`
	Addressing      string `help:"Place of the bucket's name in requests: path, virtual (in the host's name), or auto."`
	CredentialsFile string `help:"Access key and secret, as in ~/.aws/credentials. Empty: the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY." type:"path"`
	Profile         string `help:"Section of the credentials file."`
	CAFile          string `name:"ca-file" help:"Certificate authority that the store's certificate is checked against. Empty: those of the system." type:"path"`
	CreateBucket    bool   `help:"Create the bucket if it is missing."`
}

// Default returns a configuration without a store.
func Default() Config {
	var c Config
	c.Complete()
	return c
}

// Complete sets defaults for empty fields.
func (c *Config) Complete() {
	c.Region = cmp.Or(c.Region, "us-east-1")
	c.Addressing = cmp.Or(c.Addressing, "auto")
	c.Profile = cmp.Or(c.Profile, "default")
}

var addressing = map[string]minio.BucketLookupType{
	"auto": minio.BucketLookupAuto, "path": minio.BucketLookupPath, "virtual": minio.BucketLookupDNS,
}

// Validate returns the faults under keys that begin with s3_.
func (c *Config) Validate() []config.Fault {
	var faults config.Faults
	_, known := addressing[c.Addressing]
	faults.Check(known, "s3_addressing", "%q: want auto, path or virtual", c.Addressing)
	if c.Endpoint == "" {
		faults.Check(c.Bucket == "", "s3_endpoint", "is empty, but s3_bucket is set")
		return faults
	}
	c.validateEndpoint(&faults)
	err := s3utils.CheckValidBucketNameStrict(c.Bucket)
	faults.Check(err == nil, "s3_bucket", "%q: %v", c.Bucket, err)
	clean := c.Prefix == "" || strings.TrimPrefix(path.Clean("/"+c.Prefix), "/") == strings.TrimSuffix(c.Prefix, "/")
	faults.Check(clean, "s3_prefix", "%q: want folders separated by single slashes", c.Prefix)
	faults.Check(c.Region != "", "s3_region", "is empty: for a store without regions, set any, such as us-east-1")
	faults.Check(c.Profile != "", "s3_profile", "is empty: want the name of a section")
	return faults
}

// validateEndpoint checks the address. Its faults do not quote the address, which may contain a
// password by mistake.
func (c *Config) validateEndpoint(faults *config.Faults) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" {
		faults.Check(false, "s3_endpoint", "want https://host or https://host:port without a path: set s3_bucket and s3_prefix separately")
		return
	}
	faults.Check(u.User == nil, "s3_endpoint", "contains credentials: set s3_credentials_file instead")
	faults.Check(u.Scheme == "https" || transport.Loopback(u.Host), "s3_endpoint", "http:// is accepted for this machine only: want https://")
	faults.Check(c.CAFile == "" || u.Scheme == "https", "s3_ca_file", "has no effect with http://")
}

// FileFaults returns the faults of the files with credentials and certificates, where a store is
// configured.
func (c *Config) FileFaults() []config.Fault {
	var faults config.Faults
	if c.Endpoint == "" {
		return nil
	}
	_, err := c.credentials()
	faults.Check(err == nil, "s3_credentials_file", "%v", err)
	_, err = c.transport(strings.HasPrefix(c.Endpoint, "https://"))
	faults.Check(err == nil, "s3_ca_file", "%v", err)
	return faults
}

// Open returns the bucket without contacting the store. Errors about the files that the
// configuration names wrap config.ErrUsage.
func Open(c *Config) (*Bucket, error) {
	secrets, err := c.credentials()
	if err != nil {
		return nil, fmt.Errorf("%w: s3_credentials_file: %w", config.ErrUsage, err)
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, errors.New("s3_endpoint is not a URL") // the text may contain a password
	}
	wire, err := c.transport(u.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("%w: s3_ca_file: %w", config.ErrUsage, err)
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: secrets, Secure: u.Scheme == "https", Transport: wire, Region: c.Region, BucketLookup: addressing[c.Addressing],
		MaxRetries:      1,    // package outbox retries
		TrailingHeaders: true, // without them the client sends no checksum, not even in a header
	})
	if err != nil {
		return nil, fmt.Errorf("%w: s3: %w", config.ErrUsage, err)
	}
	location := u.Scheme + "://" + u.Host + "/" + path.Join(c.Bucket, c.Prefix)
	return &Bucket{cfg: *c, client: client, wire: wire, secrets: secrets, location: location}, nil
}

// credentials reads access key and secret once, to check that they exist.
func (c *Config) credentials() (*credentials.Credentials, error) {
	secrets, where := credentials.NewEnvAWS(), "is empty, and AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set"
	if c.CredentialsFile != "" {
		if _, err := os.Stat(c.CredentialsFile); err != nil {
			return nil, err
		}
		secrets = credentials.NewFileAWSCredentials(c.CredentialsFile, c.Profile)
		where = fmt.Sprintf("%s has no aws_access_key_id and aws_secret_access_key in section [%s]", c.CredentialsFile, c.Profile)
	}
	value, err := secrets.GetWithContext(&credentials.CredContext{Client: http.DefaultClient})
	if err != nil || value.AccessKeyID == "" || value.SecretAccessKey == "" {
		return nil, errors.New(where) // the original error may quote a line of the file
	}
	return secrets, nil
}

func (c *Config) transport(secure bool) (*http.Transport, error) {
	wire, err := minio.DefaultTransport(secure)
	if err != nil || c.CAFile == "" {
		return wire, err
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate (PEM)", c.CAFile)
	}
	wire.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	return wire, nil
}
