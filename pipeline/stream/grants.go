package stream

import (
	"slices"
	"strings"
)

// Subjects of the server: its API, acks, and answers to its flow control. The second forms of the
// latter two contain domain and account. A server uses them if it is configured to.
const (
	api         = "$JS.API."
	ackOld      = "$JS.ACK."
	ackNew      = "$JS.ACK.*.*."
	flowControl = "$JS.FC."
)

// isDrift reports whether a consumer belongs to drift.
func isDrift(d durable) bool { return strings.HasPrefix(d.Durable, "drift-") }

// consumes grants reading an existing durable consumer.
func (g *grants) consumes(d durable) {
	name := d.stream + "." + d.Durable
	g.may(api+"CONSUMER.MSG.NEXT."+name, ackOld+name+".>", ackNew+name+".>")
}

// gets grants looking up the value of a key, from any replica and from the leader.
func (g *grants) gets(bucket string) {
	g.may(api + "DIRECT.GET.KV_" + bucket + ".>")
	g.getsNewest(bucket)
}

// getsNewest grants lookups from the leader only.
func (g *grants) getsNewest(bucket string) { g.may(api + "STREAM.MSG.GET.KV_" + bucket) }

// watches grants listing and watching the keys of a bucket. That takes an ephemeral push
// consumer.
func (g *grants) watches(bucket string) {
	stream := "KV_" + bucket
	g.ephemeral(stream)
	g.may(flowControl+stream+".>", flowControl+"*.*."+stream+".>")
}

// readsStream grants reading with an ephemeral consumer, and denies fetching messages from the
// consumers of the services.
func (g *grants) readsStream(stream string) {
	g.ephemeral(stream)
	g.may(api + "CONSUMER.MSG.NEXT." + stream + ".*")
	for _, d := range durablesOf(stream) {
		g.denyTo(api + "CONSUMER.MSG.NEXT." + stream + "." + d.Durable)
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

// makes grants creating a consumer of a service.
func (g *grants) makes(d durable) {
	create := api + "CONSUMER.CREATE." + d.stream + "." + d.Durable
	if d.FilterSubject != "" {
		create += ".>"
	}
	g.may(create)
}

func durablesOf(stream string) []durable {
	return slices.DeleteFunc(consumers(), func(d durable) bool { return d.stream != stream })
}

// fills grants creating an object store and adding to it.
func (g *grants) fills(objectStore string) {
	stream := "OBJ_" + objectStore
	g.may(api+"STREAM.CREATE."+stream, api+"DIRECT.GET."+stream+".>", "$O."+objectStore+".>")
}

// holds grants holding the lease of a stage, asking its holder, and answering as its holder.
func (g *grants) holds(stage string) {
	g.getsNewest(Leases)
	answers := (&Holder{Stage: stage, ID: "*"}).subject()
	g.may("$KV."+Leases+"."+stage, answers)
	g.subscribe = append(g.subscribe, answers)
	g.respond = true
}
