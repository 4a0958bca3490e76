package web

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// A console that runs as a service of its own asks the other services, at the addresses of their operators' interfaces:
// what does not work (/readyz), and the backlogs (/metrics). Both are there for everybody who reaches the address, so the
// console needs no right for it, and no page waits for an answer longer than kept does.
const (
	mostServices   = 64                   // addresses in the configuration, and instances behind one of them
	serviceTime    = 2 * obs.AnswerWithin // of all, which are asked at once
	mostAnswer     = 4 << 20              // bytes of an answer
	mostDown       = 20                   // components of one service
	mostReason     = 500                  // bytes
	mostBacklogs   = 100                  // of one service
	backlogMetric  = "plumbline_backlog_messages"
	backlogOf      = backlogMetric + "{"
	consumerOfLine = `consumer="`

	// eachAddress before an address means every address of its name, behind each of which is an instance of the service.
	eachAddress = "dns+"
)

// component is a part of the pipeline that does not work now, with the reason.
type component struct{ Name, Reason string }

// backlog is how many messages a consumer has before it.
type backlog struct {
	Consumer string
	Service  string // address; empty: this process
	Messages uint64
}

// serviceState is what is known of services.
type serviceState struct {
	Down     []component
	Backlogs []backlog
	Asked    time.Time // the others; zero: there are none, or no answer yet
}

// ownState returns the state of this process: within plumbline up that is every service, otherwise the console alone.
func (s *server) ownState() (state serviceState) {
	state.Down = componentsOf("", s.env.Health.Readiness())
	families, err := s.env.Gatherer.Gather()
	if err != nil { // what was gathered is still right
		s.log.Debug("some metrics could not be gathered", "error", err)
	}
	for _, family := range families {
		if family.GetName() != backlogMetric {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "consumer" {
					state.Backlogs = append(state.Backlogs, backlog{Consumer: label.GetValue(), Messages: messages(metric.GetGauge().GetValue())})
				}
			}
		}
	}
	return state
}

func messages(gauge float64) uint64 {
	if !(gauge > 0) { // also no number
		return 0
	}
	return uint64(gauge)
}

// serviceStates returns the state of this process and of the services that the configuration names. Those are asked
// while the visitor waits a moment; asking reports that none of their answers is there yet.
func (s *server) serviceStates(ctx context.Context) (state serviceState, asking bool, err error) {
	state = s.ownState()
	if len(s.cfg.ServiceURLs) == 0 {
		return state, false, nil
	}
	others, found, _, err := s.services.get(ctx, store.Agents{}, s.now(), s.askServices)
	state.Down, state.Backlogs, state.Asked = append(state.Down, others.Down...), append(state.Backlogs, others.Backlogs...), others.Asked
	return state, !found, err
}

// askServices asks every service at once. A service that does not answer is a component that does not work.
func (s *server) askServices(ctx context.Context) (serviceState, error) {
	asked := s.now()
	ctx, cancel := context.WithTimeout(ctx, serviceTime)
	defer cancel()
	all := atOnce(s.cfg.ServiceURLs, func(address string) serviceState {
		instances, err := s.instancesAt(ctx, strings.TrimSuffix(address, "/"))
		if err != nil {
			return serviceState{Down: []component{{"the service at " + address, "this console finds no instance of it: " + schema.Clip(err.Error(), mostReason)}}}
		}
		return atOnce(instances, func(one instance) serviceState { return s.askInstance(ctx, one) })
	})
	all.Asked = asked
	return all, nil
}

// atOnce asks for all states at once, and returns them as one, in their order.
func atOnce[T any](asked []T, ask func(T) serviceState) (all serviceState) {
	states := make([]serviceState, len(asked))
	var group sync.WaitGroup
	for i, one := range asked {
		group.Go(func() { states[i] = ask(one) })
	}
	group.Wait()
	for _, state := range states {
		all.Down, all.Backlogs = append(all.Down, state.Down...), append(all.Backlogs, state.Backlogs...)
	}
	return all
}

// instance is a process that can be asked.
type instance struct{ name, url string }

