package accounts

import (
	"bytes"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// head is the comment at the top of the file; it explains how to use the file.
const head = `# Written by plumbline nats-config, which replaces it. In the server's configuration:
#   accounts { include %q }

`

// render renders both accounts. All text between quotation marks consists of letters,
// digits and "$._-=*>/".
func (c *Config) render(users []User) []byte {
	agents := c.Account + "_AGENTS"
	var b bytes.Buffer
	fmt.Fprintf(&b, head, FileName)
	fmt.Fprintf(&b, "%q: {\n  jetstream: enabled\n  exports: [\n", c.Account)
	for _, subject := range stream.AgentSubjects(c.Use) {
		fmt.Fprintf(&b, "    {service: %q, accounts: [%q]}\n", subject, agents)
	}
	fmt.Fprintf(&b, "  ]\n  users: [\n")
	for i := range users {
		if users[i].Agent == "" {
			users[i].render(&b)
		}
	}
	fmt.Fprintf(&b, "  ]\n}\n\n%q: {\n  imports: [\n", agents)
	for _, subject := range stream.AgentSubjects(c.Use) {
		fmt.Fprintf(&b, "    {service: {account: %q, subject: %q}}\n", c.Account, subject)
	}
	fmt.Fprintf(&b, "  ]\n  users: [\n")
	for i := range users {
		if users[i].Agent != "" {
			users[i].render(&b)
		}
	}
	fmt.Fprintf(&b, "  ]\n}\n")
	return b.Bytes()
}

func (u *User) render(b *bytes.Buffer) {
	fmt.Fprintf(b, "    # %s\n    {\n", u.who())
	if u.hash != "" {
		fmt.Fprintf(b, "      user: %q, password: %q\n", u.Login, u.hash)
	} else {
		fmt.Fprintf(b, "      nkey: %q\n", u.Login)
	}
	b.WriteString("      permissions: {\n        publish: {\n")
	list(b, "allow", u.rights.Publish)
	if len(u.rights.Deny) > 0 {
		list(b, "deny", u.rights.Deny)
	}
	b.WriteString("        }\n        subscribe: {\n")
	list(b, "allow", u.rights.Subscribe)
	b.WriteString("        }\n")
	if u.rights.Respond {
		b.WriteString("        allow_responses: true\n")
	}
	b.WriteString("      }\n    }\n")
}

func list(b *bytes.Buffer, name string, subjects []string) {
	fmt.Fprintf(b, "          %s: [\n", name)
	for _, subject := range subjects {
		fmt.Fprintf(b, "            %q\n", subject)
	}
	b.WriteString("          ]\n")
}
