package webhook

import "github.com/plumbline/plumbline/pipeline/config"

// Config configures the service.
type Config struct {
	config.Common `embed:""`

	WebhooksFile string `help:"File of the endpoints that get alerts (docs/WEBHOOKS.md)." type:"path"`
}

// Default returns the configuration without endpoints.
func Default() Config { return Config{Common: config.DefaultCommon("127.0.0.1:8085")} }

// Validate returns every fault.
func (c *Config) Validate() []config.Fault {
	faults := config.Faults(c.Common.Validate())
	faults.Check(c.WebhooksFile != "", "webhooks_file", "is missing: want the file of the endpoints")
	return faults
}

// FileFaults returns the faults of the files that the configuration names.
func (c *Config) FileFaults() []config.Fault {
	return append(c.Common.FileFaults(), Faults(c.WebhooksFile)...)
}

// Faults returns the faults of a file of endpoints. An empty path has none.
func Faults(path string) (faults config.Faults) {
	if path != "" {
		_, err := ReadEndpoints(path)
		faults.Check(err == nil, "webhooks_file", "%v", err)
	}
	return faults
}