// instancesAt returns the processes at an address of the configuration: one, unless it begins with eachAddress. The addresses
// of a name are those of IPv4, or if it has none those of IPv6: with both, an instance would be asked twice.
func (s *server) instancesAt(ctx context.Context, address string) (all []instance, err error) {
	plain, each := strings.CutPrefix(address, eachAddress)
	u, err := url.Parse(plain)
	if err != nil {
		return nil, err
	}
	if !each {
		return []instance{{u.Host, plain}}, nil
	}
	found, err := s.resolve(ctx, "ip", u.Hostname())
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	if slices.ContainsFunc(found, netip.Addr.Is4) {
		found = slices.DeleteFunc(found, netip.Addr.Is6)
	}
	slices.SortFunc(found, netip.Addr.Compare)
	for _, ip := range slices.Compact(found) {
		if len(all) < mostServices {
			all = append(all, instance{fmt.Sprintf("%s (%s)", u.Host, ip), "http://" + net.JoinHostPort(ip.String(), cmp.Or(u.Port(), "80"))})
		}
	}
	return all, nil
}

// askInstance asks one process for its readiness and its backlogs.
func (s *server) askInstance(ctx context.Context, one instance) (state serviceState) {
	var ready obs.Readiness
	err := s.ask(ctx, one.url+"/readyz", func(body io.Reader) error { return json.NewDecoder(body).Decode(&ready) }, http.StatusOK, http.StatusServiceUnavailable)
	if err == nil {
		state.Down = componentsOf(one.name, ready)
		err = s.ask(ctx, one.url+"/metrics", func(body io.Reader) (err error) {
			state.Backlogs, err = readBacklogs(body, one.name)
			return err
		}, http.StatusOK)
	}
	if err != nil {
		state.Down = append(state.Down, component{"the service at " + one.name, "this console gets no answer from it: " + schema.Clip(err.Error(), mostReason)})
	}
	return state
}

// ask makes a request, and gives the answer to read if its status is one of those.
func (s *server) ask(ctx context.Context, address string, read func(io.Reader) error, statuses ...int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := s.operators.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok { // the page has the address already
			err = failed.Err
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("none within %s", serviceTime.Round(time.Second))
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if !slices.Contains(statuses, answer.StatusCode) {
		return fmt.Errorf("%s answers with status %d", request.URL.Path, answer.StatusCode)
	}
	if err := read(io.LimitReader(answer.Body, mostAnswer)); err != nil {
		return fmt.Errorf("%s cannot be read: %w", request.URL.Path, err)
	}
	return nil
}

// componentsOf returns the components that are down. The service is part of their names, unless it is this process.
func componentsOf(service string, state obs.Readiness) (down []component) {
	at := ""
	if service != "" {
		at = " of " + service
	}
	if state.Draining {
		down = append(down, component{"the process" + at, "it stops"})
	}
	for _, name := range slices.Sorted(maps.Keys(state.Down)) {
		if len(down) < mostDown {
			down = append(down, component{schema.Clip(name, mostReason) + at, schema.Clip(state.Down[name], mostReason)})
		}
	}
	return down
}

// readBacklogs returns the backlogs among metrics in the text format of Prometheus.
func readBacklogs(metrics io.Reader, service string) (all []backlog, err error) {
	lines := bufio.NewScanner(metrics)
	for len(all) < mostBacklogs && lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, backlogOf) {
			continue
		}
		_, label, _ := strings.Cut(line, consumerOfLine)
		quoted, err := strconv.QuotedPrefix(`"` + label)
		if err != nil {
			return all, fmt.Errorf("the line %q has no consumer", schema.Clip(line, mostReason))
		}
		consumer, err := strconv.Unquote(quoted)
		if err != nil {
			return all, fmt.Errorf("the consumer of %q: %w", schema.Clip(line, mostReason), err)
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return all, fmt.Errorf("the backlog of %q: %w", consumer, err)
		}
		all = append(all, backlog{consumer, service, messages(value)})
	}
	return all, lines.Err()
}
