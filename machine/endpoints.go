package machine

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// endpointsName is the file in the data directory that says where a running
// machine is reached. It holds passwords: mode 0600.
const endpointsName = "endpoints.json"

// Endpoints says where a running machine is reached.
type Endpoints struct {
	PID            int    `json:"pid"`
	DataDir        string `json:"data_dir"`
	IngestURL      string `json:"ingest_url"`            // http://host:port, https:// with a certificate; also /readyz and /metrics of all stages
	ConsoleURL     string `json:"console_url,omitempty"` // of the pages for people
	OTLPGRPC       string `json:"otlp_grpc,omitempty"`   // http://host:port for spans over OTLP/gRPC, https:// with a certificate
	NATSURL        string `json:"nats_url"`
	NATSMonitorURL string `json:"nats_monitor_url,omitempty"`
	ClickHouseDSN  string `json:"clickhouse_dsn"`            // read-only on the embedded engine
	OperatorDSN    string `json:"operator_dsn,omitempty"`    // read-only on the embedded engine; may also read the bytes of dead letters
	ServiceDSN     string `json:"service_dsn,omitempty"`     // may insert, as the services do
	ClickHouseHTTP string `json:"clickhouse_http,omitempty"` // http://host:port of the embedded engine
	Bundles        string `json:"bundles"`                   // directory of the sealed bundles
	PublicKey      string `json:"public_key"`                // of the key that signs them, 64 hexadecimal digits
	HandshakeKey   string `json:"handshake_key"`             // of the key that signs answers of the handshake, 64 hexadecimal digits

	TokenFile           string `json:"token_file,omitempty"`            // hashed tokens; empty where no token is needed
	MessagePoliciesFile string `json:"message_policies_file,omitempty"` // the policies that messages must satisfy
	DriftMode           string `json:"drift_mode,omitempty"`            // only where it is not the default
	TSACertFile         string `json:"tsa_cert_file,omitempty"`         // certificates that time stamps are verified with

	Thresholds      Thresholds       `json:"thresholds,omitzero"`       // of AAP section 8.3; zero in a file that an earlier version wrote
	DriftComparison drift.Comparison `json:"drift_comparison,omitzero"` // also zero there
}

// WithoutSecrets returns the endpoints without credentials, for printing. It also drops the
// URL of the embedded broker's monitoring pages, whose path is a secret. endpoints.json has
// all of them.
func (e Endpoints) WithoutSecrets() Endpoints {
	e.OperatorDSN, e.ServiceDSN, e.NATSMonitorURL = "", "", ""
	e.NATSURL, e.ClickHouseDSN = config.RedactURLs(e.NATSURL), config.RedactURLs(e.ClickHouseDSN)
	return e
}

// ErrNotRunning is wrapped by the error of Find when no machine runs on the data directory.
var ErrNotRunning = errors.New("no plumbline is running")

// Find returns where the machine that runs on a data directory is reached.
func Find(ctx context.Context, dataDir string) (*Endpoints, error) {
	path := filepath.Join(dataDir, endpointsName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notRunning(dataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("find the running plumbline: %w", err)
	}
	e := new(Endpoints)
	if err := json.Unmarshal(text, e); err != nil {
		return nil, fmt.Errorf("find the running plumbline: %s: %w", path, err)
	}
	err = e.ask(ctx)
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return nil, fmt.Errorf("find the running plumbline: %w: set the variable SSL_CERT_FILE to the file of its authority", err)
	}
	if err != nil || ended(e.PID) { // a killed machine left the file, and another one may have its address
		return nil, notRunning(dataDir)
	}
	return e, nil
}

// ended reports whether no process has the id.
func ended(pid int) bool { return pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func notRunning(dataDir string) error {
	return fmt.Errorf("%w on the data directory %s: start one with: plumbline up --data %s", ErrNotRunning, dataDir, dataDir)
}

// ask returns nil when the machine answers.
func (e *Endpoints) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.IngestURL+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("/healthz answered %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

func (e *Endpoints) write() error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(e.DataDir, endpointsName), append(text, '\n'), 0o600)
}
