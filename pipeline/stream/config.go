package stream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// Defaults of Config.
const (
	DefaultDuplicateWindow = 2 * time.Minute
	DefaultTimeout         = 10 * time.Second
)

// Config configures the connection to the broker. URL alone is enough for the embedded broker,
// whose URL contains its password.
type Config struct {
	URL  string // nats://, tls:// or ws(s)://; several are separated by commas
	Name string // of this service, shown in the broker's list of connections

	// At most one way to log in. If all are empty, the URL decides.
	CredentialsFile string // a .creds file (JWT and seed)
	NKeySeedFile    string // a file with an nkey seed
	User, Password  string
	Token           string

	// InboxPrefix is the prefix of the subjects on which the broker's answers arrive; default
	// "_INBOX". A broker that isolates users gives each one its own prefix.
	InboxPrefix string

	// TLS files in PEM: a CA alone, or a CA with a client's certificate and key.
	CAFile, CertFile, KeyFile string

	Tenant          string        // default "default"; streams of another tenant are refused
	Replicas        int           // of each stream and bucket that this client creates; default 1
	DuplicateWindow time.Duration // of stream TRACES; default 2 min
	Timeout         time.Duration // of one publish or lookup, retries included; default 10 s
	MonitorURL      string        // monitoring pages of all servers, comma-separated; some checks need them
	AllowUnsafe     bool          // log settings below the durability requirement instead of refusing them
	Logger          *slog.Logger  // default slog.Default()

	// Dial connects to a server; the default is TCP. A test may use it for its own broker.
	Dial func(network, address string) (net.Conn, error)
}

// Validate returns every fault with its key path.
func (c Config) Validate() error {
	var faults []error
	fault := func(key, format string, args ...any) {
		faults = append(faults, fmt.Errorf("broker.%s: %s", key, fmt.Sprintf(format, args...)))
	}
	for _, part := range strings.Split(c.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(part)); err != nil || u.Host == "" {
			fault("url", "must be an address such as nats://host:4222")
		}
	}
	logins := []string{c.CredentialsFile, c.NKeySeedFile, c.User, c.Token}
	if len(slices.DeleteFunc(logins, func(s string) bool { return s == "" })) > 1 {
		fault("credentials_file", "give only one of credentials_file, nkey_seed_file, user and token")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		fault("cert_file", "cert_file and key_file belong together")
	}
	if err := subject.CheckInboxPrefix(c.InboxPrefix); err != nil {
		fault("inbox_prefix", "%v", err)
	}
	if c.Replicas < 0 || c.Replicas > 5 {
		fault("replicas", "is %d, want 1 to 5", c.Replicas)
	}
	if timeout := cmp.Or(c.Timeout, DefaultTimeout); c.DuplicateWindow != 0 && c.DuplicateWindow < 2*timeout {
		fault("duplicate_window", "is %v, want at least twice the timeout (%v): a retry must fall into it", c.DuplicateWindow, timeout)
	}
	return errors.Join(faults...)
}

func (c Config) complete() Config {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Tenant = cmp.Or(c.Tenant, "default")
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.DuplicateWindow = cmp.Or(c.DuplicateWindow, DefaultDuplicateWindow)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}
