package admission

import "syscall"

// Config configures how many connections publishers may have.
type Config struct {
	MaxConnections int `help:"Maximum number of publishers' connections at one time. 0: half of the files that this process may open (ulimit -n), 10,000 at most."`
	AddressShare   int `help:"Percent of these connections that one client address, or one /64 network of IPv6 addresses, may have. 0: no limit; use it behind a reverse proxy, where all connections come from one address."`
}

// Default returns the configuration of a service to which clients connect directly.
func Default() Config { return Config{AddressShare: 25} }

// Operators returns the configuration of a listener that only operators use.
func Operators() Config {
	return Config{MaxConnections: max(1, min(files()/8, 256)), AddressShare: Default().AddressShare}
}

// Validate calls check for every setting.
func (c *Config) Validate(check func(ok bool, key, format string, args ...any)) {
	most := max(files()-reserved, files()/2)
	check(c.MaxConnections >= 0 && c.MaxConnections <= most, "max_connections",
		"%d: this process may open %d files: want 0 to %d, or a higher limit (ulimit -n)", c.MaxConnections, files(), most)
	check(c.AddressShare >= 0 && c.AddressShare <= 100, "address_share", "%d: want 0 to 100", c.AddressShare)
}

const (
	// reserved is more than enough files for the connections of operators, the broker, the
	// database and the files of all stages.
	reserved = 640
	// mostConnections is what a process takes however many files it may open.
	mostConnections = 10_000
)

// bounds returns the maximum number of connections in total, and for one address.
func (c *Config) bounds() (most, share int) {
	most = c.MaxConnections
	if most == 0 {
		most = max(1, min(files()/2, mostConnections))
	}
	if c.AddressShare == 0 {
		return most, most
	}
	return most, max(1, most*c.AddressShare/100)
}

// files returns how many files this process may have open. Go raises that to the hard limit when
// the process begins.
func files() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024 // a common limit of systems
	}
	return int(min(limit.Cur, 1<<30))
}
