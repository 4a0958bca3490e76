package accounts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// mayPublish maps a subject to the roles that may publish on it.
var mayPublish = map[string]string{
	"aap.trace.a":           "ingest up",
	"aap.coherence.a":       "ingest up",
	"aap.ledger.a":          "",
	"aap.handshake.b.a":     "",
	"aap.alert.violation.a": "verifier operator up",
	"aap.alert.finding.a":   "verifier drift exporter operator up",
	"aap.alert.drift.a":     "drift operator up",
	"aap.bundle.sealed":     "exporter up",
	"receipts.0":            "ingest verifier operator up",
	"deadletter.ingest":     "ingest up",
	"deadletter.marks":      "ingest up",
	"deadletter.verifier":   "verifier operator up",
	"ledger.BOOT":           "ingest verifier drift exporter webhooks up",
	"ledger.CLAIM":          "exporter up",
	"ledger.META":           "ingest exporter webhooks up",
	"ledger.RETRACT":        "ingest up",
	"ledger.VERIFY":         "verifier operator up",
	"ledger.GENESIS":        "",

	"$KV.cards.x":             "ingest up",
	"$KV.revocations.x":       "ingest up",
	"$KV.handshakes.x":        "ingest up",
	"$KV.messages.x":          "ingest up",
	"$KV.seals.x":             "exporter up",
	"$KV.leases.drift-owners": "drift operator up",

	"plumbline.lease.exporter.x":        "exporter up",
	"plumbline.lease.verifier.x":        "verifier up",
	"$KV.leases.verifier":               "verifier operator up",
	"$JS.API.STREAM.MSG.GET.KV_leases":  "verifier drift exporter operator up",
	"$JS.API.CONSUMER.CREATE.KV_leases": "",

	"$O.bundles.M.x": "", // no object store is configured

	"$JS.API.STREAM.INFO.TRACES":          "ingest verifier drift exporter webhooks operator up",
	"$JS.API.STREAM.CREATE.TRACES":        "operator up",
	"$JS.API.STREAM.CREATE.OTHER":         "",
	"$JS.API.STREAM.UPDATE.TRACES":        "",
	"$JS.API.STREAM.UPDATE.KV_cards":      "operator up",
	"$JS.API.STREAM.PURGE.TRACES":         "",
	"$JS.API.STREAM.PURGE.KV_cards":       "",
	"$JS.API.STREAM.DELETE.TRACES":        "",
	"$JS.API.STREAM.SNAPSHOT.TRACES":      "",
	"$JS.API.STREAM.RESTORE.TRACES":       "",
	"$JS.API.STREAM.MSG.DELETE.TRACES":    "",
	"$JS.API.STREAM.MSG.GET.DEADLETTER":   "",
	"$JS.API.STREAM.MSG.GET.KV_messages":  "ingest verifier operator up",
	"$JS.API.STREAM.MSG.GET.KV_seals":     "exporter operator up",
	"$JS.API.DIRECT.GET.TRACES":           "ingest exporter up",
	"$JS.API.DIRECT.GET.KV_seals.$KV.s.x": "",

	"$JS.API.CONSUMER.CREATE.TRACES.x":                    "verifier drift operator up",
	"$JS.API.CONSUMER.CREATE.TRACES.verifier":             "operator up",
	"$JS.API.CONSUMER.CREATE.TRACES.verifier.traces.0.>":  "",
	"$JS.API.CONSUMER.CREATE.TRACES.drift-3.traces.3.>":   "operator up",
	"$JS.API.CONSUMER.DURABLE.CREATE.TRACES.verifier":     "",
	"$JS.API.CONSUMER.CREATE.DEADLETTER.x":                "operator up",
	"$JS.API.CONSUMER.CREATE.RECEIPTS.x":                  "exporter operator up",
	"$JS.API.CONSUMER.CREATE.KV_cards.x.$KV.cards.>":      "ingest verifier drift operator up",
	"$JS.API.CONSUMER.CREATE.KV_messages.x.$KV.m.>":       "ingest up",
	"$JS.API.CONSUMER.CREATE.KV_messages.messages.$KV.m.": "",
	"$JS.API.CONSUMER.DELETE.TRACES.verifier":             "",
	"$JS.API.CONSUMER.DELETE.TRACES.drift-3":              "",
	"$JS.API.CONSUMER.DELETE.KV_messages.messages":        "",
	"$JS.API.CONSUMER.RESET.TRACES.drift-3":               "",
	"$JS.API.CONSUMER.RESET.TRACES.verifier":              "",
	"$JS.API.CONSUMER.MSG.NEXT.TRACES.x":                  "verifier drift operator up",
	"$JS.API.CONSUMER.MSG.NEXT.TRACES.verifier":           "",
	"$JS.API.CONSUMER.MSG.NEXT.TRACES.drift-3":            "",
	"$JS.API.CONSUMER.MSG.NEXT.DEADLETTER.deadletters":    "verifier up",
	"$JS.API.CONSUMER.PAUSE.TRACES.verifier":              "",
	"$JS.API.CONSUMER.CREATE.ALERTS.webhook-x":            "webhooks operator up",
	"$JS.API.CONSUMER.CREATE.ALERTS.findings":             "operator up",
	"$JS.API.CONSUMER.DELETE.ALERTS.findings":             "",
	"$JS.API.CONSUMER.DELETE.ALERTS.webhook-x":            "operator up",
	"$JS.API.CONSUMER.MSG.NEXT.ALERTS.webhook-x":          "webhooks operator up",
	"$JS.API.CONSUMER.MSG.NEXT.ALERTS.findings":           "verifier up",
	"$JS.ACK.ALERTS.webhook-x.1.1.1.1.0":                  "webhooks up",
	"$JS.ACK.ALERTS.findings.1.1.1.1.0":                   "verifier up",
	"$JS.ACK.TRACES.verifier.1.1.1.1.0":                   "",
	"$JS.ACK.TRACES.drift-3.1.1.1.1.0":                    "",
	"$JS.ACK.RECEIPTS.x.1.1.1.1.0":                        "",

	"_INBOX_agent.a.x":        "",
	"_INBOX_service.ingest.x": "",
	"$SYS.REQ.SERVER.PING":    "",
	"anything":                "",
}

