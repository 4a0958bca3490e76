package cards

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// AgentsOfHost returns the registered agents that a Host header stands for, the
// most exact first: those of host and port, then those of the host alone.
// An agent is the host's when its id is did:web:host, with %3A before a port, or
// an http(s) URL of the host. Among URLs those without a path come first; one
// with a path is the host's only where no other agent has one.
func (r *Registry) AgentsOfHost(host string) []string {
	name, port := splitHost(host)
	if name == "" {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	var agents []string
	if port != "" {
		agents = append(agents, hostAgents(r.hosts[name+":"+port])...)
	}
	return append(agents, hostAgents(r.hosts[name])...)
}

// hostAgents leaves out agents whose URLs have a path where there are several.
func hostAgents(agents []string) []string {
	roots := slices.DeleteFunc(slices.Clone(agents), func(agent string) bool { return hostRank(agent) == rankPath })
	if len(agents)-len(roots) == 1 {
		return agents
	}
	return roots
}

// keepHost notes which host an agent's id names, if any.
func (r *Registry) keepHost(agent string) {
	authority, ok := authorityOf(agent)
	if !ok {
		return
	}
	agents := append(slices.Clone(r.hosts[authority]), agent)
	slices.SortFunc(agents, func(a, b string) int {
		if order := hostRank(a) - hostRank(b); order != 0 {
			return order
		}
		return strings.Compare(b, a) // small letters, as hosts are written, before capital ones
	})
	r.hosts[authority] = agents
}

// How directly an agent's id names its host.
const (
	rankDID = iota
	rankHTTPS
	rankHTTP
	rankPath
)

const didWeb = "did:web:"

func hostRank(agent string) int {
	if strings.HasPrefix(agent, didWeb) {
		return rankDID
	}
	u, err := url.Parse(agent)
	switch {
	case err != nil, strings.Trim(u.Path, "/") != "", u.RawQuery != "", u.Fragment != "":
		return rankPath
	case u.Scheme == "https":
		return rankHTTPS
	}
	return rankHTTP
}

// authorityOf returns the host, and the port if it is none of the default ones,
// that an agent's id names.
func authorityOf(agent string) (authority string, ok bool) {
	host := ""
	if id, isDID := strings.CutPrefix(agent, didWeb); isDID {
		if strings.Contains(id, ":") { // a path below the host
			return "", false
		}
		unescaped, err := url.PathUnescape(id)
		if err != nil || strings.ContainsAny(unescaped, "/?#@") {
			return "", false
		}
		host = unescaped
	} else if u, err := url.Parse(agent); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		host = u.Host
	}
	name, port := splitHost(host)
	if port != "" {
		return name + ":" + port, true
	}
	return name, name != ""
}

// splitHost returns a host in its one form (lower case, IPv6 shortest and in
// brackets, no dot at the end) and its port, empty for 80 and 443.
func splitHost(hostport string) (name, port string) {
	name, port, err := net.SplitHostPort(hostport)
	if err != nil {
		name, port = hostport, ""
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if ip, err := netip.ParseAddr(name); err == nil && ip.Is6() {
		name = "[" + ip.String() + "]"
	}
	if port == "80" || port == "443" {
		port = ""
	}
	return name, port
}
