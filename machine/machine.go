package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/broker"
	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/telemetry"
)

// Machine is a running machine: the servers and the stages.
type Machine struct {
	cfg      Config
	lock     *durable.Lock
	servers  servers
	listener net.Listener // of ingest, which takes ownership of it
	grpc     net.Listener // of ingest for OTLP/gRPC, which takes ownership of it; nil: there is none
	console  net.Listener // of the console, which takes ownership of it; nil: there is none
	where    Endpoints

	registry *prometheus.Registry
	health   *obs.Health
	routes   *obs.Routes             // of the stages; ingest serves them
	held     map[string]*service.Env // of stages whose leases this machine holds and that are not started yet
	stages   []*stage
	exporter *telemetry.Exporter // of own metrics and spans; nil: none are sent
	exports  func()              // ends it; nil before it began
	space    func() error        // ends what shows the free space of the servers' directories; nil before it began
	failed   chan error          // the first stage that ended by itself
}

// giveUp bounds the cleanup after a failed start.
const giveUp = 30 * time.Second

// Start starts everything and returns when it works. ctx bounds the start only.
// main must have called child.Dispatch first. The error wraps durable.ErrLocked
// where another machine uses the data directory, and config.ErrUsage where the
// configuration is wrong.
func Start(ctx context.Context, cfg Config) (*Machine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	m := &Machine{
		cfg:      cfg,
		registry: obs.NewRegistry(cfg.Version),
		health:   new(obs.Health),
		routes:   new(obs.Routes),
		held:     map[string]*service.Env{},
		failed:   make(chan error, 1),
	}
	if err := m.start(ctx); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUp)
		defer cancel()
		return nil, errors.Join(err, m.Stop(cleanup))
	}
	return m, nil
}

func (m *Machine) start(ctx context.Context) error {
	if err := m.claim(ctx); err != nil {
		return err
	}
	if err := m.servers.startBroker(ctx, &m.cfg); err != nil {
		return err
	}
	if m.servers.broker != nil {
		m.showFaults("broker", m.servers.broker.Fault)
	}
	if err := m.hold(ctx); err != nil {
		return err
	}
	sessionKey, err := m.openKey(ctx, keyring.Session)
	if err != nil {
		return err
	}
	handshakeKey, err := m.openKey(ctx, keyring.Handshake)
	if err != nil {
		return err
	}
	if err := m.servers.startDatabase(ctx, &m.cfg); err != nil {
		return err
	}
	if m.servers.engine != nil {
		m.showFaults("database", func() error { return m.servers.engine.State().Fault })
	}
	m.showSpace()
	if err := m.sendTelemetry(); err != nil {
		return err
	}
	m.where = m.endpoints(m.listener.Addr(), sessionKey, handshakeKey)
	m.cfg.Progress("starting the services")
	for _, name := range Stages() {
		if !slices.Contains(m.cfg.Stages, name) {
			continue
		}
		if err := m.StartStage(name); err != nil {
			return err
		}
	}
	if m.cfg.WebhooksFile != "" {
		if err := m.StartStage(Webhooks); err != nil {
			return err
		}
	}
	if m.console != nil {
		if err := m.StartStage(Console); err != nil {
			return err
		}
	}
	if err := m.awaitReady(ctx); err != nil {
		return err
	}
	return m.where.write()
}

// showFaults makes readiness report why an embedded server does not run. A stage cannot know
// the reason.
func (m *Machine) showFaults(component string, fault func() error) {
	c := m.health.Component(component, "up")
	c.Ask(func(context.Context) error { return fault() })
	c.Up()
}

// showSpace shows the free space of the disks below the embedded servers until Stop. The exporter
// shows that of the bundles.
func (m *Machine) showSpace() {
	var directories []service.Directory
	if m.servers.broker != nil {
		directories = append(directories, service.Directory{Name: "broker", Path: m.cfg.path("broker")})
	}
	if m.servers.engine != nil {
		directories = append(directories, service.Directory{Name: "engine", Path: m.cfg.path("engine")})
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	m.space = func() error { cancel(); return <-ended }
	go func() { ended <- service.ShowSpace(ctx, m.ownMetrics(), directories...) }()
}

// sendTelemetry begins to send the metrics and spans of all stages until Stop, where that is configured.
func (m *Machine) sendTelemetry() (err error) {
	m.exporter, err = telemetry.Open(m.cfg.OTLP, telemetry.Process{
		Name: "up", Version: m.cfg.Version, Tenant: m.cfg.Tenant, Gatherer: m.registry, Metrics: m.ownMetrics(), Log: m.cfg.Log,
	})
	if err != nil {
		return err
	}
	m.exports = m.exporter.Start()
	return nil
}

// ownMetrics returns where the metrics are registered that no stage has.
func (m *Machine) ownMetrics() prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"stage": "up"}, m.registry)
}

