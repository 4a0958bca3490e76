package stream

import (
	"slices"
	"strings"
)

// Subjects of the server: its API, acknowledgements, and answers to its flow control. The
// second forms of the latter two name domain and account; a server uses them where it
// is told to.
const (
	api         = "$JS.API."
	ackOld      = "$JS.ACK."
	ackNew      = "$JS.ACK.*.*."
	flowControl = "$JS.FC."
)

// isDrift reports whether a consumer is one of drift's.
func isDrift(d durable) bool { return strings.HasPrefix(d.Durable, "drift-") }

// consumes grants reading a durable consumer, which exists.
func (g *grants) consumes(d durable) {
	name := d.stream + "." + d.Durable
	g.may(api+"CONSUMER.MSG.NEXT."+name, ackOld+name+".>", ackNew+name+".>")
}

// gets grants looking up the value of a key, by any replica and by the leader.
func (g *grants) gets(bucket string) {
	g.may(api + "DIRECT.GET.KV_" + bucket + ".>")
	g.getsNewest(bucket)
}

// getsNewest grants asking the leader alone.
func (g *grants) getsNewest(bucket string) { g.may(api + "STREAM.MSG.GET.KV_" + bucket) }

// watches grants listing and watching the keys of a bucket, by a consumer that the server
// forgets and that sends without being asked.
func (g *grants) watches(bucket string) {
	stream := "KV_" + bucket
	g.ephemeral(stream)
	g.may(flowControl+stream+".>", flowControl+"*.*."+stream+".>")
}

// readsStream grants reading with a consumer that the server forgets, and denies taking
// messages from those that services rely on.
func (g *grants) readsStream(stream string) {
	g.ephemeral(stream)
	g.may(api + "CONSUMER.MSG.NEXT." + stream + ".*")
	for _, d := range durablesOf(stream) {
		g.denyTo(api + "CONSUMER.MSG.NEXT." + stream + "." + d.Durable)
	}
}

// ephemeral grants making and removing consumers whose names are made up, and denies
// changing and removing those that services rely on.
func (g *grants) ephemeral(stream string) {
	g.may(api+"CONSUMER.CREATE."+stream+".>", api+"CONSUMER.DELETE."+stream+".*")
	for _, d := range durablesOf(stream) {
		name := stream + "." + d.Durable
		g.denyTo(api+"CONSUMER.CREATE."+name, api+"CONSUMER.CREATE."+name+".>", api+"CONSUMER.DELETE."+name)
	}
}

// makes grants making a consumer that services rely on.
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

// fills grants making an object store and adding to it.
func (g *grants) fills(objectStore string) {
	stream := "OBJ_" + objectStore
	g.may(api+"STREAM.CREATE."+stream, api+"DIRECT.GET."+stream+".>", "$O."+objectStore+".>")
}

// holds grants having the lease of a stage, asking who has it, and answering that.
func (g *grants) holds(stage string) {
	g.getsNewest(Leases)
	answers := (&Holder{Stage: stage, ID: "*"}).subject()
	g.may("$KV."+Leases+"."+stage, answers)
	g.subscribe = append(g.subscribe, answers)
	g.respond = true
}
