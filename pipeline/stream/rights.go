package stream

import (
	"slices"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Rights are the subjects on which a user of the broker may publish, and those to which it may
// subscribe. The server refuses everything else.
type Rights struct {
	Publish   []string
	Deny      []string // exceptions to Publish
	Subscribe []string
	Respond   bool // may answer once each request that reaches the user
}

// AgentUse selects what agents may publish in addition to traces.
type AgentUse struct {
	Ledgers    bool // entries of their own ledgers
	Handshakes bool // messages of the value coherence handshake
}

// AgentRights returns the rights of an agent: to publish under its own name and to read its own
// inbox.
func AgentRights(agentID string, use AgentUse) Rights {
	r := Rights{Publish: []string{subject.Trace(agentID)}, Subscribe: []string{AgentInbox(agentID) + ".>"}}
	if use.Ledgers {
		r.Publish = append(r.Publish, subject.Ledger(agentID))
	}
	if use.Handshakes {
		r.Publish = append(r.Publish, subject.HandshakesOf(agentID))
	}
	return r
}

// AgentInbox returns the inbox prefix of an agent. Only that agent may read the subjects below
// it.
func AgentInbox(agentID string) string { return "_INBOX_agent." + subject.Token(agentID) }

// AgentSubjects returns the subjects on which agents publish, for all agents together.
func AgentSubjects(use AgentUse) []string {
	all := []string{subject.Traces}
	if use.Ledgers {
		all = append(all, subject.Ledgers)
	}
	if use.Handshakes {
		all = append(all, subject.Handshakes)
	}
	return all
}

// Role is a user of the broker that is not an agent.
type Role string

// The roles: one for each service, and those of operators.
const (
	RoleIngest   Role = "ingest"
	RoleVerifier Role = "verifier"
	RoleDrift    Role = "drift"
	RoleExporter Role = "exporter"
	RoleWebhooks Role = "webhooks"
	RoleOperator Role = "operator" // plumbline migrate, check and replay
	RoleUp       Role = "up"       // plumbline up: all services in one process
)

// Inbox returns the inbox prefix of a role.
func (r Role) Inbox() string { return "_INBOX_service." + string(r) }

// Roles returns all roles.
func Roles() []Role {
	return []Role{RoleIngest, RoleVerifier, RoleDrift, RoleExporter, RoleWebhooks, RoleOperator, RoleUp}
}

// Rights returns exactly the rights that a role needs. objectStore is the one to which the
// exporter copies bundles; empty means none.
func (r Role) Rights(objectStore string) Rights {
	var g grants
	switch r {
	case RoleIngest:
		g.ingest()
	case RoleVerifier:
		g.verifier()
	case RoleDrift:
		g.drift()
	case RoleExporter:
		g.exporter(objectStore)
	case RoleWebhooks:
		g.webhooks()
	case RoleOperator:
		g.operator()
	case RoleUp:
		g.ingest()
		g.verifier()
		g.drift()
		g.exporter(objectStore)
		g.webhooks()
		g.operator()
	}
	g.may(api+"INFO", api+"STREAM.INFO.*", api+"CONSUMER.INFO.*.*") // settings, and whether the broker answers
	return Rights{
		Publish:   sorted(g.publish),
		Deny:      sorted(slices.DeleteFunc(g.deny, func(s string) bool { return slices.Contains(g.publish, s) })),
		Subscribe: sorted(append(g.subscribe, r.Inbox()+".>")),
		Respond:   g.respond,
	}
}

func sorted(subjects []string) []string {
	slices.Sort(subjects)
	return slices.Compact(subjects)
}

// grants collects rights. A subject that one role is denied may be granted by its full name to
// another role of the same user.
type grants struct {
	publish, deny, subscribe []string
	respond                  bool
}

func (g *grants) may(subjects ...string)    { g.publish = append(g.publish, subjects...) }
func (g *grants) denyTo(subjects ...string) { g.deny = append(g.deny, subjects...) }

// appends grants appending events to the operator's ledger.
func (g *grants) appends(types ...ledger.Type) {
	for _, kind := range types {
		g.may(wire.EventPrefix + string(kind))
	}
}

// ingest publishes what arrived over HTTP, and answers handshakes.
func (g *grants) ingest() {
	g.may(subject.Traces, wire.ReceiptPrefix+"*", subject.Coherences, wire.DeadLetterPrefix+"ingest", wire.MarkSubject)
	g.may(api + "DIRECT.GET." + Traces) // compares a duplicate with what is stored
	g.appends(ledger.Boot, ledger.Retract, ledger.Meta)
	g.gets(Cards, Revocations, Messages)
	g.getsNewest(Handshakes)
	g.watches(Cards, Revocations, Messages)
	g.may("$KV."+Cards+".>", "$KV."+Revocations+".>", "$KV."+Handshakes+".>", "$KV."+Messages+".>")
	g.subscribe = append(g.subscribe, subject.Handshakes, "$SRV.>")
	g.respond = true
}

// verifier reads the partitions that it owns and four other streams, and publishes its results.
func (g *grants) verifier() {
	for _, d := range consumers() {
		if d.stream != Traces {
			g.consumes(d)
		}
	}
	g.reads(Traces)
	g.holds("verifier")
	g.may(wire.ReceiptPrefix+"*", wire.DeadLetterPrefix+"verifier")
	g.may(subject.Alerts(subject.AlertViolation), subject.Alerts(subject.AlertFinding))
	g.appends(ledger.Boot, ledger.Verify)
	g.gets(Cards)
	g.getsMany(Cards)
	g.watches(Cards, Revocations)
	g.getsNewest(Messages)
}

// drift reads the partitions that it owns.
func (g *grants) drift() {
	g.reads(Traces)
	g.may(subject.Alerts(subject.AlertDrift), subject.Alerts(subject.AlertFinding))
	g.holds(DriftOwners)
	g.appends(ledger.Boot)
	g.gets(Cards)
	g.getsMany(Cards)
	g.watches(Cards, Revocations)
}

// exporter reads receipts and ledgers from its checkpoints, and stores its plans for sealing.
func (g *grants) exporter(objectStore string) {
	g.reads(Receipts, Ledger, AgentLedger)
	g.may(api + "DIRECT.GET." + Traces) // checks whether a trace was received twice
	g.gets(Cards)
	g.getsNewest(Seals)
	g.may("$KV."+Seals+".>", bundleSubject, subject.Alerts(subject.AlertFinding))
	g.holds("exporter")
	g.holds(ExporterOwners)
	g.appends(ledger.Boot, ledger.Claim, ledger.Meta)
	if objectStore != "" {
		stream := "OBJ_" + objectStore // creates it and adds to it
		g.may(api+"STREAM.CREATE."+stream, api+"DIRECT.GET."+stream+".>", "$O."+objectStore+".>")
	}
}

// webhooks makes the consumers of its endpoints on ALERTS and reads them. It may remove none, and may not
// touch the consumers of the other services there.
func (g *grants) webhooks() {
	g.may(api+"CONSUMER.CREATE."+Alerts+".>", api+"CONSUMER.MSG.NEXT."+Alerts+".*", ackOld+Alerts+".>", ackNew+Alerts+".>")
	for _, d := range durablesOf(Alerts) {
		name := Alerts + "." + d.Durable
		g.denyTo(api+"CONSUMER.CREATE."+name, api+"CONSUMER.CREATE."+name+".>", api+"CONSUMER.MSG.NEXT."+name, ackOld+name+".>", ackNew+name+".>")
	}
	g.appends(ledger.Boot, ledger.Meta)
}

// operator creates streams, buckets and consumers, reads all of them, and writes what a replay
// finds missing. It fetches nothing from a service's consumer.
func (g *grants) operator() {
	t := Config{}.topology()
	for _, s := range t.streams {
		g.may(api + "STREAM.CREATE." + s.Name)
	}
	for _, b := range t.buckets {
		g.may(api+"STREAM.CREATE.KV_"+b.Bucket, api+"STREAM.UPDATE.KV_"+b.Bucket)
	}
	for _, d := range t.consumers {
		create := api + "CONSUMER.CREATE." + d.stream + "." + d.Durable
		if d.FilterSubject != "" {
			create += ".>"
		}
		g.may(create)
	}
	g.reads(Traces, Receipts, Alerts, DeadLetters, Ledger)
	g.gets(Cards)
	g.watches(Cards, Revocations, Seals)
	g.getsNewest(Seals, Messages, Leases)
	g.may(wire.ReceiptPrefix+"*", wire.DeadLetterPrefix+"verifier")
	g.may(subject.Alerts(subject.AlertViolation), subject.Alerts(subject.AlertFinding), subject.Alerts(subject.AlertDrift))
	g.may("$KV." + Leases + ".*") // removes the lease of a process that is gone
	g.appends(ledger.Verify)
}

// Subjects of the server: its API, acks, and answers to its flow control. The second forms of the
// latter two contain domain and account. A server uses them if it is configured to.
const (
	api         = "$JS.API."
	ackOld      = "$JS.ACK."
	ackNew      = "$JS.ACK.*.*."
	flowControl = "$JS.FC."
)

// consumes grants reading an existing durable consumer.
func (g *grants) consumes(d durable) {
	name := d.stream + "." + d.Durable
	g.may(api+"CONSUMER.MSG.NEXT."+name, ackOld+name+".>", ackNew+name+".>")
}

// getsMany grants looking up the values of several keys with one request, from any replica.
func (g *grants) getsMany(bucket string) { g.may(api + "DIRECT.GET.KV_" + bucket) }

// gets grants looking up the value of a key, from any replica and from the leader.
func (g *grants) gets(buckets ...string) {
	for _, bucket := range buckets {
		g.may(api + "DIRECT.GET.KV_" + bucket + ".>")
	}
	g.getsNewest(buckets...)
}

// getsNewest grants lookups from the leader only.
func (g *grants) getsNewest(buckets ...string) {
	for _, bucket := range buckets {
		g.may(api + "STREAM.MSG.GET.KV_" + bucket)
	}
}

// watches grants listing and watching the keys of a bucket. That takes an ephemeral push
// consumer.
func (g *grants) watches(buckets ...string) {
	for _, bucket := range buckets {
		stream := "KV_" + bucket
		g.ephemeral(stream)
		g.may(flowControl+stream+".>", flowControl+"*.*."+stream+".>")
	}
}

// reads grants reading streams with ephemeral consumers, and denies fetching messages from the
// consumers of the services.
func (g *grants) reads(streams ...string) {
	for _, stream := range streams {
		g.ephemeral(stream)
		g.may(api + "CONSUMER.MSG.NEXT." + stream + ".*")
		for _, d := range durablesOf(stream) {
			g.denyTo(api + "CONSUMER.MSG.NEXT." + stream + "." + d.Durable)
		}
	}
}

// ephemeral grants creating and removing consumers with generated names, and denies changing and
// removing the consumers of the services.
func (g *grants) ephemeral(stream string) {
	g.may(api+"CONSUMER.CREATE."+stream+".>", api+"CONSUMER.DELETE."+stream+".*")
	for _, d := range durablesOf(stream) {
		name := stream + "." + d.Durable
		g.denyTo(api+"CONSUMER.CREATE."+name, api+"CONSUMER.CREATE."+name+".>", api+"CONSUMER.DELETE."+name)
	}
}

func durablesOf(stream string) []durable {
	return slices.DeleteFunc(consumers(), func(d durable) bool { return d.stream != stream })
}

// holds grants holding the lease of a stage, or a share of its partitions, asking the other holders, and
// answering as a holder.
func (g *grants) holds(stage string) {
	g.getsNewest(Leases)
	answers := (&Holder{Stage: stage, ID: "*"}).subject()
	g.may("$KV."+Leases+"."+stage, answers)
	g.subscribe = append(g.subscribe, answers)
	g.respond = true
}