// claim takes the data directory and the listen address of ingest for this machine,
// before anything costly is started. What a killed machine left in the directory no longer
// blocks it.
func (m *Machine) claim(ctx context.Context) (err error) {
	if err := durable.MkdirAll(m.cfg.DataDir, 0o700); err != nil {
		return err
	}
	if m.lock, err = durable.Acquire(m.cfg.path("lock"), "plumbline"); err != nil {
		return err
	}
	if err := removeEndpoints(m.cfg.DataDir); err != nil {
		return err
	}
	if m.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", m.cfg.Listen); err != nil {
		return fmt.Errorf("listen for publishers: %w: choose another address with --listen", err)
	}
	stage := m.cfg.ingest()
	if m.grpc, err = ingest.ListenGRPC(ctx, &stage); err != nil {
		return fmt.Errorf("%w: choose another address with --otlp-grpc-listen", err)
	}
	if m.cfg.Console == "" {
		return nil
	}
	if m.console, err = m.listenForBrowsers(ctx); err != nil {
		return fmt.Errorf("listen for browsers: %w: choose another address with --console-listen", err)
	}
	return nil
}

// listenForBrowsers opens the listener of the console.
func (m *Machine) listenForBrowsers(ctx context.Context) (net.Listener, error) {
	listen := func(address string) (net.Listener, error) { return new(net.ListenConfig).Listen(ctx, "tcp", address) }
	if m.cfg.Console != ConsoleAnywhere {
		return listen(m.cfg.Console)
	}
	if port := m.cfg.listenPort(); port > 0 && port < 1<<16-1 {
		if next, err := listen(fmt.Sprintf("127.0.0.1:%d", port+1)); err == nil {
			return next, nil
		}
	}
	return listen("127.0.0.1:0")
}

// awaitReady returns when every stage has started. Health does not signal changes, so
// awaitReady polls the reported state every few milliseconds.
func (m *Machine) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !m.health.Reported().Ready {
		select {
		case <-tick.C:
		case err := <-m.failed:
			return err
		case <-ctx.Done():
			down, lines := m.health.Reported().Down, ""
			for _, component := range slices.Sorted(maps.Keys(down)) {
				lines += fmt.Sprintf("\n  %s: %s", component, down[component])
			}
			return fmt.Errorf("stopped before everything was ready (%w):%s", ctx.Err(), lines)
		}
	}
	return nil
}

// Endpoints returns where the machine is reached.
func (m *Machine) Endpoints() Endpoints { return m.where }

// Broker returns the embedded broker; nil with an external one.
func (m *Machine) Broker() *broker.Broker { return m.servers.broker }

// Engine returns the embedded database engine; nil with an external one.
func (m *Machine) Engine() *engine.Engine { return m.servers.engine }

// Registry returns the registry with the metrics of all stages.
func (m *Machine) Registry() *prometheus.Registry { return m.registry }

// Wait returns nil when ctx ends, or the error of a stage that ended by itself.
// The caller calls Stop in both cases.
func (m *Machine) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-m.failed:
		return err
	}
}

// Stop drains the stages one after the other, in the order in which a trace passes
// through them, all within the drain budget, and then stops the servers. Whatever still
// runs when ctx ends is killed. Call Stop once, also after a failure.
func (m *Machine) Stop(ctx context.Context) error {
	m.health.Drain()
	var faults []error
	if m.lock != nil {
		faults = append(faults, removeEndpoints(m.cfg.DataDir))
	}
	faults = append(faults, m.stopStages(ctx))
	for _, env := range m.held {
		faults = append(faults, env.Held.Close(ctx))
	}
	if m.space != nil {
		faults = append(faults, m.space())
	}
	if m.exports != nil {
		m.exports()
	}
	if m.servers.engine != nil {
		faults = append(faults, m.servers.engine.Stop(ctx))
	}
	if m.servers.broker != nil {
		faults = append(faults, m.servers.broker.Stop(ctx))
	}
	for _, listener := range []net.Listener{m.listener, m.grpc, m.console} {
		if listener == nil {
			continue
		}
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) { // ingest or the console has closed it already
			faults = append(faults, err)
		}
	}
	if m.lock != nil {
		faults = append(faults, m.lock.Release())
	}
	return errors.Join(faults...)
}

func removeEndpoints(dataDir string) error {
	err := os.Remove(filepath.Join(dataDir, endpointsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (m *Machine) keyPath() string { return m.cfg.path("keys", "session.key") }

// openKey returns the public half, in hexadecimal, of the key for a purpose. It creates the
// key at the first start.
func (m *Machine) openKey(ctx context.Context, purpose keyring.Purpose) (string, error) {
	opened, err := keystore.In(m.cfg.path("keys"), purpose).Open(ctx, time.Now())
	if err != nil {
		return "", err
	}
	return opened.Entry.PublicKey, nil
}
