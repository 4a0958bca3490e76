package cards

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// AgentsOfHost returns the registered agents to which a Host header belongs, most exact match
// first: those of host and port, then those of the host alone. An agent belongs to the host if
// its id is did:web:host, with %3A before a port, or an http(s) URL of the host. URLs without a
// path come first. A URL with a path counts only if no other agent has one.
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

// hostAgents removes agents whose URLs have a path if there are several of them.
func hostAgents(agents []string) []string {
	roots := slices.DeleteFunc(slices.Clone(agents), func(agent string) bool { return hostRank(agent) == rankPath })
	if len(agents)-len(roots) == 1 {
		return agents
	}
	return roots
}

// keepHost records the host that an agent's id names, if there is one.
func (r *Registry) keepHost(agent string) {
	authority, ok := authorityOf(agent)
	if !ok {
		return
	}
	agents := append(slices.Clone(r.hosts[authority]), agent)
	slices.SortFunc(agents, func(a, b string) int {
		return cmp.Or(hostRank(a)-hostRank(b), strings.Compare(b, a)) // lower case, the usual form of hosts, before upper case
	})
	r.hosts[authority] = agents
}

// The ranks of agents' ids for a host, by how directly they name it.
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

// authorityOf returns the host in an agent's id, and the port if it is not a default one.
func authorityOf(agent string) (authority string, ok bool) {
	host := ""
	if id, isDID := strings.CutPrefix(agent, didWeb); isDID {
		if strings.Contains(id, ":") { // the id has a path below the host
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

// splitHost returns a host in its canonical form (lower case, IPv6 in its shortest form and in
// brackets, no dot at the end) and its port, which is empty for 80 and 443.
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