// maySubscribe maps a subject to the roles that may subscribe to it.
var maySubscribe = map[string]string{
	"aap.handshake.*.*":         "ingest up",
	"$SRV.PING":                 "ingest up",
	"_INBOX_service.ingest.>":   "ingest",
	"_INBOX_service.operator.>": "operator",
	"_INBOX_service.>":          "",
	"_INBOX.>":                  "",
	"_INBOX_agent.>":            "",
	"aap.trace.*":               "",
	"aap.alert.>":               "",
	"traces.>":                  "",
	"deadletter.>":              "",
	"$KV.>":                     "",
	"$JS.>":                     "",
	">":                         "",
}

// A service may do what it needs and nothing else: in particular, no service may remove a
// message or receive messages of another service's consumer.
func TestRightsOfRoles(t *testing.T) {
	s := serve(t, accounts.Config{})
	s.client(stream.RoleOperator)
	for _, role := range stream.Roles() {
		conn := s.connect(string(role))
		for subject, roles := range mayPublish {
			if err := conn.Publish(subject, nil); err != nil {
				t.Fatal(err)
			}
			if want := slices.Contains(strings.Fields(roles), string(role)); refused(t, conn, subject) == want {
				t.Errorf("%s may publish on %s: %v, want %v", role, subject, !want, want)
			}
		}
		for subject, roles := range maySubscribe {
			sub, err := conn.SubscribeSync(subject)
			if err != nil {
				t.Fatal(err)
			}
			if want := slices.Contains(strings.Fields(roles), string(role)); refused(t, conn, subject) == want {
				t.Errorf("%s may subscribe to %s: %v, want %v", role, subject, !want, want)
			}
			_ = sub.Unsubscribe()
		}
	}
}

// The user of plumbline up has all rights of the other roles.
func TestUpHasTheRightsOfAllRoles(t *testing.T) {
	up := stream.RoleUp.Rights("bundles")
	for _, role := range stream.Roles() {
		for _, right := range role.Rights("bundles").Publish {
			if !slices.Contains(up.Publish, right) || slices.Contains(up.Deny, right) {
				t.Errorf("%s may publish on %s, up may not", role, right)
			}
		}
	}
}
