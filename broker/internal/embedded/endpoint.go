package embedded

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/pipeline/durable"
)

const (
	loopback = "127.0.0.1"
	user     = "plumbline"
)

// Endpoint is the listen address of a server and its credentials. It is kept in
// endpoint.json (0600) next to the store, so a restart changes nothing.
type Endpoint struct {
	Host         string `json:"host"`
	Port         int    `json:"port"`
	MonitorPort  int    `json:"monitor_port"` // HTTP, on loopback only
	MonitorToken string `json:"monitor_token"`
	User         string `json:"user"`
	Password     string `json:"password"`
}

// URL returns the address for clients, with user and password.
func (e Endpoint) URL() string {
	u := url.URL{Scheme: "nats", User: url.UserPassword(e.User, e.Password), Host: e.Address()}
	return u.String()
}

// Address returns host and port for clients on this machine.
func (e Endpoint) Address() string {
	if ip := net.ParseIP(e.Host); ip != nil && ip.IsUnspecified() {
		return address(loopback, e.Port)
	}
	return address(e.Host, e.Port)
}

// MonitorURL returns the base URL of the HTTP monitoring pages; its path is a secret.
func (e Endpoint) MonitorURL() string {
	u := url.URL{Scheme: "http", Host: address(loopback, e.MonitorPort), Path: "/" + e.MonitorToken}
	return u.String()
}

// Listens returns the addresses at which the server listens.
func (e Endpoint) Listens() []child.Address {
	return []child.Address{{Host: e.Host, Port: e.Port}, {Host: loopback, Port: e.MonitorPort}}
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// Load reads the endpoint of the server of a directory.
func Load(dir string) (Endpoint, error) {
	var e Endpoint
	raw, err := os.ReadFile(endpointFile(dir))
	if err != nil {
		return e, fmt.Errorf("read the broker's endpoint: %w", err)
	}
	if durable.Blank(raw) {
		return e, fmt.Errorf("read the broker's endpoint %s: %w", endpointFile(dir), errBlank)
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("read the broker's endpoint %s: %w: remove the file; a new one is then created", endpointFile(dir), err)
	}
	return e, nil
}

// errBlank reports an empty file: a loss of power erased the endpoint before it was on disk.
var errBlank = errors.New("the file is empty")

// Assign returns the endpoint of the directory for the given listener, and creates
// or changes it if necessary: a port is kept unless another process took it. A given port that is
// taken is an error, and changes nothing.
// An empty host is loopback, port 0 any port. The caller holds the directory's lock.
func Assign(dir, host string, port int) (Endpoint, error) {
	e, err := Load(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errBlank):
		e = Endpoint{User: user, Password: rand.Text(), MonitorToken: rand.Text()}
	case err != nil:
		return e, err
	}
	if e.Host = host; host == "" {
		e.Host = loopback
	}
	if port != 0 {
		if err := child.PortFree(e.Host, port); err != nil { // a start that fails leaves the port of the last one
			return e, fmt.Errorf("start broker: %w, or choose another port", err)
		}
		e.Port = port
	} else if e.Port, err = child.FreePort(e.Host, e.Port); err != nil {
		return e, err
	}
	e.MonitorPort, err = child.FreePort(loopback, e.MonitorPort)
	for err == nil && e.MonitorPort == e.Port { // FreePort can return the clients' port: no process listens on it yet
		e.MonitorPort, err = child.FreePort(loopback, 0)
	}
	if err != nil {
		return e, err
	}
	raw, err := json.MarshalIndent(e, "", "  ")
	if err == nil {
		err = durable.WriteFile(endpointFile(dir), raw, 0o600)
	}
	if err != nil {
		return e, fmt.Errorf("write the broker's endpoint: %w", err)
	}
	return e, nil
}

func endpointFile(dir string) string { return filepath.Join(dir, "endpoint.json") }
