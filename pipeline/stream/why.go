package stream

// reasons explains, for each setting that Inspect checks, why it matters (docs/GUARANTEES.md).
var reasons = map[string]string{
	"existence":               "what belongs there is kept nowhere",
	"max_payload":             "the largest trace that the specification allows would be refused",
	"jetstream.sync_interval": "a power failure loses what was acknowledged since the last sync",
	"discard":                 "a full stream must refuse what is new, not drop old evidence for it",
	"deny_delete":             "the database can be rebuilt from the stream only if nothing is deleted there",
	"deny_purge":              "the database can be rebuilt from the stream only if nothing is purged there",
	"allow_rollup_hdrs":       "a publisher could remove what others have published",
	"allow_msg_ttl":           "a publisher could let a trace expire before it is read",
	"metadata " + tenantKey:   "two tenants would share one stream",
	"max_msgs_per_subject":    "an agent's older traces would be dropped",
	"max_age":                 "what expires before it is read is lost",
	"duplicate_window":        "a publisher that repeats itself would be stored twice in the stream",
	"max_msg_size":            "the largest trace that the specification allows would be refused",
	"subjects":                "what is published on a missing subject is lost, what is published on a further one is not understood",
	"subject_transform":       "agents' traces would not be spread over partitions in order",
	"storage":                 "memory does not survive a restart",
	"retention":               "what one consumer has acknowledged would be gone for the others",
	"persist_mode":            "an answer would come before the message is on disk",
	"no_ack":                  "publishers would not learn whether their traces are stored",
	"sealed":                  "nothing can be published",
	"num_replicas":            "one disk is one copy",
	"allow_atomic":            "traces would be published one by one, with a disk sync for each",
	"history":                 "earlier contents of a card or seal could not be told any more",
	"ttl":                     "what is forgotten too soon could be answered or decided twice",
	"ack_policy":              "a message counts as done before it is stored",
	"deliver_policy":          "what was published before the consumer was made is never read",
	"replay_policy":           "messages would come as slowly as they were published",
	"filter_subject":          "some messages would not be read, or those of others",
	"filter_subjects":         "some messages would not be read, or those of others",
	"deliver_subject":         "messages would be pushed faster than they can be stored",
	"headers_only":            "messages would come without what they say",
	"mem_storage":             "what was acknowledged would be forgotten at a restart",
	"max_deliver":             "a message that cannot be stored for a while would be given up",
	"inactive_threshold":      "a stage that is away for a while would find its place forgotten",
	"ack_wait":                "a message that is being worked on would be given to another",
	"max_ack_pending":         "the verifier could not fill its batches",
}

// Why returns why the setting matters.
func (w Weakness) Why() string { return reasons[w.Setting] }
